"""Matrix products that run beside the tensor cores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from afterrun.analyzer.finding import Effect, Finding
from afterrun.analyzer.prose import percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.kernels import kernel_table
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class NoTensorCores(Pass):
    """Share of the kernel time in matrix kernels whose names say that they use no tensor cores."""

    code: ClassVar[str] = "no-tensor-cores"
    title: ClassVar[str] = "No tensor cores"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="Matrix products or convolutions run on the plain floating-point units of a device that has tensor cores, which are several times as fast.",
        rule="Kernels whose names are matrix products of cuBLAS, cuDNN, CUTLASS or attention, and none of the marks of tensor-core kernels (tensorop, hmma, 16816, wgmma, tf32, half precisions), over the kernel time. Possible information from share_pct: names are "
        "a convention of libraries. Devices below compute capability 7.0 have no tensor cores and are left out where the trace says so.",
        abstains="Without kernels in the trace.",
        confused_with="Work that needs full single precision; kernels of other vendors, whose names follow other rules.",
        remedies=(
            "Allow TF32 where single precision is used: torch.set_float32_matmul_precision('high').",
            "Use bf16 or fp16 autocast; keep dimensions multiples of 8 (of 16 for fp8).",
        ),
        sources=(
            "torch-tb-profiler: tensor-core use of eligible operators",
            "NVIDIA: Matrix Multiplication Background User's Guide",
        ),
    )

    share_pct: float = threshold(
        20.0, "share of the kernel time in such kernels from which it is told", unit="%"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        devices = [d for d in view.trace.devices if len(d.kernels)]
        if not devices:
            yield abstained(self, view, "Not assessable: the trace holds no kernels.", NO_DEVICE)
        for device in devices:
            yield self._of(view, device)

    def _of(self, view: RunView, device: DeviceTrace) -> Finding:
        table = kernel_table(device)
        plain = table.filter(pl.col("matrix") & ~pl.col("tensor"))
        whole = max(device.kernels.total_ns, 1)
        share = 100.0 * int(plain["busy_ns"].sum()) / whole
        capability = _capability(view, device)
        values = {
            "plain_matrix_pct": share,
            "tensor_pct": 100.0 * int(table.filter("tensor")["busy_ns"].sum()) / whole,
            "kernels": plain.head(5).select("short", "launches", "busy_ns").to_dicts(),
            "compute_capability": capability,
        }
        if share < self.share_pct or (capability is not None and capability < 7):
            title = f"{device_name(device)}: {percent(share)} of the kernel time are matrix kernels without tensor cores."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        top = plain.row(0, named=True)
        title = (
            f"{device_name(device)}: matrix kernels without tensor cores take {percent(share)} of the kernel time, "
            f"most of it {top['short']} ({span_time(top['busy_ns'])})."
        )
        return about_device(
            self,
            view,
            device,
            ("possible", "info"),
            title=title,
            effect=Effect(value=share, unit="% of the kernel time", method="union by name"),
            advice=self.explain.remedies,
            values=values,
        )


def _capability(view: RunView, device: DeviceTrace) -> float | None:
    """The compute capability that the trace records for a device."""
    text = view.params.get(f"trace.device.{device.device}.compute_capability")
    try:
        return float(json.loads(text)) if text is not None else None
    except (ValueError, TypeError):
        return None
