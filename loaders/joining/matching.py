"""Whether two curves hold the same values, point by point: at the same steps, or in the same order.

Two numbers are the same where they differ by no more than the rounding of both (``afterrun.loaders.joining.precision``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.joining.precision import Floats, Precision, precision_of

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

AGREE_SHARE = 0.9
"""Two curves are one where at least this share of the points compared agrees; the rest may be logged again."""
MIN_DIGITS = 6
"""Significant digits that must agree in all: one value of six, or three of two."""
MIN_DIGITS_ORDER = 12
"""... where nothing but the order says which points belong together."""
UNIQUE_SHARE = 0.9
"""An order tells which points belong together where this share of them has one place only, ..."""
WHOLE_SHARE = 0.9
"""... or where the curve has at least this share of the points of the other."""
CLOCK_NS = 30 * 10**9
"""Two sources write the same value within so many nanoseconds, where both have a clock."""
MAX_AT_STEP = 16
"""Values of one step that are looked at, the last ones; a per-batch curve on an epoch axis has thousands."""
MAX_LOOKS = 20
"""Points looked at for each point of both curves before a search by order is given up."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """All rows of one tag of one format, in write order; the arrays share one length.

    ``step``, ``epoch`` and ``wall_ns`` are None where a surviving row has none. ``alive``: not replaced later.
    """

    rows: Ints
    """Numbers of the rows in the frame they come from."""
    value: Floats
    alive: Bools
    step: Ints | None = None
    epoch: Floats | None = None
    wall_ns: Ints | None = None

    @cached_property
    def precision(self) -> Precision:
        """How exactly the values are written."""
        return precision_of(self.value)

    @cached_property
    def tolerance(self) -> Floats:
        """Rounding of each value."""
        return self.precision.tolerance(self.value)

    @cached_property
    def living(self) -> Ints:
        """Positions of the surviving rows, in the order of their axis."""
        at = np.flatnonzero(self.alive)
        return at if self.step is None else at[np.argsort(self.step[at], kind="stable")]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Match:
    """Points ``a`` of one curve beside points ``b`` of another, and whether their values agree."""

    a: Ints
    b: Ints
    agree: Bools
    certain: Bools
    """Whether a point has this partner and could have no other."""
    enough: bool
    """Whether the points that agree make the two curves one."""

    def turned(self) -> Match:
        """The same seen from the other curve."""
        return Match(a=self.b, b=self.a, agree=self.agree, certain=self.certain, enough=self.enough)


def by_step(a: Curve, b: Curve) -> Match | None:
    """Surviving points of ``a`` beside those points of ``b`` at the same step that agree, else the last one.

    Points of ``b`` that a restart replaced count too: ``a`` may be a record of the earlier attempt. None where a
    step is missing or no step is shared.
    """
    if a.step is None or b.step is None:
        return None
    order = np.argsort(b.step, kind="stable")
    steps = b.step[order]
    at = a.living
    low, high = (np.searchsorted(steps, a.step[at], side=side) for side in ("left", "right"))
    shared = high > low
    at, low, high = at[shared], low[shared], high[shared]
    if not len(at):
        return None
    partner, agree = order[high - 1], np.zeros(len(at), np.bool_)
    for back in range(1, min(int((high - low).max()), MAX_AT_STEP) + 1):
        here = order[np.maximum(high - back, 0)]
        same = (high - back >= low) & ~agree & _close(a, at, b, here)
        partner = np.where(same, here, partner)
        agree |= same
    enough = _enough(a, b, agree, len(at), MIN_DIGITS)
    return Match(a=at, b=partner, agree=agree, certain=agree, enough=enough)


def by_order(a: Curve, b: Curve) -> Match | None:
    """The surviving points of ``a`` laid upon those of ``b`` in the same order, passing over some of ``b``.

    Point upon point where both have as many. Else it is done from the first point on and from the last one back;
    a point that both put in the same place can have no other. Epochs and clocks narrow the search where both
    curves have them. None where ``a`` is longer, or where a search takes too long.
    """
    x, y = a.living, b.living
    if not 0 < len(x) <= len(y):
        return None
    if len(x) == len(y):
        agree = _close(a, x, b, y)
        if _enough(a, b, agree, len(x), MIN_DIGITS_ORDER):
            return Match(a=x, b=y, agree=agree, certain=agree, enough=True)
    axes = _axes(a, x, b, y)
    found = _laid(a, x, b, y, axes)
    if (found is None or not found.enough) and _CLOCK in axes:
        # the clocks may be of two zones
        found = _laid(a, x, b, y, {_EPOCH: axes[_EPOCH]} if _EPOCH in axes else {})
    return found


def _enough(a: Curve, b: Curve, agree: Bools, compared: int, digits: int) -> bool:
    told = min(a.precision.told, b.precision.told)
    same = int(agree.sum())
    return same >= AGREE_SHARE * compared and same * told >= digits


def _close(a: Curve, i: Ints, b: Curve, j: Ints) -> Bools:
    """Whether values agree within the rounding of both; NaN is NaN, and an infinity itself."""
    return _near(a.value[i], b.value[j], a.tolerance[i] + b.tolerance[j])


def _near(x: Floats | float, y: Floats, slack: Floats) -> Bools:
    with np.errstate(invalid="ignore"):
        found: Bools = (np.abs(x - y) <= slack) | (x == y) | (np.isnan(x) & np.isnan(y))
    return found


_EPOCH, _CLOCK = "epoch", "clock"
_Axis = tuple[Floats | Ints, Floats | Ints, Floats | Ints]
"""The axis at the points of one curve and of the other, and how far the same point may lie apart."""


def _axes(a: Curve, x: Ints, b: Curve, y: Ints) -> dict[str, _Axis]:
    """What narrows a search: axes that both curves have and that never fall in the one laid upon."""
    axes: dict[str, _Axis] = {}
    if a.epoch is not None and b.epoch is not None:
        mine, theirs = a.epoch[x], b.epoch[y]
        slack = precision_of(mine).tolerance(mine) + precision_of(theirs).tolerance(theirs).max()
        axes[_EPOCH] = (mine, theirs, slack)
    if a.wall_ns is not None and b.wall_ns is not None:
        mine_ns, theirs_ns = a.wall_ns[x], b.wall_ns[y]
        if mine_ns.min() <= theirs_ns.max() and theirs_ns.min() <= mine_ns.max():
            axes[_CLOCK] = (mine_ns, theirs_ns, np.full(len(x), CLOCK_NS))
    return {name: axis for name, axis in axes.items() if not (np.diff(axis[1]) < 0).any()}


def _laid(a: Curve, x: Ints, b: Curve, y: Ints, axes: dict[str, _Axis]) -> Match | None:
    low, high = np.zeros(len(x), np.int64), np.full(len(x), len(y))
    for mine, theirs, slack in axes.values():
        low = np.maximum(low, np.searchsorted(theirs, mine - slack, side="left"))
        high = np.minimum(high, np.searchsorted(theirs, mine + slack, side="right"))
    search = _Search(a, x, b, y)
    forward = search.lay(low, high)
    back = _Search(a, x[::-1], b, y[::-1]).lay((len(y) - high)[::-1], (len(y) - low)[::-1])
    if forward is None or back is None:
        return None
    backward = np.where(back >= 0, len(y) - 1 - back, -1)[::-1]
    agree = forward >= 0
    certain = agree & (forward == backward)
    placed = certain.sum() >= UNIQUE_SHARE * agree.sum() or len(x) >= WHOLE_SHARE * len(y)
    enough = bool(placed) and _enough(a, b, agree, len(x), MIN_DIGITS if axes else MIN_DIGITS_ORDER)
    return Match(a=x, b=y[np.maximum(forward, 0)], agree=agree, certain=certain, enough=enough)


class _Search:
    """Looks for the points ``x`` of one curve among the points ``y`` of another, in order."""

    def __init__(self, a: Curve, x: Ints, b: Curve, y: Ints) -> None:
        self._mine, self._slack = a.value[x], a.tolerance[x]
        self._theirs, self._their_slack = b.value[y], b.tolerance[y]

    def lay(self, low: Ints, high: Ints) -> Ints | None:
        """For each ``x`` the first ``y`` in its range and behind the last one taken that agrees, -1 where none does.

        None where it takes too long.
        """
        found = np.full(len(low), -1)
        at, looks = 0, MAX_LOOKS * (len(self._mine) + len(self._theirs))
        for i in np.flatnonzero(self._somewhere()).tolist():
            start = max(at, int(low[i]))
            hit = self._first(i, start, int(high[i]))
            looks -= max(0, int(high[i]) - start) if hit is None else hit - start
            if looks < 0:
                return None
            if hit is not None:
                found[i], at = hit, hit + 1
        return found

    def _somewhere(self) -> Bools:
        """Whether a value stands anywhere among ``y``; most that do not are known from the sorted values."""
        ordered = np.sort(self._theirs)
        reach = self._slack + self._their_slack.max(initial=0.0, where=np.isfinite(self._their_slack))
        with np.errstate(invalid="ignore"):
            first = np.searchsorted(ordered, self._mine - reach, side="left")
            last = np.searchsorted(ordered, self._mine + reach, side="right")
        found: Bools = (first < last) | ~np.isfinite(self._mine)
        return found

    def _first(self, i: int, start: int, end: int) -> int | None:
        width = 16
        while start < end:
            part = slice(start, min(end, start + width))
            near = _near(self._mine[i], self._theirs[part], self._slack[i] + self._their_slack[part])
            if near.any():
                return start + int(near.argmax())
            start, width = part.stop, width * 4
        return None
