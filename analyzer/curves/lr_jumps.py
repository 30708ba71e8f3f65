"""Jumps up of a learning rate from one record to the next, and whether a schedule would do that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.stats import Array

ENDED_SHARE = 0.03
"""A rate below this share of its peak has come to the end of a cycle: what follows is a planned restart."""

FLAT_SHARE = 0.25
"""A rate that falls by less than this share of the steepest fall of its cycle stands at the bottom of it."""

FALL_WINDOW = 0.02
"""Share of the records over which a fall is measured."""

LONE_SHARE = 0.02
"""More jumps than this share of the records make a rate that moves up and down by design."""

REMAINS = 0.3
"""The rate must not rise by more than this share of the jump right before it: a ramp with few records is no jump."""


@dataclass(frozen=True, slots=True)
class RateJump:
    """Record ``at`` holds the higher rate. ``planned``: the cycle before had come to its end."""

    at: int
    before: float
    after: float
    planned: bool

    @property
    def factor(self) -> float:
        """How many times as high."""
        return self.after / self.before if self.before > 0 else np.inf


def rate_jumps(rate: Array, factor: float) -> list[RateJump]:
    """Rises of ``rate`` (finite, in order of the axis) by ``factor`` or more from one record to the next.

    The first ascent is warm-up. A rate that has more than a few such rises moves by design (triangles, or
    one sampled too rarely to tell).
    """
    n = len(rate)
    if n < 5 or float(rate.max()) <= 0:
        return []
    first_peak = _end_of_first_ascent(rate)
    peak = float(rate.max())
    high = np.flatnonzero((rate[1:] >= factor * rate[:-1]) & (rate[1:] > 0.01 * peak)) + 1
    up = [i for i in high.tolist() if i > first_peak and _is_lone(rate, i)]
    if len(up) > max(1, LONE_SHARE * n):
        return []
    begins = [first_peak, *up]  # of the cycle before each jump
    return [
        RateJump(at, float(rate[at - 1]), float(rate[at]), _planned(rate, at, begin, peak))
        for at, begin in zip(up, begins, strict=False)
    ]


def _end_of_first_ascent(rate: Array) -> int:
    """The record at which the rate first falls, or stops rising for longer than it rose."""
    falls = np.flatnonzero(np.diff(rate) < 0)
    rises = np.flatnonzero(np.diff(rate) > 0)
    if not len(rises):
        return 0
    gaps = np.flatnonzero(np.diff(rises) > max(5, 0.05 * len(rate)))
    end = int(rises[gaps[0]] if len(gaps) else rises[-1]) + 1
    return min(end, int(falls[0])) if len(falls) else end


def _is_lone(rate: Array, at: int) -> bool:
    """Whether the rise is one jump and not part of a ramp that few records show."""
    size = rate[at] - rate[at - 1]
    before = rate[at - 1] - rate[at - 2] if at >= 2 else 0.0
    after = rate[at + 1] - rate[at] if at + 1 < len(rate) else 0.0
    return bool(max(before, after) <= REMAINS * size)


def _planned(rate: Array, at: int, begin: int, peak: float) -> bool:
    """Whether the cycle from ``begin`` to the jump had come to its end: at nothing, or flat at its lowest."""
    last = float(rate[at - 1])
    if last <= ENDED_SHARE * peak:
        return True
    cycle = rate[begin:at]
    step = max(1, int(FALL_WINDOW * len(rate)))
    if len(cycle) < 3 * step:
        return False
    fall = cycle[:-step] - cycle[step:]
    steepest = float(fall.max())
    return bool(steepest > 0 and fall[-1] < FLAT_SHARE * steepest and last <= 0.5 * float(cycle.max()))
