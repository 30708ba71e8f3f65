"""Where a curve turns for good: the lowest point of its running median and what came after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, detrend, effective_n, lag1, noise_scale, running_median, trend

WINDOW_SHARE = 0.07
"""Running median over max(3, 7 %) of the evaluations."""

MEDIAN_SE = 1.2533
"""Standard error of a median relative to that of a mean, normal errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The minimum of a cost curve and the rise after it, on the work scale. Indices into the curve."""

    smooth: Array
    best: int
    """Index of the minimum of the running median: the onset."""
    low: int
    high: int
    """First and last index that can be told no better than the minimum (its interval)."""
    rise: float
    """End level minus level around the minimum."""
    se: float
    """Standard error of ``rise``, widened for autocorrelation of the tail."""
    p_up: float
    """One-sided p value of a rising trend after the minimum."""
    sigma: float
    after: int
    """Points after the minimum."""


def turning_point(cost: Array, *, skip: int = 0) -> Turn:
    """Minimum, rise and trend of a cost curve of n >= 3 points; the first ``skip`` points give no noise.

    rise = median(last q) - median(q around the minimum) with q = max(3, a quarter of the tail), and
    se = 1.2533 sigma sqrt(2 / q_eff).
    """
    n = len(cost)
    k = max(3, round(WINDOW_SHARE * n) | 1)
    smooth = running_median(cost, k)
    best = int(np.argmin(smooth))
    sigma = noise_scale(cost[min(skip, n - 3) :])
    tail = cost[best:]
    q = max(3, len(tail) // 4)
    around = cost[max(0, best - q // 2) : best + q // 2 + 1]
    rise = float(np.median(tail[-q:]) - np.median(around))
    r1 = lag1(detrend(tail)) if len(tail) >= 8 else 0.0
    se = MEDIAN_SE * sigma * math.sqrt(2.0 / effective_n(q, r1))
    near = np.flatnonzero(smooth <= smooth[best] + sigma / math.sqrt(k))
    p_up = trend(tail).p_up if len(tail) >= 4 else 1.0
    return Turn(smooth, best, int(near[0]), int(near[-1]), rise, se, p_up, sigma, n - 1 - best)
