"""The shape of a descent: does a learning curve slow down smoothly, or does it stop?

One family holds both. g(t) = (1 + xi t / s)^(-1 / xi) is a power law for xi > 0, an exponential for
xi = 0, and for xi < 0 it reaches zero at the finite time t = -s / xi and stays there (the survival
function of the generalised Pareto distribution, Pickands 1975). A mixture of exponentials, the usual
picture of a healthy curve, is completely monotone and behaves like xi >= 0. So L = c + A g(t) is fitted
with either sign, and the likelihood ratio says whether the curve ran into a wall.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from afterrun.analyzer.series import Scale
from afterrun.analyzer.stats import Array, effective_n, lag1

BLOCKS = 100
"""Blocks whose means are fitted: enough to place an end within 1 % of the run."""

MIN_BLOCKS = 12

SMOOTH_SHAPES = (0.0, 0.25, 0.5, 1.0, 2.0)
"""xi of curves that slow down: exponential, then power laws with exponents 4, 2, 1, 0.5."""

ABRUPT_SHAPES = (-1.0, -0.75, -0.5, -1.0 / 3.0)
"""xi of curves that stop: a straight line, then (1 - t / T)^p with p = 1.33, 2, 3."""

MIN_WITNESS = 8
"""A further curve with fewer points after the start is not heard."""

SKIP_FALL = 0.1
"""The fit starts when a tenth of the fall is done: warm-up bends the curve before."""

CHI2_95 = 3.84


@dataclass(frozen=True, slots=True)
class Descent:
    """What the shape of a falling curve says. Positions are in units of the axis."""

    support: float
    """Twice the log likelihood ratio of the best abrupt over the best smooth curve; > 0 speaks for a stop."""
    end: float
    """Where the abrupt curve stops."""
    end_low: float
    end_high: float
    """95 % profile likelihood interval of ``end``."""
    shape: float
    """xi of the best abrupt curve."""
    smooth_shape: float
    """xi of the best smooth curve."""
    fall: float
    """Drop from the highest early level to the level of the last tenth, on the work scale."""


def fit_descent(curves: Sequence[tuple[Array, Array]], scale: Scale) -> Descent | None:
    """Fit both kinds of curve to one or more witnesses of the same descent, the main one first.

    Each is (axis, cost on the work scale, lower is better). All share shape and time scale; floor, height
    and noise are their own. None where the main one has too few points or does not fall. Errors are
    relative on the log scale (noise is multiplicative there), absolute elsewhere. Blocks count as many
    independent ones as the lag-1 autocorrelation of the residuals leaves.
    """
    t, u = _blocks(*curves[0])
    if len(u) < MIN_BLOCKS or t[-1] <= t[0]:
        return None
    first, fall = _start(u)
    if fall <= 0.0 or len(u) - first < MIN_BLOCKS:
        return None
    begin, span = float(t[first]), float(t[-1] - t[first])
    shapes, _, ends = _grid()
    misfit = np.zeros(len(shapes))
    for x, cost in curves:
        t, u = _blocks(x, cost)
        inside = t >= begin
        if np.count_nonzero(inside) >= MIN_WITNESS:
            misfit += _misfit((t[inside] - begin) / span, u[inside], scale == "log")
    abrupt = shapes < 0
    stop = int(np.argmin(np.where(abrupt, misfit, np.inf)))
    slow = int(np.argmin(np.where(abrupt, np.inf, misfit)))
    near = ends[abrupt & (misfit - misfit[stop] < CHI2_95)]
    return Descent(
        support=float(misfit[slow] - misfit[stop]),
        end=begin + float(ends[stop]) * span,
        end_low=begin + float(near.min()) * span,
        end_high=begin + float(near.max()) * span,
        shape=float(shapes[stop]),
        smooth_shape=float(shapes[slow]),
        fall=fall,
    )


def _misfit(z: Array, u: Array, relative: bool) -> Array:
    """n_eff ln(residual sum of squares) of every candidate curve; differences are 2 log likelihood ratios."""
    shapes, scales, _ = _grid()
    # a ratio beyond e^50 is a broken number, not a descent
    level = np.exp(np.clip(u - u[-1], -50.0, 50.0)) if relative else (u - u[-1]) / (float(np.ptp(u)) or 1.0)
    weight = 1.0 / level if relative else np.ones_like(level)
    residual = _residuals(_curves(z, shapes, scales) * weight, weight, level * weight, relative)
    rss = np.einsum("ij,ij->i", residual, residual)
    best = int(np.argmin(rss))
    n = max(4.0, effective_n(len(z), lag1(residual[best])))
    # a noiseless curve fits exactly: its error is that of the numbers themselves
    exact = 1e-12 * len(z) * max(float(np.mean((level * weight) ** 2)), 1e-300)
    return np.asarray(n * np.log(rss + exact), dtype=np.float64)


def _blocks(x: Array, cost: Array) -> tuple[Array, Array]:
    """Mean axis and interquartile mean of up to ``BLOCKS`` blocks: nearly as sharp as the mean, deaf to spikes."""
    size = max(1, len(cost) // BLOCKS)
    n = len(cost) // size * size
    inner = np.sort(cost[-n:].reshape(-1, size), axis=1)[:, size // 4 : size - size // 4]
    return x[-n:].reshape(-1, size).mean(axis=1), inner.mean(axis=1)


def _start(u: Array) -> tuple[int, float]:
    """(first block of the fit, fall): the last one before a tenth of the fall is done."""
    m = len(u)
    smooth = np.convolve(np.pad(u, 1, mode="edge"), np.ones(3) / 3.0, "valid")
    top = int(np.argmax(smooth[: max(1, m // 3)]))
    fall = float(smooth[top] - np.median(u[-max(3, m // 10) :]))
    done = smooth[top:] < smooth[top] - SKIP_FALL * fall
    return top + (int(np.argmax(done)) if done.any() else 0), fall


@cache
def _grid() -> tuple[Array, Array, Array]:
    """Shapes, scales and ends (NaN for smooth curves) of all candidate curves, on an axis of length 1."""
    rows = [(xi, -xi * end, end) for xi in ABRUPT_SHAPES for end in np.linspace(0.03, 1.0, 98)]
    rows += [(xi, s, math.nan) for xi in SMOOTH_SHAPES for s in np.geomspace(0.005, 2.0, 50)]
    shapes, scales, ends = np.array(rows, dtype=np.float64).T
    return shapes, scales, ends


def _curves(z: Array, shapes: Array, scales: Array) -> Array:
    """g at the times z for each (shape, scale), as rows."""
    ratio = z[None, :] / scales[:, None]
    out = np.exp(-ratio)
    for xi in np.unique(shapes[shapes != 0.0]):
        rows = shapes == xi
        base = np.maximum(1.0 + xi * ratio[rows], 0.0)
        out[rows] = base ** (-1.0 / xi)
    return np.asarray(out, dtype=np.float64)


def _residuals(g: Array, one: Array, y: Array, positive: bool) -> Array:
    """Residuals of y = c one + a g by least squares for each row of g; a >= 0, and c >= 0 if ``positive``."""
    a11, a12, a22 = float(one @ one), g @ one, np.einsum("ij,ij->i", g, g)
    b1, b2 = float(one @ y), g @ y
    det = np.maximum(a11 * a22 - a12**2, 1e-12 * a11 * a22 + 1e-300)
    c, a = (a22 * b1 - a12 * b2) / det, (a11 * b2 - a12 * b1) / det
    if positive:
        below = c < 0.0
        c, a = np.where(below, 0.0, c), np.where(below, b2 / np.maximum(a22, 1e-300), a)
    c, a = np.where(a < 0.0, b1 / a11, c), np.maximum(a, 0.0)
    return np.asarray(y - c[:, None] * one - a[:, None] * g, dtype=np.float64)
