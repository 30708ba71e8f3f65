"""Pieces of a curve in which it runs straight: piecewise-linear least squares by dynamic programming."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, block_means, noise_scale

MAX_BLOCKS = 100
"""The curve is averaged into at most this many blocks; the search is quadratic in them."""

MIN_BLOCKS = 4
"""Blocks a piece must hold."""

PENALTY = 3.0
"""Cost of one more piece: PENALTY sigma^2 ln(m), one for each of slope, level and place (BIC)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Points [start, end) that lie on one line."""

    start: int
    end: int


def straight_pieces(u: Array) -> list[Piece]:
    """Cut n points into straight pieces; one piece where there is too little to cut.

    Minimises the sum of squared residuals of block means plus a penalty for each piece, exactly.
    """
    n = len(u)
    size = max(1, math.ceil(n / MAX_BLOCKS))
    m = block_means(u, size)
    spread = float(np.ptp(m))
    if len(m) < 2 * MIN_BLOCKS or spread == 0.0:
        return [Piece(0, n)]
    m = (m - m[0]) / spread
    sigma = max(noise_scale(m), 1e-9)
    cost = _line_costs(m) / sigma**2
    penalty = PENALTY * math.log(len(m))
    count = len(m)
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    previous = np.zeros(count + 1, dtype=np.int64)
    for end in range(MIN_BLOCKS, count + 1):
        starts = np.arange(0, end - MIN_BLOCKS + 1)
        total = best[starts] + cost[starts, end - 1] + penalty
        previous[end] = int(np.argmin(total))
        best[end] = float(total[previous[end]])
    cuts = [count]
    while cuts[-1] > 0:
        cuts.append(int(previous[cuts[-1]]))
    edges = [min(c * size, n) for c in reversed(cuts)]
    edges[-1] = n
    return [Piece(a, b) for a, b in itertools.pairwise(edges)]


def _line_costs(y: Array) -> Array:
    """Squared residuals of the least-squares line through y[i..j], shape (m, m); only j > i is meaningful."""
    m = len(y)
    y = y - y.mean()
    t = np.arange(m, dtype=np.float64)
    sums = [np.append(0.0, np.cumsum(v)) for v in (np.ones(m), t, y, t * t, t * y, y * y)]
    k, st, sy, stt, sty, syy = (s[None, 1:] - s[:-1, None] for s in sums)
    k = np.maximum(k, 1.0)
    vt, vy, cty = stt - st * st / k, syy - sy * sy / k, sty - st * sy / k
    return np.asarray(np.maximum(vy - cty * cty / np.maximum(vt, 1e-12), 0.0), dtype=np.float64)
