"""Slow start: compiling and warming up before steps run at their pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Severity
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained, unseen
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class SlowStart(Pass):
    """Time that compiling takes, and how long the first step lasts against the others."""

    code: ClassVar[str] = "slow-start"
    title: ClassVar[str] = "Slow start"
    about: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The first steps take far longer than the others: compilation, autotuning, loading of modules, the start of workers, filling of caches. It is paid again at every restart and every recompilation.",
        rule="Idle time charged to compiling over the span of the trace: warning from warn_pct. The first step is compared with the median of the others and told.",
        abstains="Without device activity in the trace, and where the trace names no compilation and shows the device idle at least warn_pct of the time beside host work that it does not show.",
        confused_with="A capture that begins with its profiler's own warm-up; recompilation in later steps, which is listed by its steps.",
        remedies=(
            "Keep compiled code between runs: TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR, JAX persistent compilation cache.",
            "Compile regions that repeat (one block of the model) instead of the whole step.",
            "Keep shapes static, or mark them dynamic, so that nothing is compiled twice.",
        ),
        sources=("PyTorch documentation: compile time caching", "SageMaker Debugger: MaxInitializationTime"),
    )

    warn_pct: float = threshold(10.0, "share of the span idle for compiling that is a warning", unit="%")
    critical_pct: float = threshold(50.0, "share of the span idle for compiling that is critical", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        if not view.trace.devices:
            yield abstained(self, view, "Not assessable: the trace holds no GPU activity.", NO_DEVICE)
        for device in view.trace.devices:
            yield self._of(view, device)

    def _of(self, view: RunView, device: DeviceTrace) -> Finding:
        lost = view.trace.idle(device).by_cause_ns.get("compile", 0)
        share = 100.0 * lost / max(device.span_ns, 1)
        values = {
            "compile_ns": lost,
            "compile_pct": share,
            "span_ns": device.span_ns,
            **self._steps(view, device),
        }
        if share < self.warn_pct:
            hidden = None if lost else unseen(self, view, device, self.warn_pct, values)
            if hidden is not None:
                return hidden
            title = f"{device_name(device)} stands idle for compiling {percent(share)} of the time."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        where = f" in {count(len(values['compiling_steps']), 'step')}" if values["compiling_steps"] else ""
        severity: Severity = "critical" if share >= self.critical_pct else "warning"
        return about_device(
            self,
            view,
            device,
            ("confirmed", severity),
            title=f"{device_name(device)} stands idle for compiling {percent(share)} of {span_time(device.span_ns)} ({span_time(lost)}{where}).",
            effect=Effect(
                value=share, unit="% of the span idle for compiling", method="gaps by cause, exact"
            ),
            advice=self.explain.remedies,
            wasted_gpu_s=lost / 1e9,
            values=values,
        )

    def _steps(self, view: RunView, device: DeviceTrace) -> dict[str, Any]:
        steps = view.trace.steps(device)
        if steps is None or len(steps) < 3:
            return {"first_step_ns": None, "median_step_ns": None, "compiling_steps": []}
        compiling = view.trace.idle(device).between(steps.start, steps.end)["compile"]
        return {
            "first_step_ns": int(steps.durations[0]),
            "median_step_ns": float(np.median(steps.durations[1:])),
            "compiling_steps": steps.number[compiling > 0].tolist(),
        }
