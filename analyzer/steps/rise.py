"""Where a series rises for good: the point from which it climbs or stands on another level, by how much, how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, lag1, mad_sd

MOST_BLOCKS = 100
"""The series is cut into at most this many blocks; the search is quadratic in them."""

LEAST_BLOCKS = 8

END_SHARE = 0.1
"""Share of the blocks that show where the series ends."""


@dataclass(frozen=True, slots=True)
class Rise:
    """From point ``onset`` on the series leaves its level; ``change`` is what its end lies above that.

    ``low`` and ``high`` bound the change; ``f`` is how much better the fit is than a level alone, as the supremum of F
    over all onsets (Andrews 1993).
    """

    onset: int
    change: float
    low: float
    high: float
    f: float


def rise(y: Array, *, z: float) -> Rise | None:
    """The best fit of a level followed by another level, or by a straight climb, to the medians of blocks.

    Medians, so that single slow steps do not count. A first fit shows the autocorrelation of what it leaves; blocks of the
    second are long enough that their noise is nearly white. ``low`` and ``high`` lie ``z`` standard errors away.
    None with fewer than ``LEAST_BLOCKS`` blocks.
    """
    size = math.ceil(len(y) / MOST_BLOCKS)
    first = _fit(y, size)
    if first is None:
        return None
    r1 = min(max(lag1(y - first.at_points(len(y))), 0.0), 0.995)
    longer = min(math.ceil(2 * (1 + r1) / (1 - r1)) if r1 > 0.1 else 1, len(y) // LEAST_BLOCKS)
    fit = _fit(y, longer) if longer > size else first
    return None if fit is None else fit.as_rise(len(y), z)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Medians of blocks and the shape that fits them: from block ``at`` on a step or a climb of ``size``."""

    medians: Array
    shape: Array
    at: int
    climbs: bool

    @property
    def line(self) -> Array:
        centred = self.shape - self.shape.mean()
        size = float(centred @ self.medians) / float(centred @ centred)
        return np.asarray(self.medians.mean() + max(size, 0.0) * centred)

    def at_points(self, n: int) -> Array:
        count = len(self.medians)
        middle = (np.arange(count) + 0.5) * n / count
        return np.asarray(np.interp(np.arange(n), middle, self.line))

    def as_rise(self, n: int, z: float) -> Rise:
        m, line, count = self.medians, self.line, len(self.medians)
        last = max(1, round(END_SHARE * count))
        above = float(np.median(m[-last:]) - np.median(m[: self.at]))
        change = min(above, float(line[-1] - line[0])) if not self.climbs else float(line[-1] - line[0])
        left = float(((m - line) ** 2).sum())
        gained = float(((m - m.mean()) ** 2).sum()) - left
        error = z * mad_sd(m - line) * math.sqrt(1 / self.at + 1 / last)
        return Rise(
            onset=n * self.at // count,
            change=change,
            low=min(change, above) - error,
            high=change + error,
            f=gained / max(left / (count - 3), 1e-12),
        )


def _fit(y: Array, size: int) -> _Fit | None:
    count = len(y) // size
    if count < LEAST_BLOCKS:
        return None
    m = np.array([np.median(part) for part in np.array_split(y, count)])
    late = np.arange(count)[None, :] - np.arange(1, count - 1)[:, None]  # a row each onset: blocks since it
    shapes = np.stack([(late >= 0).astype(np.float64), np.maximum(late + 1.0, 0.0)])
    centred = shapes - shapes.mean(axis=2, keepdims=True)
    gained = np.maximum(centred @ (m - m.mean()), 0.0) ** 2 / (centred**2).sum(axis=2)
    form, onset = np.unravel_index(int(np.argmax(gained)), gained.shape)
    return _Fit(m, shapes[form, onset], int(onset) + 1, climbs=bool(form))
