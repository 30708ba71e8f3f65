"""Loss spikes that recover: how many, how high, how long, and whether the gradient norm knew first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.curves.excursions import Excursion, Rule, resolution, upward
from afterrun.analyzer.curves.spike_context import (
    GradientWatch,
    megatron_rl_points,
    megatron_spiky_points,
    olmo_spike_score_pct,
    zclip_points,
)
from afterrun.analyzer.curves.spikes import Event, binomial_tail, describe, height_pct, tail, value_of
from afterrun.analyzer.finding import Effect, Finding, Where
from afterrun.analyzer.prose import change_pct, count, number, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

SHOWN = 5
"""Spikes that stand in the evidence; all of them stand in the values."""

SHIFT_POINTS = 50
"""Points on each side that the level after a spike is compared with."""

RARE_SHARE = 0.01
"""More lone high points than this share of the curve are its noise, however high they are."""

JUMP_POINTS = 3
"""A spike within so many points of a jump of the learning rate is its answer."""

CHANCE = 0.01
"""Spikes that noise alone gives with more than this probability raise no alarm."""


@dataclass(frozen=True)
class Spike(Pass):
    """Upward excursions of the training loss that come back."""

    code: ClassVar[str] = "spike"
    title: ClassVar[str] = "Loss spikes"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("lr-jump",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="The training loss jumped far above the level its own past predicts and came back. "
        "Each spike costs the steps until the old level is reached again, and frequent or growing ones often come before a divergence.",
        rule="Every point is compared with what the points before it predict; a point far above starts a spike, and the spike lasts until the "
        "loss is back for some points in a row. While a spike lasts, the prediction is frozen. On the work scale u (log of a positive loss): "
        "level = median of the last 11 accepted points + median of past prediction errors; s = 1.4826 x median absolute prediction error over "
        "the trailing window; spike where u - level > z_min s and u - level > ln(1 + rise_min_pct/100). It is back when u - level < max(2 s, a tenth of its height) "
        "five points in a row. A jump that is not back within max_share of the run is a new level and not a spike. Noise with heavy tails goes "
        "down as far as it goes up: a spike must be mirror_factor times as high as the deepest dip found by the same rule turned upside down. "
        "An alarm needs spikes of two points or more, in a number that neighbouring noise does not explain, or one with the gradient norm far off as well, or one above lone_z_min with a gap below it. "
        "A smooth hump around the end of the learning-rate warm-up is noted and is no spike, and so is the answer to a jump of the rate that lr-jump tells.",
        abstains="Without a training loss, with fewer than min_run_points recorded values, or when the source holds only a sample of the points and none of "
        "those is a spike.",
        confused_with="A level shift (the loss stays up), a divergence (it goes on rising), heavy-tailed noise of small batches, the hump at the end of the "
        "warm-up, and the jump after a resume with lost optimizer state.",
        remedies=(
            "Look at the batches just before each onset: spikes at the same place of every epoch mean damaged or duplicated data.",
            "Clip the gradient norm (1.0 is usual), or clip against its own running mean.",
            "Lower the peak learning rate or lengthen the warm-up if spikes cluster at the highest learning rate.",
            "Raise Adam's epsilon or lower beta2 to 0.95 if the gradient norm spikes first.",
            "If the loss does not come back: restart from a checkpoint about 100 steps before the onset and skip the next 200 to 500 batches.",
        ),
        sources=(
            "OLMo 2 (arXiv 2501.00656): spike score, share of points 7 standard deviations from a rolling mean of 1,000",
            "Megatron-LM, core/rerun_state_machine.py: a spiky loss is 10 x the largest of the first 100 samples",
            "ZClip (arXiv 2504.02507): z > 2.5 on an exponential mean of the gradient norm",
            "PaLM (arXiv 2204.02311): restart about 100 steps before the spike and skip 200 to 500 batches",
        ),
    )

    z_min: float = threshold(
        7.0,
        "robust z of a point above its predicted level that starts a spike",
        unit="sd",
        source="OLMo 2 spike score",
    )
    rise_min_pct: float = threshold(
        5.0, "least rise above the level; smaller ones cost nothing", unit="% of the loss"
    )
    window_points: int = threshold(
        101, "accepted points before a point that its scale is taken from", unit="points"
    )
    min_points: int = threshold(
        20, "accepted points needed before anything is judged, also after a level shift", unit="points"
    )
    min_run_points: int = threshold(30, "recorded values below which the pass abstains", unit="points")
    max_share: float = threshold(
        0.05, "longest spike; what stays up longer is a new level", unit="share of the points"
    )
    mirror_factor: float = threshold(
        1.5, "a spike must be this many times as high as the deepest dip of the same curve"
    )
    lone_z_min: float = threshold(
        10.0,
        "robust z that a spike of a single point needs for an alarm where no gradient norm confirms it; it must stand apart from all other points too",
        unit="sd",
    )
    grad_z_min: float = threshold(
        5.0, "robust z of the gradient norm that counts as a spike of its own", unit="sd"
    )
    grad_lookback_points: int = threshold(
        50, "recorded gradient norms before an onset searched for a leading spike", unit="points"
    )
    early_share: float = threshold(
        0.05,
        "length of the early phase where no learning-rate warm-up is recorded",
        unit="share of the points",
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding for the training loss, listing all its spikes."""
        s = view.train_loss
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Loss spikes: no training loss is recorded.", (f"a training loss: {hint}",)
            )
            return
        if len(s.y) < self.min_run_points:
            yield abstained(
                self,
                view,
                f"Loss spikes: {s.tag} holds {count(len(s.y), 'value')}, too few to know its noise.",
                (f"{self.min_run_points} values of the training loss",),
                {"points": len(s.y)},
            )
            return
        up = upward(s.u, self._rule(s))
        calm = np.ones(len(s.u), dtype=bool)
        for e in up:
            calm[e.start : e.end] = not e.returned
        # upside down, without the spikes: coming back from one would look like a dip
        down = upward(-s.u[calm], self._rule(s)) if up else []
        deepest = max((e.height for e in down if e.returned), default=0.0)
        above = [e for e in up if e.returned and not self._is_shift(s, e, calm)]
        humps = [e for e in above if self._is_hump(view, s, e)]
        answers = [e for e in above if _at_rate_jump(view, s, e)]
        told = [*humps, *answers]
        found = [e for e in above if e not in told and e.height > self.mirror_factor * deepest]
        values: dict[str, Any] = {
            "tag": s.tag,
            "points": len(s.y),
            "deepest_dip_pct": height_pct(s, deepest),
            "early_humps": [s.step_at(e.start) for e in humps],
            "at_lr_jumps": [s.step_at(e.start) for e in answers],
            "unrecovered": [s.step_at(e.start) for e in up if e not in above],
            "mirrored": sum(e not in told for e in above) - len(found),
            **self._definitions(view, s),
        }
        yield self._finding(view, s, found, values) if found else self._nothing(view, s, up, values)

    def _rule(self, s: Series) -> Rule:
        y = s.y
        unit = (
            resolution(y) / float(np.percentile(np.abs(y), 10) or 1.0) if s.scale == "log" else resolution(y)
        )
        rise = math.log1p(self.rise_min_pct / 100.0)
        if s.scale != "log":  # no ratio to speak of: the same share of the range the curve covers
            low, high = np.percentile(s.u, [5, 95])
            rise = self.rise_min_pct / 100.0 * float(high - low)
        return Rule(
            z_min=self.z_min,
            rise_min=rise,
            floor=unit,
            window=self.window_points,
            min_points=self.min_points,
            max_points=self._longest(s),
        )

    def _longest(self, s: Series) -> int:
        return max(self.min_points, int(self.max_share * len(s.u)))

    def _is_shift(self, s: Series, e: Excursion, calm: npt.NDArray[np.bool_]) -> bool:
        """Whether the level after the spike stays up by more than half its height."""
        before = s.u[: e.start][calm[: e.start]][-SHIFT_POINTS:]
        after = s.u[e.end :][calm[e.end :]][:SHIFT_POINTS]
        if len(after) < self.min_points:
            return False
        shift = float(np.median(after) - np.median(before))
        error = 1.2533 * s.sigma * math.sqrt(1.0 / len(before) + 1.0 / len(after))
        return shift > max(3.0 * error, 0.5 * e.height)

    def _is_hump(self, view: RunView, s: Series, e: Excursion) -> bool:
        """Whether it is a smooth rise in the early phase: the usual answer to the highest learning rate."""
        limit = s.xf[0] + self.early_share * s.span
        lr = view.lr
        if lr is not None and len(lr.y) > 1 and lr.y[0] < 0.5 * lr.y.max():
            # up to twice the warm-up: the hump is over when the highest rate has been digested
            limit = s.xf[0] + 2.0 * (lr.xf[int(np.argmax(lr.y >= 0.99 * lr.y.max()))] - s.xf[0])
        jump = float(s.u[min(e.start + 1, e.end - 1)] - np.median(s.u[max(0, e.start - 3) : e.start]))
        return bool(s.xf[e.start] <= limit and jump < 0.5 * e.height)

    def _definitions(self, view: RunView, s: Series) -> dict[str, Any]:
        """The same curve by the definitions of others."""
        grad = view.grad_norm
        return {
            "olmo_spike_score_pct": olmo_spike_score_pct(s.y),
            "megatron_spiky_points": megatron_spiky_points(s.y),
            "megatron_rl_points": megatron_rl_points(s.y),
            "zclip_points": zclip_points(grad.y) if grad is not None else None,
        }

    def _strong(self, s: Series, found: list[Excursion], events: list[Event]) -> int:
        """How many are more than the far end of the noise.

        Sure are those that the gradient norm confirms and tall ones apart from all other points. Skewed
        noise puts two high points side by side by chance: where a share q of all points stands above
        half the limit, k of m spikes hold for a second point with the probability of a binomial tail.
        """
        noise = tail(s.u, self._rule(s), found)
        rare = len(found) <= RARE_SHARE * len(s.u) + 1
        sure = [
            (event.grad_z_at_onset or 0.0) > self.grad_z_min
            or (rare and event.robust_z > self.lone_z_min and noise.apart(event.robust_z))
            for event in events
        ]
        held = [event.held_points > 1 for event in events]
        if not any(sure) and binomial_tail(sum(held), len(held), noise.half) >= CHANCE:
            return 0
        return sum(a or b for a, b in zip(sure, held, strict=True))

    def _finding(self, view: RunView, s: Series, found: list[Excursion], values: dict[str, Any]) -> Finding:
        grad = view.grad_norm
        watch = GradientWatch(grad, self.grad_z_min, self.grad_lookback_points) if grad is not None else None
        events = [describe(s, e, view.lr, watch) for e in found]
        strong = self._strong(s, found, events)
        top = max(found, key=lambda e: e.height)
        largest = events[found.index(top)]
        end = min(found[-1].end, len(s.u) - 1)
        cost = [
            view.gpu_s_between(float(s.xf[e.start]), float(s.xf[min(e.end, len(s.u) - 1)])) for e in found
        ]
        led = sum(event.grad_lead_steps is not None for event in events)
        shown = sorted(sorted(found, key=lambda e: -e.height)[:SHOWN], key=lambda e: e.start)
        return Finding(
            code=self.code,
            status="confirmed" if strong else "possible",
            severity="warning" if strong else "info",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(found[0].start),
                step_end=s.step_at(end),
                t_start_ns=s.wall_at(found[0].start),
                t_end_ns=s.wall_at(end),
            ),
            title=_title(s, top, events, largest, strong),
            effect=_effect(s, top),
            evidence=tuple(
                s.evidence(s.row_of(e.peak), f"peak; expected {number(value_of(s, e.level))}") for e in shown
            ),
            parameters=self.parameters(),
            wasted_gpu_s=None if None in cost else float(sum(c or 0.0 for c in cost)),
            advice=_advice(events, led, strong),
            values={
                **values,
                "spikes": [event.step for event in events],
                "count": len(events),
                "strong": strong,
                "largest": asdict(largest),
                "events": [asdict(event) for event in events],
                "recover_steps_total": sum(event.recover_steps for event in events),
                "led_by_gradient": led if watch else None,
            },
        )

    def _nothing(self, view: RunView, s: Series, up: list[Excursion], values: dict[str, Any]) -> Finding:
        if s.sampled:
            missing = (f"every point of {s.tag}: its source holds a sample of {len(s.y):,}",)
            return abstained(self, view, f"Loss spikes: {s.tag} was exported as a sample.", missing, values)
        title = f"No spike in {count(len(s.y), 'value')} of {s.tag}."
        shifts = [e for e in up if not e.returned]
        if shifts:
            first = max(shifts, key=lambda e: e.height)
            ended = first.end >= len(s.u)
            when = "before the record ends" if ended else f"within {count(self._longest(s), 'point')}"
            title = f"No spike that recovers: {s.tag} rose at {place(s, s.xf[first.start])} and did not come back {when}."
        return refuted(self, view, title, values)


