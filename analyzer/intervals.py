"""Sets of time intervals in integer nanoseconds: union, gaps, overlap, clipping. All exact, all vectorised.

An ``Intervals`` holds disjoint, ascending, non-empty half-open stretches ``[start, end)`` that do not touch, so a
set has one representation and ``total_ns`` is the measure of the set. Sums of durations are never used for time:
kernels of several streams run at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """A set of instants as disjoint stretches; ``start`` and ``end`` have one length."""

    start: Times
    end: Times

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def none(cls) -> Self:
        """The empty set."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def one(cls, low_ns: int, high_ns: int) -> Self:
        """The stretch from ``low_ns`` to ``high_ns``; empty where that is not forward in time."""
        return cls(np.array([low_ns]), np.array([high_ns])) if high_ns > low_ns else cls.none()

    @property
    def durations(self) -> Times:
        """Length of each stretch, ns."""
        return self.end - self.start

    @property
    def total_ns(self) -> int:
        """Measure of the set, ns."""
        return int(self.durations.sum())

    def gaps(self) -> Intervals:
        """What lies between the first start and the last end and is not in the set."""
        return Intervals(self.end[:-1], self.start[1:])

    def within(self, low_ns: int, high_ns: int) -> Intervals:
        """The part of the set inside ``[low_ns, high_ns)``."""
        return self & Intervals.one(low_ns, high_ns)

    def outside(self, low_ns: int, high_ns: int) -> Intervals:
        """The part of ``[low_ns, high_ns)`` that is not in the set."""
        return Intervals.one(low_ns, high_ns) - self

    def covered(self, low: Times, high: Times) -> Times:
        """How much of each stretch ``[low, high)`` is in the set, ns; the stretches may overlap."""
        if not len(self):
            return np.zeros(len(low), np.int64)
        before = np.concatenate([[0], np.cumsum(self.durations)])

        def until(t: Times) -> Times:
            i = np.searchsorted(self.start, t, side="right")
            over = np.where(i > 0, np.maximum(self.end[i - 1] - t, 0), 0)
            return np.asarray(before[i] - over, np.int64)

        return until(high) - until(low)

    def holds(self, t: Times) -> npt.NDArray[np.bool_]:
        """Whether each instant is in the set."""
        if not len(self):
            return np.zeros(len(t), bool)
        i = np.searchsorted(self.start, t, side="right")
        return (i > 0) & (t < self.end[i - 1])

    def __or__(self, other: Intervals) -> Intervals:
        return union(np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end]))

    def __and__(self, other: Intervals) -> Intervals:
        return _where(self, other, 3)

    def __sub__(self, other: Intervals) -> Intervals:
        return _where(self, other, 1)


def union(start: Times, end: Times) -> Intervals:
    """The union of any intervals, in any order, overlapping or not; empty and backward ones add nothing."""
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    real = end > start
    if not real.all():
        start, end = start[real], end[real]
    if not len(start):
        return Intervals.none()
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Intervals(start[first], reach[last])


def _where(a: Intervals, b: Intervals, level: int) -> Intervals:
    """Where a sweep over both sets stands at ``level``: a counts 1, b counts 2."""
    if not len(a):
        return Intervals.none()
    t = np.concatenate([a.start, a.end, b.start, b.end])
    rise = np.repeat([1, -1, 2, -2], [len(a), len(a), len(b), len(b)])
    order = np.argsort(t, kind="stable")
    t, height = t[order], np.cumsum(rise[order])
    keep = (height[:-1] == level) & (t[1:] > t[:-1])
    return union(t[:-1][keep], t[1:][keep])
