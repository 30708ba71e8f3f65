"""Smoothing on all points: the debiased EWMA, and the choice of its alpha from the series itself.

Viewers smooth after down-sampling, so the same weight draws another curve for another run length.
Here the whole series is smoothed first and thinned only for drawing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.stats import Array, mad_sd

ALPHAS: Array = np.geomspace(0.002, 1.0, 25)
"""Candidates of ``choose_alpha``; log-spaced, as in the calibration of the method."""

CLIP_SIGMAS = 6.0
"""Noise alone goes so far from its forecast once in a billion points; a spike does."""

MIN_POINTS = 8
"""Fewer points are never smoothed: a curve of two points has nothing to smooth."""


def ewma(y: Array, alpha: float) -> Array:
    """Debiased exponentially weighted mean; shape of y.

    m <- (1 - alpha) m + alpha y, output m / (1 - (1 - alpha)^k) with k the count of finite points so
    far: TensorBoard's smoothing with weight 1 - alpha. Non-finite points are skipped and come out as
    they went in.
    """
    finite = np.isfinite(y)
    clean = pl.Series(np.where(finite, y, 0.0)).set(pl.Series(~finite), None)
    out = clean.ewm_mean(alpha=alpha, adjust=True, ignore_nulls=True).to_numpy()
    return np.where(finite, out, y)


@dataclass(frozen=True, slots=True)
class Smoothing:
    """A chosen alpha and what it means in points of the series."""

    alpha: float
    window_points: float
    """Effective window (2 - alpha) / alpha."""
    lag_points: float
    """The smoothed curve is late by (1 - alpha) / alpha points; shift onsets back by it."""


def choose_alpha(u: Array) -> Smoothing | None:
    """The alpha with the least one-step-ahead squared error on the work scale, or None if too short.

    For a local-level model this recovers the optimal gain within about 10 % (n = 2,000). An error counts as
    at most ``CLIP_SIGMAS`` robust standard deviations of the steps, or a few spikes would decide. ``u`` must
    be finite and without its warm-up.
    """
    if len(u) < MIN_POINTS:
        return None
    clip = CLIP_SIGMAS * mad_sd(np.diff(u)) or np.inf
    now, ahead = pl.col("u").head(len(u) - 1), pl.col("u").tail(len(u) - 1)
    errors = pl.DataFrame({"u": u}).select(
        ((ahead - now.ewm_mean(alpha=float(a), adjust=True)).clip(-clip, clip) ** 2).sum().alias(str(i))
        for i, a in enumerate(ALPHAS)
    )
    alpha = float(ALPHAS[int(np.argmin(errors.row(0)))])
    return Smoothing(alpha=alpha, window_points=(2.0 - alpha) / alpha, lag_points=(1.0 - alpha) / alpha)
