"""How much a curve improved over a stretch, with an interval, and whether that is nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import trend

Course = Literal["flat", "improving", "rising", "undetermined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Points [start, end) of a series and their total improvement (positive = better).

    Improvements are on the work scale; on a raw scale they are shares of the range of the whole curve.
    """

    start: int
    end: int
    improvement: float
    low: float
    high: float
    p_improving: float
    """One-sided p value of the trend."""

    def course(self, tolerance: float) -> Course:
        """Equivalence test: flat only where the interval excludes every change larger than ``tolerance``."""
        if self.low > tolerance:
            return "improving"
        if self.high < -tolerance:
            return "rising"
        return "flat" if self.high < tolerance and self.low > -tolerance else "undetermined"


def stretch(s: Series, start: int = 0, end: int | None = None) -> Stretch:
    """Improvement over the finite points [start, end): Theil-Sen slope times length, 95 % interval."""
    end = len(s.y) if end is None else end
    t = trend(s.cost[start:end])
    length = max(end - start - 1, 0) / span_of(s)
    return Stretch(
        start=start,
        end=end,
        improvement=-t.slope * length,
        low=-t.high * length,
        high=-t.low * length,
        p_improving=t.p_down,
    )


def span_of(s: Series) -> float:
    """What an improvement is measured in: 1 on log and logit scales, the range of the curve elsewhere."""
    if s.scale != "raw" or not len(s.u):
        return 1.0
    low, high = np.percentile(s.u, [5, 95])
    return float(high - low) or 1.0


def last_window(s: Series, share: float, points: int) -> Stretch:
    """The last max(``share`` of all, ``points``) finite points, where ``points`` means at most a third of them."""
    n = len(s.y)
    size = int(max(share * n, min(points, n / 3.0)))
    return stretch(s, n - size)
