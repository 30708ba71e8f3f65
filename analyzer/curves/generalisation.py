"""Training against held-out curve: did the held-out one turn for good while training went on improving?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from afterrun.analyzer.curves.matching import Matched, stand_ins
from afterrun.analyzer.curves.turning import Turn, turning_point
from afterrun.analyzer.prose import change_pct
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array, trend
from afterrun.analyzer.view import Pair, RunView

Course = Literal["improving", "rising", "flat", "unclear"]
"""What the training curve did after the turn; ``unclear`` where its noise hides it."""

POINT = 0.01
"""One percentage point of an accuracy."""

FLAT_PCT = 2.0
"""A training curve whose change is known to be smaller than this stands still."""


TINY_SHARE = 0.1
"""A change of the training curve that is known to be less than this part of the held-out rise does not explain it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainLeg:
    """The training curve from the turn to the end, on the work scale (lower is better)."""

    course: Course
    change: float
    """Level of the last tenth minus level of the first tenth."""
    low: float
    high: float
    """95 % interval of the Theil-Sen line over the stretch: what ``course`` rests on."""
    at_floor: bool
    """Nothing left to learn from the training set: it cannot fall any more."""

    @property
    def goes_on(self) -> bool:
        """Whether training neither got worse nor stood still short of its floor."""
        return self.at_floor or self.course in ("improving", "unclear")


@dataclass(frozen=True, eq=False, kw_only=True)
class Assessment:
    """The turn of the held-out curve and what training did meanwhile."""

    matched: Matched
    turn: Turn
    train: TrainLeg
    least_rise: float
    """Rise on the work scale below which nobody cares."""

    @property
    def val(self) -> Series:
        """The held-out series."""
        return self.matched.pair.val

    def size(self, rise: float) -> float:
        """A rise on the work scale in the unit of ``unit``: percent, percentage points or as it is."""
        if self.val.scale == "log":
            return 100.0 * math.expm1(min(rise, 700.0))
        best = self.turn.smooth[self.turn.best]
        if self.val.scale == "logit":
            a, b = self.val.from_work(np.array([-best, -best - rise]))
            return 100.0 * float(a - b)
        return rise

    @property
    def unit(self) -> str:
        """The unit of ``size``."""
        return {"log": "%", "logit": "percentage points", "raw": ""}[self.val.scale]


def assess(matched: Matched, *, min_rise_pct: float, floor_share: float) -> Assessment:
    """Turn and training leg of a matched pair with at least three evaluations."""
    skip = min(max(1, len(matched.val) // 10), 20)
    turn = turning_point(matched.val_cost, skip=skip)
    return Assessment(
        matched=matched,
        turn=turn,
        train=train_leg(matched, turn.best, floor_share, turn.rise),
        least_rise=_least_rise(matched.pair.val, turn, min_rise_pct),
    )


def _least_rise(val: Series, turn: Turn, min_rise_pct: float) -> float:
    """``min_rise_pct`` of a loss, as many points of an accuracy, as many percent of the range of the rest."""
    share = min_rise_pct / 100.0
    if val.scale == "log":
        return math.log1p(share)
    if val.scale == "logit":
        best = float(val.from_work(np.array([-turn.smooth[turn.best]]))[0])
        worse = val.to_work(np.array([best, best - share]))
        return float(worse[0] - worse[1])
    return share * float(np.ptp(turn.smooth))


def train_leg(matched: Matched, best: int, floor_share: float, rise: float) -> TrainLeg:
    """The training curve after evaluation ``best``, from which on the held-out one rose by ``rise``."""
    train = matched.pair.train
    tail = matched.train_since(best)
    if len(tail) < 4:
        tail = matched.train_cost[best:]
    t = trend(tail)
    length = max(len(tail) - 1, 0)
    low, high = t.low * length, t.high * length
    end = max(1, len(tail) // 10)
    change = float(np.median(tail[-end:]) - np.median(tail[:end])) if len(tail) else 0.0
    still = math.log1p(FLAT_PCT / 100.0)
    course: Course = "unclear"
    if max(abs(low), abs(high)) < min(still, TINY_SHARE * rise):
        course = "flat"
    elif high < 0.0:
        course = "improving"
    elif low > 0.0:
        course = "rising"
    elif max(abs(low), abs(high)) < still:
        course = "flat"
    return TrainLeg(
        course=course,
        change=change,
        low=low,
        high=high,
        at_floor=_at_floor(train, matched.train, floor_share),
    )


def _at_floor(train: Series, means: Array, floor_share: float) -> bool:
    """A loss below ``floor_share`` of its start, an accuracy within ``floor_share`` of one."""
    end = float(np.median(means[-3:]))
    if train.scale == "logit":
        return end > 1.0 - floor_share
    return train.scale == "log" and end < floor_share * float(np.median(train.y[:3]))


def compared(m: Matched) -> dict[str, Any]:
    """What was compared, whether or not a verdict is possible."""
    n = len(m.val)
    out: dict[str, Any] = {
        "train_tag": m.pair.train.tag,
        "val_tag": m.pair.val.tag,
        "evaluations": n,
        "matched_by": m.axis,
        "train_points_per_evaluation": m.train_per_val,
        "repeated_rows": m.carried,
        "remarks": list(m.remarks),
    }
    if n:
        q = min(3, n)
        gap = m.val - m.train
        raw_best = int(np.argmax(m.val) if m.pair.val.better == "max" else np.argmin(m.val))
        out |= {
            "best_step": m.step_at(raw_best),
            "best_value": float(m.val[raw_best]),
            "last_step": m.step_at(n - 1),
            "last_value": float(m.val[-1]),
            # different metrics have no gap
            "gap_start": float(np.median(gap[:q])) if m.pair.train.metric == m.pair.val.metric else None,
            "gap_end": float(np.median(gap[-q:])) if m.pair.train.metric == m.pair.val.metric else None,
        }
    return out


def measures(found: Assessment) -> dict[str, Any]:
    """Every number of the assessment, by name."""
    m, turn, train = found.matched, found.turn, found.train
    cost = m.val_cost
    regret = float(cost[-1] - cost.min())
    log = m.pair.train.scale == "log"
    smoothed = -turn.smooth if found.val.better == "max" else turn.smooth
    return {
        "onset_step": m.step_at(turn.best),
        "onset_low_step": m.step_at(turn.low),
        "onset_high_step": m.step_at(turn.high),
        "smoothed_best_step": m.step_at(turn.best),
        "smoothed_best_value": float(found.val.from_work(smoothed[[turn.best]])[0]),
        "evaluations_after": turn.after,
        "rise": found.size(turn.height),
        "rise_tested": found.size(turn.rise),
        "rise_unit": found.unit,
        "rise_se_work": turn.se,
        "p_rising": turn.p_up,
        "val_noise_work": turn.sigma,
        "regret_pct": change_pct(regret) if found.val.scale == "log" else None,
        "regret": found.size(regret),
        "train_course": train.course,
        "train_at_floor": train.at_floor,
        "train_at_onset": float(m.train[turn.best]),
        "train_last": float(m.train[-1]),
        "train_change_pct": change_pct(train.change) if log else None,
        "train_trend_low_pct": change_pct(train.low) if log else None,
        "train_trend_high_pct": change_pct(train.high) if log else None,
    }


def other_metrics(view: RunView, main: Pair) -> list[dict[str, Any]]:
    """Best and last of every other held-out metric: which checkpoint to keep depends on the metric that counts."""
    out = []
    for pair in view.pairs or stand_ins(view):
        v = pair.val
        if v.tag == main.val.tag or len(v.y) < 2:
            continue
        best = int(np.argmin(v.cost))
        out.append(
            {
                "tag": v.tag,
                "best_step": v.step_at(best),
                "best_value": float(v.y[best]),
                "last_value": float(v.y[-1]),
                "better": v.better,
            }
        )
    return out
