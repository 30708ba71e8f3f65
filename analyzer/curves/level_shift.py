"""A held-out curve that jumps to another level from one evaluation to the next and stays there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afterrun.analyzer.curves.generalisation import Assessment, train_leg
from afterrun.analyzer.stats import Ints, noise_scale, range_max

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
    starts = np.arange(MIN_BEFORE, n - min_after + 1)
    gaps = lowest_after[starts] - range_max(cost, _window(starts), starts)
    at = MIN_BEFORE + int(np.argmax(gaps))
    before = cost[int(_window(np.array([at]))[0]) : at]
    sigma = noise_scale(before)
    height = float(np.median(cost[at:]) - np.median(before))
    if float(gaps.max()) <= max(NOISE_WIDTHS * sigma, LEAST_RISES * found.least_rise, JUMP_SHARE * height):
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
    return replace(found, turn=turn, train=train_leg(found.matched, at - 1, floor_share, height))


def _window(at: Ints) -> Ints:
    """First of the evaluations that show the level before ``at``: the later half, at least ``MIN_BEFORE``."""
    return np.maximum(0, at - np.maximum(MIN_BEFORE, at // 2))
