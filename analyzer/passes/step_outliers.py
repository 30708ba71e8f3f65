"""Step outliers: single steps that take far longer than their neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import count, number, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.stats import mad_sd, running_median
from afterrun.analyzer.steps.times import StepTimes, step_times
from afterrun.analyzer.trace.within import largest_gap
from afterrun.analyzer.trace.words import CAUSE_WORDS
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

NEIGHBOURS = 51
"""Steps over which the usual time is taken, so that a slow drift makes no outliers."""

LISTED = 10


@dataclass(frozen=True)
class StepOutliers(Pass):
    """Steps far above the running median of their neighbours, and what they cost together."""

    code: ClassVar[str] = "step-outliers"
    title: ClassVar[str] = "Slow single steps"
    about: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ()
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="Some steps take far longer than those around them: evaluation, checkpoints, a hiccup of storage or network, garbage collection, recompilation.",
        rule="On the logarithm of step times minus their running median: a robust z above z_min and at least excess_pct above the median. The cost is the sum of what they take beyond the median, over all time. Possible information, and a possible warning from warn_pct of the time where steps themselves were timed: between logged rows lie evaluation and checkpoints too. "
        "When most of them lie at equal distances, that period is named.",
        abstains="With fewer than 20 step times from any record.",
        confused_with="Averages over many steps, which hide them; a first step that compiles.",
        remedies=(
            "Compare the period with those of evaluation, checkpoints, logging and the number of loader workers.",
            "Open one of the slow steps in a trace: its idle time has a cause there.",
        ),
        sources=("SageMaker Debugger, StepOutlier", "Iglewicz and Hoaglin (1993): robust z scores"),
    )

    z_min: float = threshold(6.0, "robust z of an outlier", unit="")
    excess_pct: float = threshold(
        20.0, "time above the running median that an outlier has at least", unit="%"
    )
    warn_pct: float = threshold(10.0, "share of all time lost to outliers that is a warning", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run."""
        times = step_times(view)
        if times is None:
            missing = ("step times: logged, or a wall clock with each row, or a trace with step marks",)
            yield abstained(self, view, "Not assessable: fewer than 20 step times are recorded.", missing)
            return
        yield self._of(view, times)

    def _of(self, view: RunView, times: StepTimes) -> Finding:
        log = np.log(times.seconds)
        usual = running_median(log, min(NEIGHBOURS, len(log) // 2 * 2 - 1))
        scale = max(mad_sd(log - usual), 1e-3)
        out = np.flatnonzero(
            ((log - usual) / scale > self.z_min) & (np.expm1(log - usual) > self.excess_pct / 100)
        )
        out = out[
            out != np.arange(len(out))
        ]  # the slow first ones, one after the other, are the start (slow-start)
        lost = times.seconds[out] - np.exp(usual[out])
        share = 100.0 * float(lost.sum() / times.seconds.sum())
        period = _period(times.step[out])
        values: dict[str, Any] = {
            "outliers": len(out),
            "steps": len(times),
            "lost_pct": share,
            "median_s": float(np.median(times.seconds)),
            "longest_s": float(times.seconds[out].max()) if len(out) else None,
            "period_steps": period,
            "origin": times.origin,
            "every_steps": times.every,
            "listed_steps": times.step[out[np.argsort(-lost)[:LISTED]]],
        }
        if not len(out):
            return refuted(
                self, view, f"No step stands out among {len(times)} ({times.origin}).", jsonable(values)
            )
        worst = int(out[np.argmax(lost)])
        values["gap"] = gap = _gap(view, times, worst)
        # between rows lie evaluation, checkpoints and whatever the loop does beside its steps
        warn = share >= self.warn_pct and times.origin != "wall clock between rows"
        every = f", every {number(period)} steps" if period else ""
        length = (
            ""
            if times.relative
            else f", the longest {span_time(times.seconds[worst] * 1e9)} against {span_time(values['median_s'] * 1e9)}"
        )
        spoken = count(len(out), "step takes", "steps take")
        return Finding(
            code=self.code,
            status="possible",
            severity="warning" if warn else "info",
            run=view.name,
            where=Where(step_start=int(times.step[out[0]]), step_end=int(times.step[out[-1]])),
            title=f"{spoken} far longer than the others{every}{length}; together {percent(share)} of the time ({times.origin}).{_gap_words(gap)}",
            effect=Effect(
                value=share, unit="% of the time lost to slow steps", method="excess over the running median"
            ),
            evidence=(
                Evidence(
                    source=times.source,
                    tag=times.tag,
                    step=int(times.step[worst]),
                    value=float(times.seconds[worst]),
                    note="slowest step, s",
                ),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies if warn else (),
            values=jsonable(values),
        )


def _gap(view: RunView, times: StepTimes, worst: int) -> dict[str, Any] | None:
    """The largest gap of any device inside the slowest step, where a trace lies on the same clock."""
    if times.t_ns is None or times.relative:
        return None
    end = int(times.t_ns[worst])
    return largest_gap(view.trace, end - int(times.seconds[worst] * times.every * 1e9), end)


def _gap_words(gap: dict[str, Any] | None) -> str:
    if gap is None:
        return ""
    return f" Inside the slowest one GPU {gap['device']} stood idle for {span_time(gap['inside_ns'])}: {CAUSE_WORDS[gap['cause']]}."


def _period(steps: np.ndarray) -> float | None:
    """The distance of most outliers from the one before, where more than two thirds share it."""
    gaps = np.diff(steps)
    if len(gaps) < 3:
        return None
    values, counts = np.unique(gaps, return_counts=True)
    best = int(counts.argmax())
    return float(values[best]) if counts[best] > 2 * len(gaps) / 3 else None
