"""Learning-rate jump: the rate goes up at once in the middle of its schedule, as after a resume that lost it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.lr_jumps import RateJump, rate_jumps
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import Pair, RunView

BEFORE, BEHIND = 10, 5
"""Values of the training loss on both sides of a jump that show its answer."""

SE_MIN = 3.0
"""Standard errors above which the loss has answered."""


@dataclass(frozen=True, kw_only=True)
class LrJump(Pass):
    """Unplanned rises of the learning rate, and what the training loss did at them."""

    code: ClassVar[str] = "lr-jump"
    title: ClassVar[str] = "Jump of the learning rate"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="The learning rate rose at once in the middle of a cycle of its schedule. Mostly a resume built the schedule anew: its step counter was lost, and the run was trained at rates that "
        "belong to its beginning.",
        rule="From one record to the next the rate rises by factor_min or more, after the first ascent (the warm-up), as one jump and not as a ramp. A jump is planned, and no finding, when the cycle "
        "before it had come to its end: the rate stood below 3 % of its peak, or flat at the bottom of its cycle. Rates that jump at more than 2 % of their records move by design. "
        "It is a warning when the training loss rose at the jump (median of 5 values behind against 10 before, by more than loss_rise_pct and three standard errors), when it happened at a resume, or when "
        "no training loss shows that it did no harm; else information.",
        abstains="Without a learning rate, or with fewer than min_records records of it.",
        confused_with="A warm restart (the cycle before it is complete), a cyclical schedule, a second phase of training with a rate of its own, the ramp of a warm-up.",
        remedies=(
            "Restore the scheduler with the optimizer: save and load its state, or set its last step, and look at the first rate that is logged after a resume.",
            "Go back to the checkpoint before the jump and continue with the rate that the schedule had there.",
            "If a second phase was meant, warm it up over a few hundred steps.",
        ),
        sources=(
            "Loshchilov and Hutter (2017), arXiv 1608.03983: warm restarts happen at the end of a cycle",
            "Ibrahim et al. (2024), arXiv 2403.08763: re-warming raises the loss at first",
        ),
    )

    factor_min: float = threshold(1.5, "rise from one record to the next", unit="times")
    loss_rise_pct: float = threshold(
        2.0, "rise of the training loss at the jump that is an answer to it", unit="%"
    )
    min_records: int = threshold(
        30, "records of the rate below which its course is not known", unit="records"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the learning rate: its highest unplanned jump."""
        lr = view.lr
        if lr is None or len(lr.y) < self.min_records:
            hint = view.map_hint("lr", "train")
            title = "Jump of the learning rate: no learning rate is recorded."
            if lr is not None:
                title = f"Jump of the learning rate: {lr.tag} has {count(len(lr.y), 'record')}."
            missing = f"{self.min_records} records of the learning rate" + (
                "" if lr is not None else f": {hint}"
            )
            yield abstained(self, view, title, (missing,))
            return
        jumps = rate_jumps(lr.y, self.factor_min)
        bad = [j for j in jumps if not j.planned]
        restarts = [lr.step_at(j.at) for j in jumps if j.planned]
        if not bad:
            planned = f" ({count(len(jumps), 'restart')} at the end of a cycle)" if jumps else ""
            title = f"{lr.tag} never jumps up in the middle of its schedule{planned}."
            yield refuted(self, view, title, {"lr_tag": lr.tag, "restarts": restarts})
            return
        yield self._finding(view, lr, bad, restarts)

    def _finding(
        self, view: RunView, lr: Series, jumps: list[RateJump], restarts: list[int | None]
    ) -> Finding:
        top = max(jumps, key=lambda j: j.factor)
        at = float(lr.xf[top.at])
        resumed = bool(np.diff(lr.attempt[lr.finite][top.at - 1 : top.at + 1]).any())
        rise, error = _answer(view, lr, at)
        answered = (
            None
            if rise is None or error is None
            else rise > max(math.log1p(self.loss_rise_pct / 100), SE_MIN * error)
        )
        values: dict[str, Any] = {
            "lr_tag": lr.tag,
            "jump_steps": [lr.step_at(j.at) for j in jumps],
            "restarts": restarts,
            "before_lr": top.before,
            "after_lr": top.after,
            "factor": top.factor,
            "after_share_of_peak_pct": 100 * top.after / float(lr.y.max()),
            "at_resume": resumed,
            "loss_rise_pct": None if rise is None else change_pct(rise),
            "loss_answered": answered,
        }
        first = min(jumps, key=lambda j: j.at)
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info" if answered is False and not resumed else "warning",
            run=view.name,
            rank=lr.rank,
            where=Where(
                step_start=lr.step_at(first.at),
                step_end=lr.step_at(max(j.at for j in jumps)),
                t_start_ns=lr.wall_at(first.at),
                t_end_ns=lr.wall_at(max(j.at for j in jumps)),
            ),
            title=_title(lr, at, values),
            effect=Effect(
                value=top.factor, unit="times the rate before", method="two neighbouring records, exact"
            ),
            evidence=(
                lr.evidence(lr.row_of(top.at - 1), "rate before"),
                lr.evidence(lr.row_of(top.at), "rate behind"),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _answer(view: RunView, lr: Series, at: float) -> tuple[float | None, float | None]:
    """(rise of the training loss at a place, its standard error), work scale; None where the loss does not show it."""
    loss = view.train_loss
    if loss is None or loss.scale != "log" or not Pair(train=loss, val=lr).same_axis:
        return None, None
    i = int(np.searchsorted(loss.xf, at))
    before, behind = loss.u[max(0, i - BEFORE) : i], loss.u[i : i + BEHIND]
    if len(before) < BEFORE or len(behind) < BEHIND:
        return None, None
    return float(np.median(behind) - np.median(before)), 1.2533 * loss.sigma * math.sqrt(
        1 / BEFORE + 1 / BEHIND
    )


def _title(lr: Series, at: float, values: dict[str, Any]) -> str:
    several = len(values["jump_steps"])
    times = f"{several} times, most" if several > 1 else "once,"
    where = f"at {place(lr, at)}" + (", where the run was resumed" if values["at_resume"] else "")
    rise = values["loss_rise_pct"]
    loss = ""
    if values["loss_answered"]:
        loss = f"; the training loss rose by {percent(rise)} there"
    elif rise is not None:
        loss = "; the training loss did not answer"
    size = f"from {number(values['before_lr'])} to {number(values['after_lr'])} ({number(values['factor'], 2)} times)"
    return f"{lr.tag} jumped up {times} {where}, in the middle of its schedule: {size}{loss}."
