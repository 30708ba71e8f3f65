"""A curve that goes to a higher level from one point to the next and stays there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.stats import Array, mad_sd, running_median, trend

SIDE_SHARE = 0.03
"""Points on each side of a step that show the two levels, as a share of the curve ..."""

SIDE_POINTS = (10, 50)
"""... at least and at most so many."""

SHARP_SHARE = 0.6
"""Part of the height that the three points behind the step must show already."""

NOISE_FACTOR = 4.0
"""Height in standard deviations of one point: a step that the noise reaches is none."""

KEPT_SHARE = 0.5
"""Part of the height that no later block of ``stay`` may fall below."""

RISING_P = 0.01
"""One-sided p of a rising trend behind the step, with which a rise of half its height more is a climb."""


@dataclass(frozen=True, slots=True)
class StepUp:
    """Point ``at`` is the first on the new level. Levels are medians on the work scale."""

    at: int
    before: float
    after: float
    z: float
    """Height in robust standard deviations of the same difference everywhere else."""
    climbs: bool
    """The curve goes on rising: the beginning of a divergence."""

    @property
    def height(self) -> float:
        """The difference of the levels."""
        return self.after - self.before


def step_up(
    u: Array, *, rise_min: float, z_min: float, stay_share: float, known: Sequence[int] = ()
) -> StepUp | None:
    """The highest step of ``u`` (finite, work scale) that stays up and is none of the ``known`` points; None without one.

    The median of the points behind is compared with that of the points before, at every point, and this difference with
    those one stretch earlier and later: a descent has them everywhere. How much that excess moves along the curve
    is its scale, so slow waves are no steps.
    """
    n = len(u)
    side = side_points(n)
    if n < 6 * side:
        return None
    medians = pl.Series(u).rolling_median(side).to_numpy()
    difference = medians[2 * side - 1 :] - medians[side - 1 : n - side]  # of the point ``side`` further on
    excess = difference - _around(difference, 2 * side)
    apart = np.abs(np.arange(len(excess)) - int(np.argmax(excess))) > 3 * side
    scale = (
        mad_sd(excess[apart]) if apart.sum() >= side else mad_sd(excess)
    )  # of what the step itself does not move
    least = max(rise_min, NOISE_FACTOR * mad_sd(u - running_median(u, side)))
    stay = max(side, int(stay_share * n))
    for at in known:
        excess[max(0, at - 2 * side) : max(0, at + 1)] = -np.inf  # all whose point is less than a side away
    for i in np.argsort(-excess)[: 2 * side]:
        height = float(excess[i])
        if height <= max(least, z_min * scale):
            return None
        at = _first(u, int(i) + side, side)
        slope = _slope(u[max(0, at - max(stay, 2 * side)) : at])
        found = StepUp(
            at=at,
            before=float(np.median(u[at - side : at])) + slope * side / 2,
            after=float(np.median(u[at : at + 3])),
            z=height / scale if scale > 0 else np.inf,
            climbs=_climbs(u[at:], float(np.median(u[at : at + side])), height, side),
        )
        half = max(5, side // 2)
        plain = float(
            np.median(u[at : at + half]) - np.median(u[at - half : at])
        )  # a descent that ends is no step
        if (
            min(found.height, plain) > least
            and _is_sharp(u, at, height)
            and _stays(u, found, slope, stay, side)
        ):
            return found
    return None


def comes_back(u: Array, at: int, end: int) -> bool:
    """Whether some block of points from ``at`` to ``end`` lies below half of the step at ``at``."""
    side = side_points(len(u))
    before = float(np.median(u[max(0, at - side) : at]))
    later = u[at:end] - before
    blocks = [
        float(np.median(b)) for b in np.array_split(later, max(1, len(later) // max(5, side // 2))) if len(b)
    ]
    return not blocks or min(blocks) < KEPT_SHARE * max(blocks)


def side_points(n: int) -> int:
    """Points on each side of a step in a curve of ``n`` points."""
    return int(np.clip(SIDE_SHARE * n, *SIDE_POINTS))


def _around(difference: Array, apart: int) -> Array:
    """Mean of the values ``apart`` points earlier and later, of one where there is only one."""
    both = np.full((2, len(difference)), np.nan)
    both[0, apart:], both[1, :-apart] = difference[:-apart], difference[apart:]
    return np.asarray(
        np.where(np.isnan(both[0]), both[1], np.where(np.isnan(both[1]), both[0], both.mean(axis=0)))
    )


def _slope(u: Array) -> float:
    """Change a point before the step, never upwards: a curve that rises already does not step."""
    half = len(u) // 2
    return min(0.0, float(np.median(u[half:]) - np.median(u[:half])) / max(1, len(u) - half))


def _first(u: Array, near: int, side: int) -> int:
    """The point within half a side of ``near`` that lies highest above the one before."""
    reach = np.arange(max(side, near - side // 2), min(len(u) - side, near + side // 2) + 1)
    return int(reach[np.argmax(u[reach] - u[reach - 1])])


def _is_sharp(u: Array, at: int, height: float) -> bool:
    jump = float(np.median(u[at : at + 3]) - np.median(u[at - 3 : at]))
    return height > 0 and jump >= SHARP_SHARE * height


def _stays(u: Array, step: StepUp, slope: float, stay: int, side: int) -> bool:
    """Whether all blocks of the next ``stay`` points stand above where the curve was going; a block is half a side."""
    later = u[step.at : step.at + stay] - step.before - slope * np.arange(min(stay, len(u) - step.at))
    blocks = np.array_split(later, max(1, len(later) // max(5, side // 2)))
    return min(float(np.median(b)) for b in blocks) >= KEPT_SHARE * step.height


def _climbs(later: Array, after: float, height: float, side: int) -> bool:
    end = float(np.median(later[-side:]))
    return end - after > 0.5 * height and trend(later).p_up < RISING_P
