"""Throughput drift: steps that take longer and longer, or suddenly take longer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.stats import trend
from afterrun.analyzer.steps.times import StepTimes, step_times
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

WARM_UP = 0.1
"""Share of the steps that are left out at the start."""


@dataclass(frozen=True)
class ThroughputDrift(Pass):
    """Trend of the step time over the run."""

    code: ClassVar[str] = "throughput-drift"
    title: ClassVar[str] = "Throughput that falls"
    about: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ()
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="Steps at the end of the run take longer than at its beginning, without a change of the work that is recorded.",
        rule="Trend of the logarithm of step times (Theil-Sen on blocks sized by their autocorrelation, rank test one-sided p < p_max, interval above zero) after the first tenth. Possible warning when the change over the run is at least warn_pct, information from info_pct.",
        abstains="With fewer than min_steps step times.",
        confused_with="Sequences that grow by curriculum; evaluation that grows; a scheduler that shares the node with other jobs later.",
        remedies=(
            "Look at memory beside it: growing lists, fragmentation and swapping slow steps down.",
            "Look at clocks and temperatures: throttling sets in after minutes.",
            "Look at the loader: shards at the end of the data set may be larger or colder.",
        ),
        sources=("Theil (1950), Sen (1968), Mann (1945), Kendall (1975)",),
    )

    p_max: float = threshold(0.001, "one-sided p value of the rank test", unit="")
    info_pct: float = threshold(5.0, "growth of the step time over the run that is told", unit="%")
    warn_pct: float = threshold(15.0, "growth of the step time over the run that is a warning", unit="%")
    min_steps: int = threshold(60, "fewer step times are not judged", unit="steps")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run."""
        times = step_times(view)
        if times is None or len(times) < self.min_steps or times.origin == "step marks of a trace":
            missing = (
                f"at least {self.min_steps} step times over the run: logged, or a wall clock with each row",
            )
            yield abstained(self, view, "Not assessable: too few step times are recorded.", missing)
            return
        yield self._of(view, times)

    def _of(self, view: RunView, times: StepTimes) -> Finding:
        first = int(WARM_UP * len(times))
        log = np.log(times.seconds[first:])
        found = trend(log, confidence=0.99)
        whole = len(log) - 1
        change, low, high = (
            change_pct(x * whole) if math.isfinite(x) else None for x in (found.slope, found.low, found.high)
        )
        values: dict[str, Any] = {
            "change_pct": change,
            "low_pct": low,
            "high_pct": high,
            "p": found.p_up,
            "median_first_s": float(np.median(times.seconds[first : first + len(log) // 10 + 1])),
            "median_last_s": float(np.median(times.seconds[-(len(log) // 10 + 1) :])),
            "origin": times.origin,
            "steps": len(times),
        }
        rises = found.p_up < self.p_max and found.low > 0 and change is not None and change >= self.info_pct
        if not rises or change is None:
            title = f"Step times do not grow over the run ({times.origin})."
            return refuted(self, view, title, jsonable(values))
        warn = change >= self.warn_pct
        return Finding(
            code=self.code,
            status="possible",
            severity="warning" if warn else "info",
            run=view.name,
            where=Where(step_start=int(times.step[first]), step_end=int(times.step[-1])),
            title=f"Steps take {percent(change)} longer at the end of the run than at its start ({times.origin}).",
            effect=Effect(
                value=change,
                low=low,
                high=high,
                unit="% change of the step time over the run",
                level=0.99,
                method="Theil-Sen slope on blocks",
            ),
            evidence=(
                Evidence(
                    source=times.source,
                    tag=times.tag,
                    step=int(times.step[-1]),
                    value=values["median_last_s"],
                    note="median of the last tenth, s",
                ),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )
