"""Why a curve stands still: eight causes, each with the record that speaks for it, best first.

A plateau is often taken for a learning rate that is too low; that is one cause of eight.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from afterrun.analyzer.curves.descent import Descent
from afterrun.analyzer.curves.lr_schedule import Schedule
from afterrun.analyzer.curves.patience import reduce_on_plateau
from afterrun.analyzer.prose import number, percent
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array, detrend, trend
from afterrun.analyzer.view import RunView

LR_ENDED = 0.1
"""Below a tenth of its peak a decaying rate moves little: cosine spends its last fifth there."""

MOST = 0.8
"""Share of the stretch in which a condition must hold."""

LONG_WARMUP = 0.1
"""A warm-up longer than this share of the run is long (usual: up to 5 %)."""

LOSS_FLOOR = 1e-3
ACCURACY_FLOOR = 0.999
"""A training loss below, or accuracy above, has nothing left to learn."""

DEAD_NORM = 1e-7
DEAD_RATIO = 1e-3
"""A gradient norm below this, or this share of its earlier level, is dead."""

FROZEN = 1e-9
"""A parameter norm that varies by less than this share does not move."""

FALLING_P = 0.01
"""p value of a trend below which a loss surely falls."""

AIC_MARGIN = 10.0
"""Akaike difference that decides between two explanations."""

SWING_P = 1e-3
"""p value of Fisher's test for a periodic swing."""


REMEDIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "never_moved": (
            "Check that parameters require gradients and that the optimizer holds them.",
            "Overfit one batch on purpose: if its loss does not fall either, the fault is in model, loss or labels.",
            "Check labels, masks and the learning rate (zero, or far too low or high).",
        ),
        "frozen": (
            "Check the learning rate and that the optimizer holds the parameters that should train.",
            "Check that no wrapper detached the graph or froze the layers.",
        ),
        "dead_gradients": (
            "Look at gradient norms by layer: find where they vanish.",
            "Check initialisation and saturated or dead activations; use residual paths or normalisation.",
            "In fp16 check the loss scale for underflow.",
        ),
        "converged": (
            "Plan fewer steps, or use the time for a larger model or more data.",
            "Check on held-out data that the level reached is the one wanted.",
        ),
        "schedule_end": (
            "Plan the schedule for the steps that are really run, or stop where it ends.",
            "Restart from the last checkpoint with a higher rate if the loss should still fall.",
        ),
        "lr_too_high": (
            "Lower the learning rate earlier, by a factor of 3 to 10, or decay it smoothly from the onset on.",
            "Use a larger batch or average the weights over the last steps.",
        ),
        "lr_too_low": (
            "Raise the learning rate by 3 to 10 and compare the loss at equal steps.",
            "Shorten the warm-up, and check that the rate is not divided twice (by ranks or accumulation).",
        ),
        "warmup_too_long": ("Shorten the warm-up to 1 to 5 % of the steps.",),
        "plateau_scheduler_idle": (
            "Check that scheduler.step(metric) is called, with the right metric and mode.",
            "Lower its patience or raise its threshold: noise counts as improvement.",
        ),
        "unexplained": (
            "Continue from a checkpoint before the onset with a third of the learning rate, then with three times as much: what helps names the cause.",
            "Look at gradient norms by layer and at the update ratio (about 1e-3 is usual).",
            "Overfit a small subset to tell a limit of the model from a limit of the optimisation.",
            "Plot a run of the same recipe that trained well on top of this one.",
        ),
    }
)
"""What to try for each cause, in the order to try it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A name of the vocabulary and the sentence that supports it."""

    name: str
    because: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """What is known about a flat stretch [start, end] (axis units) of the training loss."""

    view: RunView
    loss: Series
    start: float
    end: float
    schedule: Schedule | None
    descent: Descent | None = None

    def within(self, s: Series | None) -> Array:
        """Finite values of a series inside the stretch."""
        if s is None:
            return np.empty(0)
        return np.asarray(s.y[(s.xf >= self.start) & (s.xf <= self.end)], dtype=np.float64)

    def before(self, s: Series) -> Array:
        """Finite values of a series before the stretch."""
        return np.asarray(s.y[s.xf < self.start], dtype=np.float64)


def causes(scene: Scene) -> list[Cause]:
    """All causes the record speaks for, most certain first; ``unexplained`` where there is none."""
    tests = (_frozen, _dead, _at_floor, _schedule, _swings, _warmup, _idle, _too_low, _smooth)
    found = [test(scene) for test in tests]
    return [c for c in found if c is not None] or [Cause("unexplained", _lr_fact(scene))]


def _frozen(s: Scene) -> Cause | None:
    if s.schedule is not None and s.schedule.peak <= 0.0:
        return Cause("frozen", "the learning rate is zero from the first record on")
    values = s.within(s.loss)
    if len(values) > 1 and np.ptp(values) == 0.0:
        return Cause("frozen", f"every value is exactly {number(float(values[0]))}")
    norm = s.within(s.view.pick("param_norm"))
    if len(norm) > 1 and np.ptp(norm) <= FROZEN * abs(float(norm.mean())):
        return Cause("frozen", "the parameter norm does not change")
    return None


def _dead(s: Scene) -> Cause | None:
    grad = s.view.grad_norm
    now = s.within(grad)
    if grad is None or len(now) < 3:
        return None
    level = float(np.median(now))
    earlier = s.before(grad)
    usual = float(np.percentile(earlier, 90)) if len(earlier) else math.inf
    if level < DEAD_NORM or (math.isfinite(usual) and level < DEAD_RATIO * usual):
        return Cause("dead_gradients", f"the gradient norm is {number(level)}")
    return None


def _at_floor(s: Scene) -> Cause | None:
    level = float(np.median(s.within(s.loss)))
    if s.loss.scale == "log" and level < LOSS_FLOOR:
        return Cause("converged", f"the loss is {number(level)}: nothing left to learn")
    accuracy = s.within(s.view.pick("accuracy", "train"))
    if len(accuracy) and float(np.median(accuracy)) > ACCURACY_FLOOR:
        return Cause("converged", f"training accuracy is {number(float(np.median(accuracy)), 4)}")
    return None


def _schedule(s: Scene) -> Cause | None:
    if s.schedule is None or s.schedule.peak <= 0.0:
        return None
    ended = 1.0 - s.schedule.share_above(LR_ENDED, s.start, s.end)
    if ended < MOST:
        return None
    now = float(s.schedule.at(np.array([(s.start + s.end) / 2.0]))[0])
    return Cause("schedule_end", f"the learning rate had come down to {percent(100.0 * now)} of its peak")


def _swings(s: Scene) -> Cause | None:
    inside = (s.loss.xf >= s.start) & (s.loss.xf <= s.end)
    e = detrend(s.loss.u[inside])
    if len(e) < 50 or np.std(e) < math.log(1.05):
        return None
    power = np.abs(np.fft.rfft(e))[1:] ** 2
    power = power[len(e) // 100 :]  # periods of more than 100 points are drift
    if len(power) < 10:
        return None
    top = int(np.argmax(power))
    share = float(power[top] / power.sum())
    # Fisher (1929): P(largest share > g) is at most m (1 - g)^(m - 1) for white noise
    if len(power) * (1.0 - share) ** (len(power) - 1) > SWING_P:
        return None
    period = len(e) / (top + 1 + len(e) // 100)
    return Cause("lr_too_high", f"the loss swings with a period of {number(period, 2)} points")


def _warmup(s: Scene) -> Cause | None:
    if s.schedule is None or s.schedule.warmup_end is None:
        return None
    length = s.schedule.warmup_end - float(s.loss.xf[0])
    if length < LONG_WARMUP * s.loss.span or s.schedule.warmup_end < s.start + MOST * (s.end - s.start):
        return None
    return Cause(
        "warmup_too_long", f"the learning rate was still rising until step {s.schedule.warmup_end:,.0f}"
    )


def _idle(s: Scene) -> Cause | None:
    params = s.view.params
    named = [k for k, v in params.items() if "plateau" in k.lower() or "reducelronplateau" in v.lower()]
    if not named or s.schedule is None:
        return None
    patience = next((_integer(v) for k, v in params.items() if k.lower().endswith("patience")), None) or 10
    lr = s.within(s.schedule.series)
    if len(lr) < 2 or np.ptp(lr) > 0.0 or len(lr) <= patience:
        return None
    return Cause(
        "plateau_scheduler_idle", f"{named[0]} is configured (patience {patience}) and never lowered the rate"
    )


def _too_low(s: Scene) -> Cause | None:
    """A loss that does fall, and falls in proportion to the summed learning rate, wants more of it."""
    if s.schedule is None:
        return None
    inside = (s.loss.xf >= s.start) & (s.loss.xf <= s.end)
    x, u = s.loss.xf[inside], s.loss.cost[inside]
    if len(u) < 50 or trend(u).p_down > FALLING_P:
        return None
    rate = s.schedule.at(x)
    summed = np.cumsum(rate)
    by_rate, by_step = _line_error(summed, u), _line_error(x, u)
    # the difference of Akaike's criterion of two lines is n times the log ratio of their errors
    if by_rate <= 0.0 or len(u) * math.log(max(by_step / by_rate, 1e-300)) < AIC_MARGIN:
        return None
    return Cause(
        "lr_too_low", "the loss falls in proportion to the summed learning rate: more of it would be faster"
    )


def _line_error(x: Array, y: Array) -> float:
    """Sum of squared residuals of the least-squares line through (x, y)."""
    basis = np.column_stack([np.ones(len(x)), (x - x[0]) / (float(np.ptp(x)) or 1.0)])
    e = y - basis @ np.linalg.lstsq(basis, y, rcond=None)[0]
    return float(e @ e)


def _smooth(s: Scene) -> Cause | None:
    if s.descent is None or s.descent.support >= 0.0:
        return None
    return Cause("converged", "the loss slowed down smoothly to this level")


def _integer(text: str) -> int | None:
    try:
        return int(json.loads(text))
    except (ValueError, TypeError):
        return None


def _lr_fact(s: Scene) -> str:
    if s.schedule is None:
        return "the learning rate is not recorded"
    start, end = s.schedule.at(np.array([s.start, s.end]))
    if min(start, end) > 0.99:
        return f"the learning rate stood at its peak of {number(s.schedule.peak)}"
    return f"the learning rate went from {percent(100 * start)} to {percent(100 * end)} of its peak"


def scheduler_step(view: RunView) -> int | None:
    """Where torch's ReduceLROnPlateau with its defaults would have lowered the rate, on the held-out loss."""
    val = view.pick("loss", "val")
    fired = None if val is None else reduce_on_plateau(val.y)
    return None if val is None or fired is None else val.step_at(fired)
