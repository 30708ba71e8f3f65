"""A period in the times of steps: every so many steps one takes longer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array, running_median

COURSE = 201
"""Steps over which the usual time is taken, so that a drift is no rhythm."""

LONGEST = 64
"""Periods looked for: loaders have no more workers than that, as a rule."""

FOLDS = 8
"""Times that a period must fit into the record."""

CUT = 3.0
"""Deviations beyond are cut: one huge step is no rhythm."""

SHUFFLES, MARGIN = 20, 1.2
"""The fold must beat the best of so many shuffled records by this factor."""

HARMONIC = 0.8
"""The shortest period that reaches this share of the best one is the period; the others are its multiples."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Every ``period`` steps the one at ``phase`` takes longer; ``excess_pct`` of all time goes into that."""

    period: int
    phase: int
    strength: float
    excess_pct: float


def rhythm(seconds: Array) -> Rhythm | None:
    """The period of step times (each of one step, in order); None where shuffled times show as much.

    For every period p the logarithm less its running median is folded; the statistic is how far the highest phase mean stands
    above the median phase, in standard errors. The null is the largest over all p in shuffled records, seeded.
    """
    n = len(seconds)
    longest = min(LONGEST, n // FOLDS)
    if longest < 2:
        return None
    log = np.log(seconds)
    e = log - running_median(log, COURSE)
    spread = float(e.std()) or 1.0
    e = np.clip(e, -CUT * spread, CUT * spread)
    found = _strengths(e, longest)
    dice = np.random.default_rng(0)
    null = max(float(_strengths(dice.permutation(e), longest).max()) for _ in range(SHUFFLES))
    best = float(found.max())
    if best <= MARGIN * null:
        return None
    period = 2 + int(np.argmax(found >= HARMONIC * best))
    means = _phases(e, period)
    phase = int(np.argmax(means))
    late = np.arange(n) % period == phase
    excess = float(np.maximum(seconds[late] - np.median(seconds[~late]), 0.0).sum())
    return Rhythm(period, phase, best / max(null, 1e-12), 100.0 * excess / float(seconds.sum()))


def _phases(e: Array, period: int) -> Array:
    return np.array([e[phase::period].mean() for phase in range(period)])


def _strengths(e: Array, longest: int) -> Array:
    """Statistic of each period from 2 on."""
    sd = float(e.std()) or 1.0
    out = []
    for period in range(2, longest + 1):
        means = _phases(e, period)
        out.append((float(means.max()) - float(np.median(means))) / (sd / math.sqrt(len(e) / period)))
    return np.array(out)
