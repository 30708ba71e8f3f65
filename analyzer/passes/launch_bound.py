"""Launch bound: the host issues work more slowly than the device does it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding
from afterrun.analyzer.prose import number, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class LaunchBound(Pass):
    """Share of the time in which a device waits for the next launch."""

    code: ClassVar[str] = "launch-bound"
    title: ClassVar[str] = "Bound by launches"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="Many small kernels run faster than the host can launch them, so the device waits a little before nearly each of them. No single gap stands out; together they cost a large part of the time.",
        rule="Idle time charged to launching (operators and launch calls on the feeding thread, from the moment the device had run dry to the start of the next activity) over the span. "
        "Warning from warn_pct, critical from critical_pct.",
        abstains="Without device activity or without launch calls in the trace.",
        confused_with="A synchronisation in each step, behind which the host must refill the queue; gaps of a microsecond between queued kernels, which no host can avoid; profiler overhead, which "
        "lengthens every operator when stacks or shapes are recorded.",
        remedies=(
            "Capture the step in CUDA graphs, or compile it: torch.compile(mode='reduce-overhead').",
            "Raise the batch size, so that each kernel has more to do.",
            "Use fused or foreach optimizers and fused layers; remove small elementwise operators.",
            "Profile without stacks and shapes before you trust a small difference.",
        ),
        sources=(
            "xprof, kernel launch time: 3 % moderate, 15 % high",
            "TensorRT-LLM performance skill: launch overhead above 10 % of the time",
        ),
    )

    warn_pct: float = threshold(
        10.0, "idle share of the span charged to launching that is a warning", unit="%"
    )
    critical_pct: float = threshold(
        30.0, "idle share of the span charged to launching that is critical", unit="%"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        if not view.trace.devices:
            yield abstained(self, view, "Not assessable: the trace holds no GPU activity.", NO_DEVICE)
        for device in view.trace.devices:
            yield self._of(view, device)

    def _of(self, view: RunView, device: DeviceTrace) -> Finding:
        idle = view.trace.idle(device)
        lost = idle.by_cause_ns.get("launch", 0)
        share = 100.0 * lost / max(device.span_ns, 1)
        lengths = device.of_lanes("kernel")["dur_ns"].to_numpy()
        values = {
            "launch_idle_ns": lost,
            "launch_idle_pct": share,
            "span_ns": device.span_ns,
            "kernels": len(lengths),
            "median_kernel_ns": float(np.median(lengths)) if len(lengths) else None,
            "kernels_below_10us_pct": float(100 * np.mean(lengths < 10_000)) if len(lengths) else None,
            "launches_known_pct": 100 * idle.launches_known,
        }
        if len(idle.gaps) and not idle.launches_known:
            title = f"{device_name(device)}: the trace holds no launch calls."
            missing = ("CUDA runtime calls in the trace",)
            return abstained(self, view, title, missing, {**values})
        if share < self.warn_pct:
            title = f"{device_name(device)} waits for launches {percent(share)} of the time."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        title = (
            f"{device_name(device)} waits for the next launch {percent(share)} of {span_time(device.span_ns)}; "
            f"the median of {number(len(lengths))} kernels takes {span_time(values['median_kernel_ns'] or 0)}."
        )
        return about_device(
            self,
            view,
            device,
            ("confirmed", "critical" if share >= self.critical_pct else "warning"),
            title=title,
            effect=Effect(
                value=share, unit="% of the span waiting for launches", method="gaps by cause, exact"
            ),
            advice=self.explain.remedies,
            wasted_gpu_s=lost / 1e9,
            values=values,
        )
