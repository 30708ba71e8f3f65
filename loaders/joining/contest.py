"""Curves of one name in two sources that say different things at the same steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.loaders.joining.conflicts import Conflict
from afterrun.loaders.joining.matching import AGREE_SHARE, Curve, Match, by_step
from afterrun.loaders.joining.told import Told, pairs

MIN_STEPS = 3
"""A conflict needs so many shared steps, ..."""
SHARE = 0.5
"""... this share of the steps of the shorter curve, and axes that are as long as each other to this share."""

_CONTESTED = frozenset({"loss", "quality", "rate", "gradient"})
"""Kinds of metrics that are measured once and written down twice; a speed may well be measured twice."""


@dataclass(frozen=True, eq=False, slots=True)
class Contest:
    """Two curves and the points of the second beside those of the first, some of which differ."""

    first: Told
    second: Told
    match: Match

    def conflict(self, sources: pl.Series, names: Sequence[str]) -> Conflict:
        """The facts; ``sources`` are indices into the names of files for every row of the run."""
        one, two, match = self.first, self.second, self.match
        differ = np.flatnonzero(~match.agree)
        i, j = int(match.b[differ[0]]), int(match.a[differ[0]])
        assert one.curve.step is not None
        return Conflict(
            tag=one.tag,
            source=names[sources[int(one.curve.rows[i])]],
            value=float(one.curve.value[i]),
            other_tag=two.tag,
            other_source=names[sources[int(two.curve.rows[j])]],
            other_value=float(two.curve.value[j]),
            step=int(one.curve.step[i]),
            rank=one.rank,
            shared=len(match.a),
            differing=len(differ),
        )


def exceptions(keeper: Told, view: Told, match: Match) -> Iterator[Contest]:
    """Single points that differ in two curves that are the same otherwise."""
    a, b = keeper.curve.step, view.curve.step
    stepwise = a is not None and b is not None and bool((a[match.b] == b[match.a]).all())
    if stepwise and view.name.kind in _CONTESTED and not match.agree.all():
        yield Contest(keeper, view, match)


def contests(group: Sequence[Told]) -> Iterator[Contest]:
    """Pairs of the same words that share their steps and not their values, and agree with no other curve."""
    for first, second in pairs(group):
        if first.words != second.words or first.name.kind not in _CONTESTED:
            continue
        if second.format in first.linked or first.format in second.linked:
            continue
        apart = first.kept and second.kept
        clear = apart and not _crowded(group, first, second) and not _crowded(group, second, first)
        if not (clear or first.same_tag(second)):
            continue
        match = by_step(second.curve, first.curve)
        if match is None or match.agree.sum() >= AGREE_SHARE * len(match.agree):
            continue
        if _one_axis(first.curve, second.curve, match):
            yield Contest(first, second, match)


def _crowded(group: Sequence[Told], one: Told, other: Told) -> bool:
    """Whether its own source has another curve of these words that may be what the other source means."""
    return any(
        o is not one
        and (o.format, o.rank, o.words) == (one.format, one.rank, one.words)
        and other.format not in o.linked
        and len(o.curve.living) >= MIN_STEPS
        for o in group
    )


def _one_axis(a: Curve, b: Curve, match: Match) -> bool:
    """Whether shared steps mean the same: most of the shorter curve's, on axes of about the same length."""
    shared = len(match.a)
    short, long = sorted(int(np.ptp(c.step[c.living])) for c in (a, b) if c.step is not None)
    most = shared >= SHARE * min(len(a.living), len(b.living))
    return shared >= MIN_STEPS and most and short >= SHARE * long