def _at_rate_jump(view: RunView, s: Series, e: Excursion) -> bool:
    """Whether the loss rose where the learning rate jumped, which ``lr-jump`` tells."""
    jumps = [
        x
        for f in view.earlier.get("lr-jump", ())
        if f.is_alarm
        for x in f.values["jump_steps"]
        if x is not None
    ]
    near = s.xf[max(0, e.start - JUMP_POINTS)], s.xf[min(e.start + JUMP_POINTS, len(s.xf) - 1)]
    return any(near[0] <= x <= near[1] for x in jumps)


def _effect(s: Series, top: Excursion) -> Effect:
    """Height of the tallest spike with the interval of its expected level."""
    error = 1.96 * top.scale
    heights = (top.height, top.height - error, top.height + error)
    value, low, high = (change_pct(h) if s.scale == "log" else h for h in heights)
    unit = "% above the expected loss" if s.scale == "log" else "above the expected loss"
    return Effect(
        value=value, low=low, high=high, unit=unit, method="prediction error of the points before, robust"
    )


def _title(s: Series, top: Excursion, events: list[Event], largest: Event, strong: int) -> str:
    size = f"{number(largest.peak)} (expected {number(largest.level)})"
    if s.scale == "log":
        size = f"{number(largest.peak / largest.level, 2)} x the expected {number(largest.level)}"
    at = place(s, s.xf[top.start])
    if not strong:
        head = "A single high value" if len(events) == 1 else f"{len(events)} single high values, the largest"
        return f"{head} at {at}: {size}; noise as well as spikes could give this."
    head = "1 loss spike" if len(events) == 1 else f"{len(events)} loss spikes; the largest"
    restart = " right after a restart," if largest.at_restart else ""
    back = f" and took {number(largest.recover_steps)} steps to come back" if s.has_step else ""
    return f"{head}, at {at},{restart} reached {size}{back}."


def _advice(events: list[Event], led: int, strong: int) -> tuple[str, ...]:
    if not strong:
        return (
            "Average the logged loss over more steps if such values matter; nothing needs doing otherwise.",
        )
    steps = ", ".join(f"{event.step:,}" for event in events[:3] if event.step is not None)
    advice = []
    if any(event.at_restart for event in events):
        advice.append(
            "Check that the resume restored optimizer state, learning-rate schedule and data order."
        )
    if any((event.lr_factor or 1.0) >= 2.0 for event in events):
        advice.append("The learning rate jumped up at a spike: check the scheduler.")
    advice.append(f"Look at the batches just before {f'step {steps}' if steps else 'each onset'}.")
    if led:
        advice.append(f"Clip the gradient norm: it went off before {led} of {len(events)} spikes.")
    else:
        advice.append("Clip the gradient norm, and record it if it is not.")
    advice.append("Lower the peak learning rate or lengthen the warm-up.")
    return tuple(advice)
