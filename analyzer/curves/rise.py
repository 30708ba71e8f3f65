"""A curve that has left its lowest level for good: how far it rose, and where the rise began."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, block_means, lag1, noise_scale

BLOCKS = 50
"""The verdict rests on this many block medians, so that one lucky point is no minimum."""

MEDIAN_SE = 1.2533
"""Standard error of a median relative to that of a mean, normal errors."""

FIT_POINTS = 240
"""Means of this many blocks at most enter the fit of the onset."""

RISE_SHARES = (0.125, 0.25, 0.5, 0.75)
"""Parts of the rise up to which the onset is fitted."""

STEP_SHARE = 0.67
"""Part of the rise that one jump must make, as medians on both sides see it."""

POINT_SHARE = 0.4
"""Part of the rise that must lie between two neighbouring points of a jump."""

CHI2_95 = 3.841
"""95 % quantile of chi-square with one degree of freedom: the profile interval of the onset."""


@dataclass(frozen=True, slots=True)
class Rise:
    """From the lowest block of a curve to its end. Work scale; indices into the curve."""

    bottom: int
    """Middle of the lowest block."""
    low: float
    """Level of the lowest block."""
    end: float
    """Level of the end: median of the last blocks."""
    least: float
    """Lowest block among the last: the curve stayed above it."""
    se: float
    """Standard error of a difference of two blocks."""
    start: float
    """Level of the first block."""
    last_low: int
    """Last point whose block was still at the lowest level (within 3 se)."""

    @property
    def height(self) -> float:
        """Rise from the lowest level to the end."""
        return self.end - self.low


def rise(u: Array, stay_share: float) -> Rise:
    """The rise of ``u`` (finite, at least 6 points) that lasts over the final ``stay_share`` of it.

    The error of a block is the larger of what point noise predicts (1.2533 sigma / sqrt(block)) and
    of what the blocks show among themselves, which covers autocorrelation.
    """
    n = len(u)
    size = max(1, n // BLOCKS)
    starts = np.arange(0, n - size + 1, size)
    ends = np.append(starts[1:], n)
    levels = np.array([np.median(u[a:b]) for a, b in zip(starts, ends, strict=True)])
    point = MEDIAN_SE * noise_scale(u) / math.sqrt(size)
    se = math.sqrt(2.0) * max(point, noise_scale(levels))
    stay = min(max(math.ceil(stay_share * len(levels)), 3 if size == 1 else 2), len(levels))
    best = int(np.argmin(levels))
    low = float(levels[best])
    near = int(np.flatnonzero(levels <= low + 3.0 * se)[-1])
    return Rise(
        bottom=int(starts[best] + ends[best]) // 2,
        low=low,
        end=float(np.median(levels[-stay:])),
        least=float(levels[-stay:].min()),
        se=se,
        start=float(levels[0]),
        last_low=int(ends[near]) - 1,
    )


@dataclass(frozen=True, slots=True)
class Onset:
    """Where a rise begins, with the interval that the fit cannot tell apart from it. Indices."""

    at: int
    low: int
    high: int
    step: bool
    """Most of the rise happened from one point to the next and the curve did not go on rising."""


def onset(u: Array, r: Rise) -> Onset:
    """The corner of the continuous two-line fit around the place where the curve last was low.

    Least squares over a window that ends where half of the rise is done. A rise that bends has its
    corner elsewhere for another window, so the fit is repeated up to an eighth, a quarter and three quarters
    of the rise, and the interval is the hull of all their profile-likelihood intervals, at least half a
    block to each side.
    """
    fits = [_corner(u, r, share) for share in RISE_SHARES]
    at = fits[RISE_SHARES.index(0.5)][1]
    jump = _jump(u, r, at)
    if jump is not None:
        return Onset(at=jump, low=jump - 1, high=jump, step=True)
    grain = len(u) // (2 * BLOCKS)
    low, high = min(at - grain, *(f[0] for f in fits)), max(at + grain, *(f[2] for f in fits))
    return Onset(at=at, low=max(low, 0), high=min(high, len(u) - 1), step=False)


def _corner(u: Array, r: Rise, share: float) -> tuple[int, int, int]:
    """(low, estimate, high) of the corner, fitted up to ``share`` of the rise.

    The interval holds the corners whose squared error stays below (1 + 3.84 / (n_eff - 4)) times the least.
    """
    n = len(u)
    over = np.flatnonzero(u[r.last_low :] > r.low + share * r.height)
    stop = min(n, r.last_low + (int(over[0]) if len(over) else 0) + max(6, n // 20))
    first = max(0, min(r.bottom, r.last_low) - max(6, n // 12))
    window = u[first:stop]
    k = max(1, math.ceil(len(window) / FIT_POINTS))
    y = block_means(window, k)
    corners = np.arange(1.0, len(y) - 1.0)
    error, fit = _two_lines(np.arange(len(y), dtype=np.float64), y, corners)
    best = int(np.argmin(error))
    r1 = min(max(lag1(y - fit[best]), 0.0), 0.95)
    free = max(len(y) * (1.0 - r1) / (1.0 + r1) - 4.0, 1.0)
    alike = np.flatnonzero(error <= error[best] * (1.0 + CHI2_95 / free))
    low, at, high = (min(first + int(corners[i]) * k, n - 1) for i in (alike[0], best, alike[-1]))
    return low, at, high


def _two_lines(t: Array, y: Array, corners: Array) -> tuple[Array, Array]:
    """Squared error (corners,) and fitted values (corners, n) of each continuous two-line fit."""
    d = t[None, :] - corners[:, None]
    x = np.stack([np.ones_like(d), np.minimum(d, 0.0), np.maximum(d, 0.0)], axis=2)
    gram = np.einsum("cni,cnj->cij", x, x)
    right = np.einsum("cni,n->ci", x, y)
    beta = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
    fit = np.einsum("cni,ci->cn", x, beta)
    return np.asarray(((y - fit) ** 2).sum(axis=1), dtype=np.float64), np.asarray(fit, dtype=np.float64)


def _jump(u: Array, r: Rise, at: int) -> int | None:
    """The first point after one jump near ``at`` that makes two thirds of the rise; None for a climb."""
    n = len(u)
    reach = max(3, n // 50)
    near = range(max(3, at - 2 * reach), min(n - 3, at + 2 * reach) + 1)
    if not near:
        return None
    jumps = [float(np.median(u[i : i + reach]) - np.median(u[max(0, i - reach) : i])) for i in near]
    # medians on both sides see the jump from some way off; the point itself is where it happens
    best = near[int(np.argmax(jumps))]
    i = max(range(max(1, best - reach), min(n - 1, best + reach) + 1), key=lambda k: u[k] - u[k - 1])
    sharp = float(np.median(u[i : i + 3]) - np.median(u[max(0, i - 3) : i]))
    whole = min(sharp, max(jumps)) > STEP_SHARE * r.height
    return i if whole and u[i] - u[i - 1] > POINT_SHARE * r.height else None
