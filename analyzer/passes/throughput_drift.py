"""Throughput drift: steps that take longer and longer, or suddenly take longer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.steps.rise import rise
from afterrun.analyzer.steps.times import StepTimes, step_times
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

WARM_UP = 0.1
"""Share of the steps that are left out at the start."""

Z_99 = 2.576
"""Standard errors on either side of a 99 % interval."""


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
        rule="Logarithm of step times after the first tenth, as medians of blocks. Where a level followed by another level, or by a straight climb, fits them best is the onset; blocks are sized by the autocorrelation of what the fit leaves. They rise when the fit is better than a level alone by F >= f_min, the supremum over all onsets, and the 99 % interval of the change lies above zero. Possible warning when the end lies at least warn_pct above the level before the onset, information from info_pct.",
        abstains="With fewer than min_steps step times, and where the end lies warn_pct above the beginning but the interval holds zero.",
        confused_with="Sequences that grow by curriculum; evaluation that grows; a scheduler that shares the node with other jobs later.",
        remedies=(
            "Look at memory beside it: growing lists, fragmentation and swapping slow steps down.",
            "Look at clocks and temperatures: throttling sets in after minutes.",
            "Look at the loader: shards at the end of the data set may be larger or colder.",
        ),
        sources=(
            "Hinkley (1971): two-phase regression",
            "Andrews (1993): tests for a change at an unknown point",
        ),
    )

    f_min: float = threshold(
        25.0,
        "F of the fit with an onset against a level alone",
        unit="",
        source="Andrews (1993); noise of AR(1) up to 0.95 reaches it in 1 % of runs",
    )
    info_pct: float = threshold(5.0, "growth of the step time since its onset that is told", unit="%")
    warn_pct: float = threshold(15.0, "growth of the step time since its onset that is a warning", unit="%")
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
        found = rise(log, z=Z_99)
        onset = first if found is None else first + found.onset
        change, low, high = (
            (None, None, None)
            if found is None
            else (change_pct(found.change), change_pct(found.low), change_pct(found.high))
        )
        tail = len(log) // 10 + 1
        values: dict[str, Any] = {
            "change_pct": change,
            "low_pct": low,
            "high_pct": high,
            "f": None if found is None else found.f,
            "median_first_s": float(np.median(times.seconds[first : max(onset, first + 1)])),
            "median_last_s": float(np.median(times.seconds[-tail:])),
            "origin": times.origin,
            "steps": len(times),
        }
        if found is None or change is None or low is None or high is None or found.f < self.f_min:
            title = f"Step times do not grow over the run ({times.origin})."
            return refuted(self, view, title, jsonable(values))
        if low <= 0 and change >= self.warn_pct:
            title = f"Too uncertain to call: step times grew by {percent(change)}, between {percent(low)} and {percent(high)} (99 % interval)."
            return abstained(self, view, title, ("more step times before the growth",), jsonable(values))
        if low <= 0 or change < self.info_pct:
            title = f"Step times do not grow over the run ({times.origin})."
            return refuted(self, view, title, jsonable(values))
        warn = change >= self.warn_pct
        return Finding(
            code=self.code,
            status="possible",
            severity="warning" if warn else "info",
            run=view.name,
            where=Where(step_start=int(times.step[onset]), step_end=int(times.step[-1])),
            title=f"Steps take {percent(change)} longer at the end of the run than before step {int(times.step[onset]):,} ({times.origin}).",
            effect=Effect(
                value=change,
                low=low,
                high=high,
                unit="% change of the step time since its onset",
                level=0.99,
                method="medians of blocks before the onset and of the last tenth",
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
