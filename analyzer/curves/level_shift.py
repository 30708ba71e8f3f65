"""A held-out curve that jumps to another level from one evaluation to the next and stays there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afterrun.analyzer.curves.generalisation import Assessment, train_leg
from afterrun.analyzer.stats import noise_scale

MIN_BEFORE = 5
"""Evaluations that must have held the lower level before."""

NOISE_WIDTHS = 8.0
"""The gap between the two levels, in noise of one evaluation."""

LEAST_RISES = 10.0
"""The gap between the two levels, in the least rise anybody cares about."""

JUMP_SHARE = 0.6
"""The gap between the two levels, in the whole rise: what goes on rising is a drift."""


def after_jump(found: Assessment, *, min_after: int, floor_share: float) -> Assessment | None:
    """The assessment moved to the last evaluation before a jump that lasts to the end; None without one.

    Every one of the last ``min_after`` or more evaluations must stand above every one of the later half of those
    before the jump, by ``NOISE_WIDTHS`` and ``LEAST_RISES``. No trend test sees this: both levels are flat.
    """
    cost = found.matched.val_cost
    n = len(cost)
    if n < MIN_BEFORE + min_after:
        return None
    lowest_after = np.minimum.accumulate(cost[::-1])[::-1]
    starts = range(MIN_BEFORE, n - min_after + 1)
    gaps = [float(lowest_after[i] - cost[_window(i) : i].max()) for i in starts]
    at = MIN_BEFORE + int(np.argmax(gaps))
    before = cost[_window(at) : at]
    sigma = noise_scale(before)
    height = float(np.median(cost[at:]) - np.median(before))
    if max(gaps) <= max(NOISE_WIDTHS * sigma, LEAST_RISES * found.least_rise, JUMP_SHARE * height):
        return None
    turn = replace(
        found.turn,
        best=at - 1,
        low=at - 1,
        high=at - 1,
        rise=height,
        height=height,
        height_se=sigma,
        after=n - at,
    )
    return replace(found, turn=turn, train=train_leg(found.matched, at - 1, floor_share))


def _window(at: int) -> int:
    """First of the evaluations that show the level before ``at``: the later half, at least ``MIN_BEFORE``."""
    return max(0, at - max(MIN_BEFORE, at // 2))
