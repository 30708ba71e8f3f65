"""Sizes of tensors from their histograms, all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.stats import Array

FINE = 1e-3
"""A bucket around zero tells exact zeros where it is narrower than this share of the root mean square."""

TINY = 1e-10
"""... or where it ends below this: TensorBoard's buckets begin at 1e-12."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Moments:
    """One value a histogram, shape (n,). NaN where the buckets do not tell.

    ``mean_abs`` takes the middle of each bucket; it is off by at most half a bucket's width.
    ``zero_share`` is the share of values that are zero within a bucket too fine for anything else.
    """

    count: Array
    mean_abs: Array
    rms: Array
    zero_share: Array
    low: Array
    high: Array


def moments(histograms: pl.DataFrame) -> Moments:
    """Moments of rows of the ``histograms`` table (``edges`` k + 1, ``counts`` k values)."""
    sizes = histograms["counts"].list.len().to_numpy().astype(np.int64)
    counts = histograms["counts"].explode(empty_as_null=False).to_numpy().astype(np.float64)
    edges = histograms["edges"].explode(empty_as_null=False).to_numpy().astype(np.float64)
    row = np.repeat(np.arange(len(sizes)), sizes)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # one edge more than counts in each row that has any
    left = np.arange(len(counts)) + np.repeat(np.cumsum(sizes > 0) - (sizes > 0), sizes)
    a, b = edges[left], edges[left + 1]

    def total(values: Array) -> Array:
        return np.bincount(row, weights=values, minlength=len(sizes)).astype(np.float64)

    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        n = total(counts)
        mean_abs = total(counts * _mean_abs(a, b)) / n
        rms = np.sqrt(total(counts * (a * a + a * b + b * b) / 3.0) / n)
        limit = np.maximum(FINE * rms[row], TINY)
        fine = (np.abs(a) <= limit) & (np.abs(b) <= limit)
        around = (a <= 0.0) & (b >= 0.0)
        coarse = np.bincount(row, weights=around & ~fine & (counts > 0), minlength=len(sizes)) > 0
        zero = total(np.where(around & fine, counts, 0.0)) / n
    nothing = (rms == 0.0) & (n > 0)
    return Moments(
        count=n,
        mean_abs=mean_abs,
        rms=rms,
        zero_share=np.where(nothing, 1.0, np.where(coarse | (n == 0), np.nan, zero)),
        low=_ends(edges, first, sizes, last=False),
        high=_ends(edges, first, sizes, last=True),
    )


def _mean_abs(a: Array, b: Array) -> Array:
    """Mean of |x| for x spread evenly from ``a`` to ``b``."""
    width = b - a
    across = (a < 0.0) & (b > 0.0)
    split = np.divide(a * a + b * b, 2.0 * width, out=np.zeros_like(a), where=across & (width > 0))
    return np.where(across, split, np.abs(a + b) / 2.0)


def _ends(edges: Array, first: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], *, last: bool) -> Array:
    """Outermost edge of each row."""
    found = np.full(len(sizes), np.nan)
    some = sizes > 0
    at = first + np.cumsum(some) - some + (sizes if last else 0)
    found[some] = edges[at[some]]
    return found
