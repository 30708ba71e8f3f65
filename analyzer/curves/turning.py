"""Where a curve turns for good: the lowest point of its running median and what came after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, effective_n, noise_scale, running_median, theil_sen_slope, trend

WINDOW_SHARE = 0.07
"""Running median over max(3, 7 %) of the evaluations."""

MEDIAN_SE = 1.2533
"""Standard error of a median relative to that of a mean, normal errors."""

MIN_RESIDUALS = 8
"""Stretches with fewer points say nothing about autocorrelation."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The minimum of a cost curve and the rise after it, on the work scale. Indices into the curve."""

    smooth: Array
    best: int
    """Index of the minimum of the running median: the onset."""
    low: int
    high: int
    """First and last index that cannot be told from the minimum (its interval)."""
    rise: float
    """Level of the end minus level around the minimum: what is tested, careful and a little low."""
    se: float
    """Standard error of ``rise``, widened for autocorrelation."""
    height: float
    """From the line through the start of the tail to the line through its end: what is reported."""
    height_se: float
    p_up: float
    """One-sided p value of a rising trend after the minimum, the minimum itself left out."""
    sigma: float
    """Noise of one evaluation."""
    after: int
    """Points after the minimum."""


def turning_point(cost: Array, *, skip: int = 0) -> Turn:
    """Minimum, rise and trend of a cost curve of n >= 3 points; the first ``skip`` points give no noise.

    rise = median(last q) - median(q around the minimum) with q = max(3, a quarter of the tail), and
    se = 1.2533 sigma sqrt(2 / q_eff). A minimum picked from a wandering curve always has a rise after
    it, so both sigma and q_eff allow for lag-1 autocorrelation r: second differences of AR(1) noise have
    the variance (6 - 8 r + 2 r^2) sigma^2.
    """
    n = len(cost)
    k = max(3, round(WINDOW_SHARE * n) | 1)
    smooth = running_median(cost, k)
    lowest = np.flatnonzero(smooth == smooth.min())
    best = int(lowest[np.argmin(cost[lowest])])
    tail = cost[best:]
    r1 = _wander(tail)
    sigma = noise_scale(cost[min(skip, n - 3) :]) / math.sqrt((6.0 - 8.0 * r1 + 2.0 * r1 * r1) / 6.0)
    q = max(3, len(tail) // 4)
    around = cost[max(0, best - q // 2) : best + q // 2 + 1]
    rise = float(np.median(tail[-q:]) - np.median(around))
    se = MEDIAN_SE * sigma * math.sqrt(2.0 / max(1.0, effective_n(q, r1)))
    near = np.flatnonzero(smooth <= smooth[best] + sigma / math.sqrt(k))
    # without the minimum itself: it was picked as the lowest, which alone makes a trend of a few points
    p_up = trend(tail[1:]).p_up if len(tail) >= 5 else 1.0
    return Turn(
        smooth=smooth,
        best=best,
        low=int(near[0]),
        high=int(near[-1]),
        rise=rise,
        se=se,
        height=_end_of_line(tail[-q:]) - _end_of_line(tail[:q][::-1]),
        # a line fitted to q points is known at its end to 2 sigma / sqrt(q)
        height_se=2.0 * sigma * math.sqrt(2.0 / max(1.0, effective_n(q, r1))),
        p_up=p_up,
        sigma=sigma,
        after=n - 1 - best,
    )


def _end_of_line(y: Array) -> float:
    """Value at the last point of the Theil-Sen line through y."""
    t = np.arange(len(y), dtype=np.float64)
    slope = theil_sen_slope(t, y)
    return float(np.median(y - slope * t) + slope * t[-1])


def _wander(tail: Array) -> float:
    """Lag-1 autocorrelation in [0, 0.9] of the tail about a parabola, corrected for its bias.

    The estimate of a short stretch is low by about 2 (1 + r) / n. What lies before the minimum is not
    used: no parabola follows the descent, and its misfit would pass for wander.
    """
    n = len(tail)
    if n < MIN_RESIDUALS:
        return 0.0
    basis = np.vander(np.linspace(-1.0, 1.0, n), 3)
    level = (tail - tail[0]) / (float(np.ptp(tail)) or 1.0)  # squares of huge numbers overflow
    e = level - basis @ np.linalg.lstsq(basis, level, rcond=None)[0]
    total = float(e @ e)
    if total <= 0.0:
        return 0.0
    r = float(e[1:] @ e[:-1]) / total
    return min(max(r + 2.0 * (1.0 + r) / n, 0.0), 0.9)
