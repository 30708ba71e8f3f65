"""Kernel hotspots: the few kernels in which a device spends its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.finding import Effect, Finding
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.kernels import kernel_table
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained
from afterrun.analyzer.view import RunView

LISTED = 10


@dataclass(frozen=True)
class KernelHotspot(Pass):
    """Kernels by time, and the one that dominates."""

    code: ClassVar[str] = "kernel-hotspot"
    title: ClassVar[str] = "Dominating kernel"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="One kernel takes a large part of the kernel time of a device: the first place to look when the device itself is the limit.",
        rule="Union of the intervals of each kernel name over the union of all kernels; told as information from share_pct. Collectives are counted too: much of their time may be waiting.",
        abstains="Without kernels in the trace.",
        confused_with="The sum of durations, which counts kernels of several streams twice; a kernel that is slow in the first steps only (autotuning).",
        remedies=(
            "Profile this kernel with ncu to learn what limits it.",
            "Look for a fused or library version of it, another layout or precision.",
        ),
        sources=("Amdahl (1967): what a faster part can win",),
    )

    share_pct: float = threshold(25.0, "share of the kernel time from which a kernel is told", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        devices = [d for d in view.trace.devices if len(d.kernels)]
        if not devices:
            yield abstained(self, view, "Not assessable: the trace holds no kernels.", NO_DEVICE)
        for device in devices:
            yield self._of(view, device)

    def _of(self, view: RunView, device: DeviceTrace) -> Finding:
        table = kernel_table(device)
        top = table.row(0, named=True)
        shown = ("short", "launches", "busy_ns", "sum_ns", "share_pct", "median_ns")
        values = {
            "kernels": len(table),
            "top": table.head(LISTED).select(shown).to_dicts(),
            "kernel_busy_ns": device.kernels.total_ns,
            "share_pct": top["share_pct"],
        }
        hot = top["share_pct"] >= self.share_pct
        title = (
            f"{device_name(device)}: {top['short']} takes {percent(top['share_pct'])} of the kernel time "
            f"({span_time(top['busy_ns'])} in {count(top['launches'], 'launch', 'launches')})."
        )
        return about_device(
            self,
            view,
            device,
            ("confirmed" if hot else "refuted", "info"),
            title=title,
            effect=Effect(value=top["share_pct"], unit="% of the kernel time", method="union by name, exact"),
            advice=self.explain.remedies if hot else (),
            values=values,
        )
