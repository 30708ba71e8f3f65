"""Dead learning rate: the schedule reached zero long before the run ended."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.flatness import Stretch, stretch
from afterrun.analyzer.curves.lr_schedule import Schedule
from afterrun.analyzer.finding import Effect, Finding, Status, Where, jsonable
from afterrun.analyzer.prose import change_pct, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

LOSS_POINTS = 10
"""Fewer values of the loss in the dead part say nothing about its course."""


@dataclass(frozen=True, kw_only=True)
class LrDead(Pass):
    """Learning rate near zero for a large last part of the run."""

    code: ClassVar[str] = "lr-dead"
    title: ClassVar[str] = "Dead learning rate"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The learning rate was next to zero for a large last part of the run: the weights could not move, and every step after that was paid for nothing. "
        "Usually the schedule was planned for fewer steps than were run.",
        rule="The last record with a learning rate of at least dead_pct of its peak ends the living part. What follows must be at least min_share of the run, for every parameter group. "
        "dead_pct lies just under 1 % so that two drops by ten are not dead; a cosine spends its last 6 % below it, a linear decay its last 1 %, a cubic one its last 21 %. "
        "A rate of zero (below zero_pct) is confirmed as it stands. A small one is confirmed where the training loss does not improve by more than tolerance_pct any more, "
        "and is information where it still does.",
        abstains="Without a learning rate.",
        confused_with="The regular end of a schedule, a staircase whose last stage is small, a warm restart, a rate that is logged for a frozen parameter group only.",
        remedies=(
            "Give the scheduler the number of optimizer steps that are really run: steps, not epochs; divided by gradient accumulation; not multiplied by the number of ranks.",
            "Check that scheduler.step() is not called twice a step or once a micro-batch.",
            "Stop at the end of the schedule, or extend it with a minimum rate (a tenth of the peak is usual).",
            "To go on from the last checkpoint, warm up to a fraction of the peak and decay again.",
        ),
        sources=(
            "Loshchilov and Hutter (2017): cosine annealing reaches zero at the planned last step",
            "Hugging Face Trainer: num_training_steps fixes the schedule; Hoffmann et al. (2022): a schedule longer or shorter than the run costs quality",
        ),
    )

    dead_pct: float = threshold(
        0.9, "a learning rate below this cannot move the weights", unit="% of its peak"
    )
    zero_pct: float = threshold(0.01, "a learning rate below this counts as zero", unit="% of its peak")
    min_share: float = threshold(0.15, "least length of the dead part", unit="share of the run")
    tolerance_pct: float = threshold(
        0.5, "a loss that surely improves by more than this over the dead part is not dead", unit="%"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about all learning rates of the run."""
        rates = [s for s in view.lead if s.metric == "lr" and len(s.y) > 1]
        main = view.lr
        if main is None or not rates:
            hint = view.map_hint("lr", "train")
            yield abstained(
                self,
                view,
                "Dead learning rate: no learning rate is recorded.",
                (f"the learning rate: {hint}",),
            )
            return
        onsets = [Schedule(s).below_from(self.dead_pct / 100.0) for s in rates]
        onset = None if None in onsets else max(x for x in onsets if x is not None)
        end = float(main.xf[-1])
        share = 0.0 if onset is None else (end - onset) / max(main.span, 1e-12)
        if onset is None or share < self.min_share:
            yield refuted(
                self, view, _alive_title(main, onset, share), self._values(main, onset, share, None)
            )
            return
        tail = _loss_after(view, onset, end)
        yield self._judge(view, main, onset, share, tail)

    def _judge(self, view: RunView, lr: Series, onset: float, share: float, tail: Stretch | None) -> Finding:
        level = float(np.median(Schedule(lr).relative[lr.xf >= onset]))
        zero = level < self.zero_pct / 100.0
        course = None if tail is None else tail.course(math.log1p(self.tolerance_pct / 100.0))
        values = self._values(lr, onset, share, tail) | {
            "level_pct_of_peak": 100.0 * level,
            "loss_course": course,
        }
        if course == "improving" and not zero:
            title = (
                f"The learning rate is alive: from {place(lr, onset)} on it is only {number(100.0 * level, 2)} % of its peak, "
                f"but the training loss still improved by {percent(values['loss_improvement_pct'])}."
            )
            return refuted(self, view, title, jsonable(values))
        sure = course in ("flat", "rising") if not zero else course != "improving"
        return self._finding(view, lr, onset, "confirmed" if sure else "possible", values)

    def _values(self, lr: Series, onset: float | None, share: float, tail: Stretch | None) -> dict[str, Any]:
        schedule = Schedule(lr)
        return {
            "lr_tag": lr.tag,
            "peak_lr": schedule.peak,
            "peak_step": lr.step_at(int(np.argmax(lr.y))),
            "last_lr": float(lr.y[-1]),
            "onset_step": None if onset is None or not lr.has_step else int(onset),
            "dead_share_pct": 100.0 * share,
            "loss_improvement_pct": None if tail is None else -change_pct(-tail.improvement),
            "loss_improvement_low_pct": None if tail is None else -change_pct(-tail.low),
            "loss_improvement_high_pct": None if tail is None else -change_pct(-tail.high),
        }

    def _finding(
        self, view: RunView, lr: Series, onset: float, status: Status, values: dict[str, Any]
    ) -> Finding:
        first = int(np.searchsorted(lr.xf, onset))
        before = float(lr.xf[max(0, first - 1)])
        end, span = float(lr.xf[-1]), max(lr.span, 1e-12)
        wasted = view.gpu_s_between(onset, end) if lr.has_step else None
        return Finding(
            code=self.code,
            status=status,
            severity="warning",
            run=view.name,
            rank=lr.rank,
            where=Where(
                step_start=lr.step_at(first),
                step_end=lr.step_at(len(lr.y) - 1),
                t_start_ns=lr.wall_at(first),
                t_end_ns=lr.wall_at(len(lr.y) - 1),
            ),
            title=_title(lr, onset, values),
            effect=Effect(
                value=values["dead_share_pct"],
                low=values["dead_share_pct"],
                high=100.0 * (end - before) / span,
                unit="% of the run at a dead learning rate",
                level=1.0,
                method="between the last living and the first dead record",
            ),
            evidence=(
                lr.evidence(lr.row_of(int(np.argmax(lr.y))), "peak"),
                *((lr.evidence(lr.row_of(first - 1), "last living record"),) if first else ()),
                lr.evidence(lr.row_of(first), "first dead record"),
                lr.evidence(lr.row_of(len(lr.y) - 1), "last record"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=wasted,
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _loss_after(view: RunView, onset: float, end: float) -> Stretch | None:
    """Course of the training loss over the dead part; None where it is missing or runs on another axis."""
    loss = view.train_loss
    if loss is None or loss.scale != "log" or not 0.5 * end <= loss.xf[-1] <= 2.0 * end:
        return None
    start = int(np.searchsorted(loss.xf, onset))
    return stretch(loss, start) if len(loss.y) - start >= LOSS_POINTS else None


def _alive_title(lr: Series, onset: float | None, share: float) -> str:
    peak = number(Schedule(lr).peak)
    if onset is None:
        return f"The learning rate is alive to the end: peak {peak}, last {number(float(lr.y[-1]))}."
    length = f"for the last {percent(100.0 * share)} of the run" if share > 0.0 else "its last record"
    return f"The learning rate (peak {peak}) ends where the run ends: at {place(lr, onset)}, {length}."


def _title(lr: Series, onset: float, values: dict[str, Any]) -> str:
    if values["peak_lr"] <= 0.0:
        return f"{lr.tag} is zero from the first record to the last: nothing could be learned."
    level = values["level_pct_of_peak"]
    last = 100.0 * max(values["last_lr"], 0.0) / values["peak_lr"]
    ends = "at zero" if last < 1e-6 else f"at {number(last, 2)} %"
    now = "zero" if level < 1e-6 else "below 1 % of its peak"
    close = "" if level < 1e-6 else f", ends {ends}"
    said = f"{lr.tag} is {now} from {place(lr, onset)} to the end, {percent(values['dead_share_pct'])} of the run{close}"
    gain = values["loss_improvement_pct"]
    if gain is None:
        return f"{said}."
    low, high = values["loss_improvement_low_pct"], values["loss_improvement_high_pct"]
    moved = {"improving": "improved", "rising": "rose"}.get(
        values["loss_course"] or "", "did not surely move"
    )
    moved = "did not move" if values["loss_course"] == "flat" else moved
    return f"{said}; the training loss {moved} meanwhile ({number(gain, 2)} %, interval {number(low, 2)} to {number(high, 2)} %)."
