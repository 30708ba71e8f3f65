"""Noisy curve: scatter from point to point so large that the raw curve does not show its trend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from afterrun.analyzer.curves.carry_forward import real_points
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, count, number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.smoothing import MIN_POINTS, Smoothing
from afterrun.analyzer.stats import block_means, detrend, effective_n, lag1
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

Grade = Literal["quiet", "normal", "noisy", "very noisy"]

BAND_SD = 3.29
"""A band of 90 % of normal scatter is 3.29 standard deviations wide."""


@dataclass(frozen=True, kw_only=True)
class Noisy(Pass):
    """Noise of the training loss: level, signal-to-noise ratio, the smoothing it needs, luck in the best value."""

    code: ClassVar[str] = "noisy"
    title: ClassVar[str] = "Noisy curve"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="Neighbouring points of the training loss differ so much that the raw curve does not show where it is going. "
        "Conclusions from single points (the last loss, the best evaluation) are luck.",
        rule="sigma is the point-to-point noise on the log scale, free of the trend: 1.4826 x median absolute second difference / sqrt(6). "
        "noise_pct = 100 (exp(sigma) - 1); grades quiet < 1 %, normal < 5 %, noisy < 15 %, very noisy above. An alarm needs both: noise_pct >= alarm_pct, and a band of 90 % of the "
        "points (3.29 sigma) wider than the whole improvement of the second half, so that the eye cannot see it. The smoothed curve is a debiased EWMA whose alpha has the least "
        "one-step-ahead error on this series; beta = 1 - alpha, window (2 - alpha) / alpha points, lag (1 - alpha) / alpha points.",
        abstains="Without a training loss, with fewer than 8 values, or where the loss changes sign, since a percentage of it means nothing then.",
        confused_with="Oscillation (regular swings from a high learning rate), spikes (rare, far above the rest), a small validation set (the training loss is smooth), "
        "two alternating data sources, logging a single micro-batch instead of the mean over the accumulated batch.",
        remedies=(
            "Read the smoothed curve with the alpha given here, on all points, before thinning them.",
            "Log the mean since the last record instead of the last batch; average over ranks and micro-batches.",
            "Use a larger batch or accumulate gradients if the noise also slows the descent.",
            "Decay the learning rate towards the end, or average the weights: late noise is amplified by a high rate.",
            "Never choose a checkpoint by one noisy evaluation: enlarge the validation set or smooth the metric.",
        ),
        sources=(
            "TensorBoard classicSmoothing (debiased EWMA); Muth (1960): exponential weights are optimal for a local level",
            "Google tuning playbook: lucky last steps; remedies for late noise",
            "McCandlish et al. (2018): gradient noise scale",
        ),
    )

    alarm_pct: float = threshold(
        30.0,
        "noise of one point that hides a trend: half of all neighbours then differ by more than 28 %",
        unit="%",
    )
    quiet_pct: float = threshold(1.0, "noise below this is 'quiet'", unit="%")
    normal_pct: float = threshold(5.0, "noise below this is 'normal'", unit="%")
    noisy_pct: float = threshold(15.0, "noise below this is 'noisy', above 'very noisy'", unit="%")
    averaged_r1: float = threshold(
        0.5, "lag-1 autocorrelation above which the logged value looks like a running mean already"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the training loss; noise of the held-out loss stands in its values."""
        s = view.train_loss
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(self, view, "Noise: no training loss is recorded.", (f"a training loss: {hint}",))
            return
        s, _ = real_points(s)
        smoothing = s.smoothing
        if smoothing is None or len(s.y) < MIN_POINTS:
            title = f"Noise: not enough data, {s.tag} has {count(len(s.y), 'value')}."
            yield abstained(self, view, title, (f"{MIN_POINTS} values of {s.tag}",), {"points": len(s.y)})
            return
        if s.scale != "log":
            title = f"Noise: {s.tag} reaches zero or changes sign, so that its noise is no percentage of anything."
            yield abstained(
                self, view, title, (f"a positive {s.tag}",), jsonable(self._values(view, s, smoothing))
            )
            return
        values = self._values(view, s, smoothing)
        if values["noise_pct"] >= self.alarm_pct and values["late_change"] < BAND_SD * s.sigma:
            yield self._finding(view, s, values)
        else:
            yield refuted(self, view, _quiet_title(s, values), jsonable(values))

    def _grade(self, noise_pct: float) -> Grade:
        if noise_pct < self.quiet_pct:
            return "quiet"
        if noise_pct < self.normal_pct:
            return "normal"
        return "noisy" if noise_pct < self.noisy_pct else "very noisy"

    def _values(self, view: RunView, s: Series, smoothing: Smoothing) -> dict[str, Any]:
        sigma = s.sigma
        residual = s.u[s.warmup :] - s.smooth_u[s.warmup :]
        r1 = lag1(np.diff(s.u[s.warmup :]))
        n = len(s.u) - s.warmup
        late = _level_change(s, len(s.u) // 2)
        resolvable = (
            2.0 * sigma * math.sqrt(2.0 / max(1.0, effective_n(n, lag1(detrend(s.u[s.warmup :]))) / 2.0))
        )
        noise_pct = change_pct(sigma) if s.scale == "log" else None
        return {
            "tag": s.tag,
            "points": len(s.y),
            "sigma_work": sigma,
            "noise_pct": noise_pct,
            "grade": None if noise_pct is None else self._grade(noise_pct),
            "band_pct": change_pct(BAND_SD * sigma) if s.scale == "log" else None,
            "trend_change": abs(_level_change(s, s.warmup)),
            "late_change": abs(late),
            "snr": abs(late) / sigma if sigma > 0 else None,
            "unresolvable": abs(late) < resolvable,
            "difference_r1": r1,
            "looks_averaged": r1 > self.averaged_r1,
            "residual_sd_work": float(np.std(residual)),
            "alpha": smoothing.alpha,
            "beta": 1.0 - smoothing.alpha,
            "window_points": smoothing.window_points,
            "lag_points": smoothing.lag_points,
            "last_value": float(s.y[-1]),
            "last_smoothed": float(s.from_work(s.smooth_u[-1:])[0]),
            **_held_out(view),
        }

    def _finding(self, view: RunView, s: Series, values: dict[str, Any]) -> Finding:
        n = max(2.0, len(s.u) - s.warmup)
        # standard error of a median absolute deviation, normal errors: 1.17 sigma / sqrt(n)
        error = 1.17 * s.sigma / math.sqrt(n)
        worst = int(np.argmax(np.abs(np.diff(s.u)))) if len(s.u) > 1 else 0
        return Finding(
            code=self.code,
            status="confirmed",
            severity="warning",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(0),
                step_end=s.step_at(len(s.y) - 1),
                t_start_ns=s.wall_at(0),
                t_end_ns=s.wall_at(len(s.y) - 1),
            ),
            title=f"{s.tag} scatters by {percent(values['noise_pct'])} from point to point: nine of ten points span {number(1.0 + values['band_pct'] / 100.0, 2)} x, "
            f"while the second half moved by {percent(change_pct(values['late_change']))}; smooth over about {count(round(values['window_points']), 'point')} to see it.",
            effect=Effect(
                value=values["noise_pct"],
                low=change_pct(s.sigma - 1.96 * error),
                high=change_pct(s.sigma + 1.96 * error),
                unit="% of the loss, noise of one point",
                method="median absolute second difference, normal interval",
            ),
            evidence=(
                s.evidence(s.row_of(worst), "largest jump, before"),
                s.evidence(s.row_of(min(worst + 1, len(s.y) - 1)), "largest jump, after"),
                s.evidence(s.row_of(len(s.y) - 1), f"last value; smoothed {number(values['last_smoothed'])}"),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _level_change(s: Series, start: int) -> float:
    """Change of the level from ``start`` to the end on the work scale: means of the first and last tenth."""
    u = s.u[start:]
    if len(u) < 2:
        return 0.0
    means = block_means(u, max(1, len(u) // 10))
    return float(means[-1] - means[0])


def _held_out(view: RunView) -> dict[str, Any]:
    """Noise of the held-out loss and the luck in its best value: sigma sqrt(2 ln n) for the best of n."""
    found = view.pick("loss", "val", "test")
    if found is None:
        return {}
    val, _ = real_points(found)
    if len(val.y) < MIN_POINTS or val.scale != "log":
        return {"val_tag": val.tag, "val_noise_pct": None}
    quiet = effective_n(len(val.u), lag1(detrend(val.u)))
    luck = val.sigma * math.sqrt(2.0 * math.log(max(quiet, 1.0)))
    last = float(val.u[-1] - np.median(val.u[-5:]))
    return {
        "val_tag": val.tag,
        "val_noise_pct": change_pct(val.sigma),
        "selection_luck_pct": change_pct(luck),
        "last_step_luck_pct": change_pct(last),
    }


def _quiet_title(s: Series, values: dict[str, Any]) -> str:
    grade, noise = values["grade"], percent(values["noise_pct"])
    seen = (
        "its trend is plain to see"
        if not values["unresolvable"]
        else "too much for the small change of its second half"
    )
    return f"Noise of {s.tag} is {noise} a point ({grade}): {seen}."
