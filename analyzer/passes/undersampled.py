"""Undersampled: counters too slow for what they are asked to show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.counters.series import MAX_HOLD, CounterSeries, device_series
from afterrun.analyzer.finding import Finding, Where, jsonable
from afterrun.analyzer.prose import number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class Undersampled(Pass):
    """What the sampling interval of utilisation cannot show, and how much of the time has no sample."""

    code: ClassVar[str] = "undersampled"
    title: ClassVar[str] = "Sampled too slowly"
    about: ClassVar[str] = "job"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="A sampler sees nothing that is shorter than two of its intervals, and a sampler whose interval is near a multiple of the step time shows a slow wave that is not there.",
        rule="Interval of the utilisation samples: stalls shorter than two intervals cannot be seen. Told as possible information when the interval exceeds slow_s, when it is within alias_margin of a whole multiple of the step time, or when holes (more than "
        f"{MAX_HOLD:g} intervals without a sample, or samples that are no numbers) take at least hole_pct of the time; time in holes is unobserved, neither idle nor busy.",
        abstains="Without utilisation samples on a clock.",
        confused_with="Utilisation that really is constant; a logger that writes only changes.",
        remedies=(
            "Sample at 100 ms to 1 s for a while (nvidia-smi --loop-ms, DCGM), or take a trace of a few steps.",
            "Choose an interval that is no multiple of the step time.",
        ),
        sources=(
            "Shannon (1949): two samples per event",
            "NVML documentation: the sampling period is between 1/6 and 1 second",
        ),
    )

    slow_s: float = threshold(5.0, "interval from which sampling is called slow", unit="s")
    alias_margin: float = threshold(0.05, "distance of interval / step time from a whole number", unit="")
    hole_pct: float = threshold(10.0, "share of the time in holes that is told", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the slowest series of utilisation."""
        timed = [s for s in device_series(view.tables.samples, "gpu_util_pct") if s.interval_s]
        if not timed:
            yield abstained(
                self,
                view,
                "Not assessable: no utilisation samples on a clock.",
                ("utilisation samples with times",),
            )
            return
        yield self._of(view, max(timed, key=lambda s: s.interval_s or 0.0))

    def _of(self, view: RunView, s: CounterSeries) -> Finding:
        interval = s.interval_s or 0.0
        step_s = step_seconds(view)
        holes = 100.0 * s.unobserved_s / max(float(s.seconds[-1]), 1e-9)
        ratio = interval / step_s if step_s else None
        alias = ratio is not None and ratio > 0.9 and abs(ratio - round(ratio)) < self.alias_margin
        values: dict[str, Any] = {
            "interval_s": interval,
            "blind_below_s": 2 * interval,
            "step_s": step_s,
            "intervals_per_step": ratio,
            "holes_pct": holes,
            "samples": len(s),
        }
        reasons = [
            f"an interval of {number(interval)} s cannot show stalls shorter than {number(2 * interval)} s"
            if interval > self.slow_s
            else "",
            f"the interval is {number(ratio or 0)} times the step time, so slow waves may be an artefact"
            if alias
            else "",
            f"{percent(holes)} of the time has no sample" if holes >= self.hole_pct else "",
        ]
        said = [r for r in reasons if r]
        if not said:
            title = f"Utilisation was sampled every {number(interval)} s; stalls shorter than {number(2 * interval)} s do not show."
            return refuted(self, view, title, jsonable(values))
        text = "; ".join(said)
        return Finding(
            code=self.code,
            status="possible",
            severity="info",
            run=view.name,
            where=Where(device=s.device),
            title=f"Utilisation samples: {text}.",
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def step_seconds(view: RunView) -> float | None:
    """Median time of a step: logged, or from the marks of a trace; None where neither is recorded."""
    logged = view.pick("step_time_s", "train", "none")
    if logged is not None and len(logged.y):
        return float(np.median(logged.y))
    for device in view.trace.devices:
        steps = view.trace.paced_steps(device)
        if steps is not None and len(steps) > 2:
            return float(np.median(steps.durations)) / 1e9
    return None
