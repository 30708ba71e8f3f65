"""What stands beside a loss spike: other people's definitions, and what the gradient norm did before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.curves.excursions import Rule, expect
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array

OLMO_WINDOW = 1000
OLMO_SD = 7.0
MEGATRON_FACTOR = 10.0
MEGATRON_FIRST = 100
MEGATRON_RL_CHANGE = 0.2
ZCLIP_DECAY = 0.97
ZCLIP_Z = 2.5
FEWEST = 20
"""Points before a rolling definition says anything."""


def olmo_spike_score_pct(y: Array) -> float:
    """Share of points at least 7 standard deviations from the rolling mean of the last 1,000 (OLMo 2).

    The window holds the points before the one judged. ``y`` finite, shape (n,); percent.
    """
    n = np.arange(len(y))
    first = np.maximum(n - OLMO_WINDOW, 0)
    held = np.maximum(n - first, 1)
    centred = y - np.median(y) if len(y) else y
    centred = centred / (np.max(np.abs(centred), initial=0.0) or 1.0)  # sums of squares stay exact and finite
    total, squares = (np.concatenate([[0.0], np.cumsum(centred**k)]) for k in (1, 2))
    mean = (total[n] - total[first]) / held
    sd = np.sqrt(np.maximum((squares[n] - squares[first]) / held - mean**2, 0.0))
    far = (n >= FEWEST) & (sd > 0) & (np.abs(centred - mean) >= OLMO_SD * sd)
    return 100.0 * float(far.sum()) / max(len(y), 1)


def megatron_spiky_points(y: Array) -> int:
    """Points whose size is at least 10 x the largest of the first 100 (Megatron-LM)."""
    size = np.abs(y)
    first = float(size[:MEGATRON_FIRST].max(initial=0.0))
    return int(np.sum(size[MEGATRON_FIRST:] >= MEGATRON_FACTOR * first))


def megatron_rl_points(y: Array) -> int:
    """Points that rose by at least 20 % over the one before (Megatron-LM, reinforcement learning)."""
    return int(np.sum(np.diff(y) >= MEGATRON_RL_CHANGE * np.abs(y[:-1])))


def zclip_points(grad: Array) -> int:
    """Gradient norms more than 2.5 sd above their exponential mean of decay 0.97 (ZClip). ``grad`` finite."""
    if len(grad) <= FEWEST:
        return 0
    s = pl.Series(grad)
    mean = s.ewm_mean(alpha=1.0 - ZCLIP_DECAY, adjust=True).to_numpy()[:-1]
    sd = s.ewm_std(alpha=1.0 - ZCLIP_DECAY, adjust=True).to_numpy()[:-1]
    return int((grad[1:] - mean > ZCLIP_Z * sd)[FEWEST - 1 :].sum())


@dataclass(frozen=True, slots=True)
class Lead:
    """What the gradient norm did around one onset."""

    z_before: float | None
    """Largest robust z among the norms recorded before the onset; None where none can be judged."""
    lead_steps: float | None
    """How long before the onset it first passed the limit; None where it did not."""
    z_at: float | None
    """Largest robust z at the onset and one recorded norm after it."""


class GradientWatch:
    """The gradient norm with the z of every point, computed once for all spikes of a run."""

    def __init__(self, grad: Series, z_min: float, lookback: int) -> None:
        level, scale = expect(grad.u, Rule(z_min=z_min, rise_min=0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            self.z: Array = (grad.u - level) / scale
        self.x = grad.xf
        self.z_min = z_min
        self.lookback = lookback

    def around(self, onset: float) -> Lead:
        """What it did around this place on the axis."""
        i = int(np.searchsorted(self.x, onset))
        before = slice(max(0, i - self.lookback), i)
        early = np.flatnonzero(self.z[before] > self.z_min)
        lead = onset - float(self.x[before][early[0]]) if len(early) else None
        return Lead(z_before=_largest(self.z[before]), lead_steps=lead, z_at=_largest(self.z[i : i + 2]))


def _largest(z: Array) -> float | None:
    known = z[np.isfinite(z)]
    return float(known.max()) if len(known) else None
