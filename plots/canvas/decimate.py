"""Thinning for drawing: the min/max envelope of a curve, one bucket a pixel column or wider.

Thinning comes after smoothing and changes no pixel that matters: extremes stay, order stays, and a
bucket that holds a NaN or an infinity still holds one afterwards, so a hole in a curve stays a hole.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.stats import Array

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

KEPT_PER_BUCKET = 3
"""Lowest and highest finite point, and the first that is not finite."""

MIN_LIMIT = 8


def envelope(x: Array, y: Array, limit: int) -> Ints:
    """Indices to keep, ascending; at most ``limit`` (at least 8). Shapes x, y: (n,), x non-decreasing, finite.

    The range of x is cut into equal buckets; of each, the first lowest, the first highest and the first
    non-finite point stay, and so do the first and the last point of the curve. All indices where
    n <= limit.
    """
    n = len(y)
    limit = max(limit, MIN_LIMIT)
    if n <= limit:
        return np.arange(n, dtype=np.int64)
    bucket = _buckets(x, (limit - 2) // KEPT_PER_BUCKET)
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    finite = np.isfinite(y)
    keep = np.zeros(n, dtype=np.bool_)
    keep[[0, -1]] = True
    sizes = np.diff(np.append(starts, n))
    lowest = np.minimum.reduceat(np.where(finite, y, np.inf), starts)
    highest = np.maximum.reduceat(np.where(finite, y, -np.inf), starts)
    keep |= _first_of(finite & (y == np.repeat(lowest, sizes)), starts, sizes)
    keep |= _first_of(finite & (y == np.repeat(highest, sizes)), starts, sizes)
    keep |= _first_of(~finite, starts, sizes)
    return np.flatnonzero(keep)


def _buckets(x: Array, count: int) -> Ints:
    """The bucket of each point, non-decreasing, in [0, count)."""
    low, high = float(x[0]), float(x[-1])
    if not high > low:  # one place: by order
        return (np.arange(len(x)) * count) // len(x)
    share = (x / 2 - low / 2) / (high / 2 - low / 2)  # halves, so that the widest ranges do not overflow
    return np.minimum((share * count).astype(np.int64), count - 1)


def _first_of(mask: Bools, starts: Ints, sizes: Ints) -> Bools:
    """Only the first True of each bucket."""
    seen = np.cumsum(mask, dtype=np.int64)
    before: Ints = np.repeat(seen[starts] - mask[starts], sizes)
    first: Bools = seen - before == 1
    return mask & first


def segments(mask: Bools) -> tuple[Ints, Ints]:
    """First and last index of every run of True; shapes (k,)."""
    edges = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1


def merge_close(first: Array, last: Array, within: float) -> tuple[Array, Array]:
    """Ordered intervals, those at most ``within`` apart joined: what would be one mark on paper becomes one."""
    if len(first) < 2:
        return first, last
    apart = first[1:] - last[:-1] > within
    return first[np.concatenate([[True], apart])], last[np.concatenate([apart, [True]])]
