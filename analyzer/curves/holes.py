"""Where a curve holds NaN or infinities, and in which pattern: the pattern tells a failure from an empty cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.prose import count, percent, place
from afterrun.analyzer.series import Series

Pattern = Literal["always", "to the end", "transient", "first part", "regular"]
"""``regular`` = finite values at equal distances with NaN between: cells nobody filled. Nobody fills in infinities."""

REGULAR_RUNS = 5
"""Fewer repetitions prove no regularity."""


@dataclass(frozen=True, slots=True, eq=False)
class Hole:
    """The non-finite values of one curve. Rows are indices into all its surviving points."""

    series: Series
    pattern: Pattern
    first: int
    """First non-finite row."""
    count: int
    inf: int
    """How many of them are infinite, or too large to be reckoned with."""
    longest: int
    """Rows of the longest unbroken stretch."""
    tail: int | None
    """First row of the stretch that reaches the end; None where the end is finite."""
    back: int | None
    """First finite row after ``first``; None where there is none."""

    @property
    def x(self) -> float:
        """Where on the axis it begins."""
        return float(self.series.x[self.first])

    @property
    def share_pct(self) -> float:
        """Non-finite values in percent of the recorded ones."""
        return 100.0 * self.count / len(self.series)

    @property
    def word(self) -> str:
        """What is written there: ``NaN``, ``infinite`` or both."""
        if self.inf == self.count:
            return "infinite"
        return "NaN or infinite" if self.inf else "NaN"

    def lost_for_good(self, before: int, lost: int) -> bool:
        """Whether at least ``before`` finite values came first and at least ``lost`` non-finite ones end the curve."""
        return self.tail == self.first and self.tail >= before and self.count >= lost

    def sentence(self) -> str:
        """What the curve holds and where, without a full stop."""
        s, at = self.series, place(self.series, self.x)
        share = f"{self.count:,} of {count(len(s), 'value')}"
        if self.pattern == "always":
            return f"{s.tag} is {self.word} in all of its {count(len(s), 'value')}"
        if self.pattern == "regular":
            return f"{s.tag} holds {self.word} at regular places ({share}), first at {at}: cells that nobody filled"
        if self.pattern == "first part":
            begin = place(s, float(s.x[self.count]))
            return f"{s.tag} is {self.word} in its first {share} and finite from {begin} on"
        if self.tail is not None:
            begin = place(s, float(s.x[self.tail]))
            lost = f"{count(len(s) - self.tail, 'value')} of {len(s):,}"
            before = f", and was so first at {at}" if self.tail != self.first else ""
            return f"{s.tag} is {self.word} from {begin} to the end ({lost}){before}"
        again = f"; finite again at {place(s, float(s.x[self.back]))}" if self.back is not None else ""
        return f"{s.tag} was {self.word} in {share} ({percent(self.share_pct)}), first at {at}{again}"


def hole(s: Series) -> Hole | None:
    """The non-finite values of this curve, or None where all are finite."""
    bad = ~s.finite
    if not bad.any():
        return None
    infinite = int(np.count_nonzero(bad & ~np.isnan(s.value)))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    return Hole(
        series=s,
        pattern=_pattern(bad, starts, infinite > 0),
        first=int(starts[0]),
        count=int(bad.sum()),
        inf=infinite,
        longest=int((ends - starts).max()),
        tail=int(starts[-1]) if bad[-1] else None,
        back=int(ends[0]) if ends[0] < len(bad) else None,
    )


def _pattern(bad: npt.NDArray[np.bool_], starts: npt.NDArray[np.int64], infinite: bool) -> Pattern:
    if bad.all():
        return "always"
    if len(starts) >= REGULAR_RUNS and not infinite:
        apart = np.diff(np.flatnonzero(~bad))
        if len(apart) and (apart == apart[0]).all():
            return "regular"
    if bad[-1]:
        return "to the end"
    return "first part" if len(starts) == 1 and starts[0] == 0 else "transient"
