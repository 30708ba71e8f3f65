"""Upward excursions of a curve: where it leaves the level that its own past predicts, and whether it returns.

The prediction is causal and robust. For the accepted points so far, the next value is expected at the
median of the last few, corrected by the median of past prediction errors (so a falling curve does not hide
a jump), with a scale from the median absolute prediction error. Inside an excursion both are frozen: a
spike never teaches the detector that spikes are normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.stats import MAD_TO_SD, Array

LEVEL_POINTS = 11
"""Points whose median is the level: enough to ride out noise, few enough to follow a descent."""

FALLEN_SHARE = 0.8
"""An excursion has begun to fall once it is below this share of its height."""

FIRST_CHUNK = 2048
LARGEST_CHUNK = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a point has left the level, and when it is back. Work scale."""

    z_min: float
    """Robust z that starts an excursion."""
    rise_min: float
    """Least rise that starts one."""
    floor: float = 0.0
    """Least scale: the resolution of the recorded numbers."""
    window: int = 101
    """Accepted points the scale is taken from."""
    min_points: int = 20
    """Accepted points needed before anything is judged."""
    back_z: float = 2.0
    back_share: float = 0.1
    """Back at the level: below ``max(back_z * scale, back_share * height)``, ``back_points`` in a row."""
    back_points: int = 5
    again_min: float = math.log(1.2)
    """A jump between two points of an excursion that has begun to fall starts the next one."""
    max_points: int = 50
    """An excursion longer than this has not returned: it is a new level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excursion:
    """Points ``start`` to ``end`` (exclusive) above the level; indices into the curve given."""

    start: int
    end: int
    peak: int
    level: float
    """Expected value at the start, work scale."""
    scale: float
    height: float
    """Peak above the level, work scale."""
    held: int
    """Points in a row from the start that stay above half the limit: noise does not hold, a spike does."""
    returned: bool

    @property
    def z(self) -> float:
        """The peak in robust standard deviations of the prediction error."""
        return self.height / self.scale if self.scale > 0 else math.inf


def upward(u: Array, rule: Rule) -> list[Excursion]:
    """All upward excursions of ``u`` (finite, work scale), in order. O(n log window)."""
    found: list[Excursion] = []
    history = u[:0]
    keep = 2 * rule.window + LEVEL_POINTS
    i, size = 0, FIRST_CHUNK
    while i < len(u):
        chunk = u[i : i + size]
        level, scale = expect(np.concatenate([history, chunk]), rule)
        level, scale = level[len(history) :], np.maximum(scale[len(history) :], rule.floor)
        with np.errstate(invalid="ignore"):  # NaN = too few points yet: compares false
            hits = np.flatnonzero((chunk - level > rule.rise_min) & (chunk - level > rule.z_min * scale))
        if not len(hits):
            history = np.concatenate([history, chunk])[-keep:]
            i, size = i + len(chunk), min(2 * size, LARGEST_CHUNK)
            continue
        k = int(hits[0])
        one = _follow(u, i + k, float(level[k]), float(scale[k]), rule)
        found.append(one)
        history = np.concatenate([history, chunk[:k]])[-keep:] if one.returned else u[:0]
        i, size = (one.end if one.returned else one.start), FIRST_CHUNK
    return found


def expect(a: Array, rule: Rule) -> tuple[Array, Array]:
    """Level and scale expected at each point from the points before it; NaN where there are too few.

    ``a`` and both results have shape (n,), work scale.
    """
    level = _trailing_median(a, LEVEL_POINTS, 1)
    error = a - level
    bias = _trailing_median(error, rule.window, 5)
    # the first bias needs 5 errors, the first error one point before it
    spread = _trailing_median(np.abs(error - bias), rule.window, max(1, rule.min_points - 6))
    return level + bias, MAD_TO_SD * spread


def _trailing_median(a: Array, window: int, min_points: int) -> Array:
    """Median of the ``window`` points before each one, NaN ones left out; NaN where there are too few."""
    before = pl.col("a").rolling_median(window, min_samples=min_points).shift(1)
    values = pl.DataFrame({"a": pl.Series(a, nan_to_null=True)}).select(before).to_series()
    return values.to_numpy()  # nulls are NaN there


def _follow(u: Array, start: int, level: float, scale: float, rule: Rule) -> Excursion:
    """The excursion that begins at ``start``, until it is back, jumps again, or is too long."""
    above = u[start : start + rule.max_points + rule.back_points] - level
    height = np.maximum.accumulate(above)
    # what is left of a high one must not start another
    enough = np.minimum(rule.back_share * height, 0.9 * max(rule.z_min * scale, rule.rise_min))
    back = above < np.maximum(rule.back_z * scale, enough)
    # the last points of a curve count as back when all that is left of it is back
    padded = np.concatenate([back, np.ones(rule.back_points - 1, dtype=bool)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, rule.back_points)
    in_row = np.asarray(windows.all(axis=1), dtype=np.bool_)[: rule.max_points + 1]
    fallen = above[:-1] < FALLEN_SHARE * height[:-1]
    jumped = np.diff(above) > max(rule.again_min, math.sqrt(2.0) * rule.z_min * scale)
    again = 1 + np.flatnonzero(fallen & jumped)
    ends = np.sort(np.concatenate([np.flatnonzero(in_row), again[again < len(in_row)]]))
    end = int(ends[0]) if len(ends) else len(above)
    return Excursion(
        start=start,
        end=start + end,
        peak=start + int(np.argmax(above[:end])),
        level=level,
        scale=scale,
        height=float(above[:end].max()),
        held=int(np.argmin(np.append(above[:end] > 0.5 * max(rule.z_min * scale, rule.rise_min), False))),
        returned=bool(len(ends)),
    )


def resolution(y: Array) -> float:
    """The step in which the numbers were recorded: the least distance between two different ones.

    A loss printed with four decimals moves in steps of 1e-4 and cannot be judged finer than that.
    Values are compared to ten significant digits; 0 where all are equal.
    """
    size = float(np.max(np.abs(y), initial=0.0))
    if size == 0.0:
        return 0.0
    gaps = np.diff(np.unique(y))
    gaps = gaps[gaps > 1e-10 * size]
    return float(gaps.min()) if len(gaps) else 0.0
