"""Still improving: the run ended while the loss was surely falling."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.carry_forward import real_points
from afterrun.analyzer.curves.flatness import Stretch, last_window, span_of
from afterrun.analyzer.curves.lr_schedule import Schedule
from afterrun.analyzer.finding import Effect, Finding, Status, Where, jsonable
from afterrun.analyzer.prose import change_pct, count, number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import running_median
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

END_SHARE = 0.05
"""Last part of a curve that is its end."""

SAMPLE_SCORES = frozenset({"fid", "kid"})
"""Distances between generated and real samples: lower is better, but nothing descends their gradient."""

NOISE_FACTOR = 3.0
"""Standard errors of a difference of two blocks from which an end stands above the best."""


@dataclass(frozen=True, kw_only=True)
class StillImproving(Pass):
    """Trend of training and held-out loss at the end of the run. Information, never an alarm."""

    code: ClassVar[str] = "still-improving"
    title: ClassVar[str] = "Still improving at the end"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("overfit",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The loss was still falling when the run ended and the learning rate was not used up: a longer run would have gone lower. It is information, not a fault.",
        rule="Over the last max(window_share, window_points, but at most a third of the points) the improvement is Theil-Sen slope times length on block means. Confirmed where its 95 % interval lies above "
        "the tolerance (train_tolerance_pct, val_tolerance_pct), possible where the estimate does and the trend is significant (p < p_possible). "
        "Suppressed where the learning rate has come below ended_lr_pct of its peak, and where the held-out loss turned or rises.",
        abstains="Without a training loss or with fewer than min_points values.",
        confused_with="The last drop of a cosine or staircase schedule, which ends with the schedule; a training loss that falls by memorising.",
        remedies=(
            "Train longer, with the schedule stretched to the new length: going on at the end of a decayed schedule gains little.",
            "Compare runs at equal budget: the order may change when all are trained to the end.",
        ),
        sources=(
            "Google tuning playbook: a best result at the last steps means the training is limited by compute",
            "Theil (1950), Sen (1968): slope and its interval",
        ),
    )

    min_points: int = threshold(
        12, "values of the training loss below which the pass abstains", unit="points"
    )
    window_points: int = threshold(200, "least length of the last window", unit="points")
    window_share: float = threshold(0.2, "least length of the last window", unit="share of the points")
    train_tolerance_pct: float = threshold(
        0.5, "improvement of the training loss over the window that counts", unit="%"
    )
    val_tolerance_pct: float = threshold(
        0.2, "improvement of the held-out loss over the window that counts", unit="%"
    )
    p_possible: float = threshold(0.05, "p value of the falling trend for 'possible'")
    ended_lr_pct: float = threshold(1.0, "a learning rate below this has ended", unit="% of its peak")
    val_behind_pct: float = threshold(
        5.0,
        "level of the held-out loss at the end above its best, from which more training is no remedy",
        unit="%",
    )
    recovering_pct: float = threshold(
        5.0,
        "level of the training loss at the end above its own best, from which it is only recovering",
        unit="%",
    )
    min_evals: int = threshold(10, "evaluations needed to judge the held-out loss", unit="evaluations")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the end of the run."""
        s = view.train_loss
        # a score of the generated samples (FID) is no objective, even where it is the only falling curve
        if s is None or s.kind != "loss" or s.metric in SAMPLE_SCORES:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Still improving: no training loss is recorded.", (f"a training loss: {hint}",)
            )
            return
        s, _ = real_points(s)
        if len(s.y) < self.min_points:
            title = f"Still improving: not enough data, {s.tag} has {count(len(s.y), 'value')}."
            yield abstained(
                self, view, title, (f"{self.min_points} values of {s.tag}",), {"points": len(s.y)}
            )
            return
        part = last_window(s, self.window_share, self.window_points)
        status = self._status(part, self.train_tolerance_pct)
        val, val_part = self._held_out(view)
        values: dict[str, Any] = {
            "tag": s.tag,
            "window_points": part.end - part.start,
            "window_start_step": s.step_at(part.start),
            **_improvement("train", s, part),
            "val_tag": None if val is None else val.tag,
            **({} if val is None or val_part is None else _improvement("val", val, val_part)),
            "val_status": None if val_part is None else self._status(val_part, self.val_tolerance_pct),
            "lr_last_pct_of_peak": _last_lr(view),
            "train_above_best_pct": above_best_pct(s),
            "val_above_best_pct": None if val is None or val_part is None else above_best_pct(val),
        }
        reason = self._reason(view, status, values, val_part)
        if reason:
            yield refuted(self, view, reason, jsonable(values))
            return
        yield self._finding(view, s, part, status, values)

    def _status(self, part: Stretch, tolerance_pct: float) -> Status:
        tolerance = math.log1p(tolerance_pct / 100.0)
        if part.course(tolerance) == "improving":
            return "confirmed"
        sure = part.improvement > tolerance and part.p_improving < self.p_possible
        return "possible" if sure else "refuted"

    def _held_out(self, view: RunView) -> tuple[Series | None, Stretch | None]:
        found = view.pick("loss", "val", "test")
        if found is None:
            return None, None
        val, _ = real_points(found)
        if len(val.y) < self.min_evals:
            return val, None
        return val, last_window(val, self.window_share, self.window_points)

    def _reason(self, view: RunView, status: Status, values: dict[str, Any], val: Stretch | None) -> str:
        """Why there is nothing to tell; empty where there is."""
        tag, change = values["tag"], _text(values, "train")
        over = f"over the last {count(values['window_points'], 'value')}"
        if status == "refuted":
            sure = values["train_improvement_high_pct"] < self.train_tolerance_pct
            head = "Not improving any more" if sure else "No sure improvement"
            return f"{head}: {over}, {tag} gained {change}."
        lr = values["lr_last_pct_of_peak"]
        if lr is not None and lr < self.ended_lr_pct:
            return f"{tag} improved by {change} {over}, but the learning rate has ended ({number(lr, 2)} % of its peak)."
        back = values["train_above_best_pct"]
        if back is not None and back > self.recovering_pct:
            return f"{tag} improved by {change} {over}, but it was already lower before ({percent(back)} above its own best): it is recovering."
        turned = any(f.status in ("confirmed", "possible") for f in view.earlier.get("overfit", ()))
        if turned or (val is not None and val.course(math.log1p(self.val_tolerance_pct / 100.0)) == "rising"):
            return f"{tag} improved by {change} {over}, but {values['val_tag'] or 'the held-out metric'} got worse meanwhile."
        behind = values["val_above_best_pct"]
        if behind is not None and behind > self.val_behind_pct:
            return f"{tag} improved by {change} {over}, but {values['val_tag']} ends {percent(behind)} above its best."
        return ""

    def _finding(
        self, view: RunView, s: Series, part: Stretch, status: Status, values: dict[str, Any]
    ) -> Finding:
        held = (
            ": a longer run would have gone lower"
            if status == "confirmed"
            else ": a longer run might have gone lower"
        )
        if values["val_status"] in ("confirmed", "possible"):
            held = f", {values['val_tag']} by {_text(values, 'val')}{held}"
        elif values["val_status"] == "refuted":
            held = f", but {values['val_tag']} no longer surely does"
        return Finding(
            code=self.code,
            status=status,
            severity="info",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(part.start),
                step_end=s.step_at(len(s.y) - 1),
                t_start_ns=s.wall_at(part.start),
                t_end_ns=s.wall_at(len(s.y) - 1),
            ),
            title=f"{s.tag} still improved by {_text(values, 'train')} over the last {count(values['window_points'], 'value')}{held}.",
            effect=Effect(
                value=values["train_improvement_pct"],
                low=values["train_improvement_low_pct"],
                high=values["train_improvement_high_pct"],
                unit="% improvement over the last window",
                method="Theil-Sen slope on block means, Sen's interval",
            ),
            evidence=(
                s.evidence(s.row_of(part.start), "start of the last window"),
                s.evidence(s.row_of(len(s.y) - 1), "last value"),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def above_best_pct(s: Series) -> float | None:
    """Level of the end above the lowest level before it in percent, beyond noise; None where no ratio exists or too few points do.

    The end is set against what came before it only: a curve that falls to its last point is at its best.
    """
    if s.scale != "log" or len(s.y) < 10:
        return None
    end = max(2, round(END_SHARE * len(s.u)))
    before = running_median(s.u[:-end], end + 1 - end % 2)
    height = float(np.median(s.u[-end:]) - before.min())
    se = 1.2533 * s.sigma * math.sqrt(2.0 / end)
    return change_pct(height) if height > NOISE_FACTOR * se else 0.0


def _improvement(split: str, s: Series, part: Stretch) -> dict[str, float]:
    """Improvement of the window in percent: of the loss, or of the range of a metric that changes sign."""
    low, mid, high = (
        -change_pct(-x) if s.scale == "log" else 100.0 * x / (1.0 if s.scale == "raw" else span_of(s))
        for x in (part.low, part.improvement, part.high)
    )
    return {
        f"{split}_improvement_low_pct": low,
        f"{split}_improvement_pct": mid,
        f"{split}_improvement_high_pct": high,
    }


def _text(values: dict[str, Any], split: str) -> str:
    low, mid, high = (values[f"{split}_improvement_{k}"] for k in ("low_pct", "pct", "high_pct"))
    return f"{percent(mid)} [{number(low, 2)}, {number(high, 2)}]"


def _last_lr(view: RunView) -> float | None:
    lr = view.lr
    if lr is None or Schedule(lr).peak <= 0.0:
        return None if lr is None else 0.0
    return 100.0 * float(np.clip(Schedule(lr).relative[-1], 0.0, 1.0))
