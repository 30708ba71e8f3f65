"""Sets of intervals: values by hand, and what must hold for any."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.intervals import Intervals, union

pairs = st.lists(st.tuples(st.integers(-50, 50), st.integers(-3, 30)), max_size=20)


def made(items: list[tuple[int, int]]) -> Intervals:
    """The union of (start, length)."""
    start = np.array([s for s, _ in items], np.int64)
    return union(start, start + np.array([n for _, n in items], np.int64))


def instants(x: Intervals) -> set[int]:
    """The set, instant by instant."""
    return {t for a, b in zip(x.start.tolist(), x.end.tolist(), strict=True) for t in range(a, b)}


def brute(items: list[tuple[int, int]]) -> set[int]:
    return {t for s, n in items for t in range(s, s + n)}


def test_union_by_hand() -> None:
    x = union(np.array([100, 0, 40, 90]), np.array([110, 50, 60, 100]))
    assert x.start.tolist() == [0, 90]
    assert x.end.tolist() == [60, 110]
    assert x.total_ns == 80
    assert x.gaps().durations.tolist() == [30]
    assert x.covered(np.array([50, 0]), np.array([95, 200])).tolist() == [15, 80]
    assert x.holds(np.array([0, 60, 89, 90, 110])).tolist() == [True, False, False, True, False]
    assert x.within(55, 92).total_ns == 7
    assert x.outside(-10, 120).total_ns == 50


def test_two_streams_are_not_counted_twice() -> None:
    # 0-100 and 110-200 on one stream, 20-80 on another: 190 of 200, not 250
    x = union(np.array([0, 110, 20]), np.array([100, 200, 80]))
    assert x.total_ns == 190
    assert x.gaps().total_ns == 10


@given(pairs, pairs)
def test_agrees_with_instants(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    x, y = made(a), made(b)
    sa, sb = brute(a), brute(b)
    assert instants(x) == sa
    assert instants(x | y) == sa | sb
    assert instants(x & y) == sa & sb
    assert instants(x - y) == sa - sb
    assert x.covered(y.start, y.end).sum() == len(sa & sb)


@given(pairs)
def test_has_one_representation(items: list[tuple[int, int]]) -> None:
    x = made(items)
    assert (x.durations > 0).all()
    assert (x.start[1:] > x.end[:-1]).all()
    again = made(list(reversed(items)))
    assert again.start.tolist() == x.start.tolist()
    assert again.end.tolist() == x.end.tolist()


@given(pairs.filter(lambda p: any(n > 0 for _, n in p)), st.integers(-(10**15), 10**15))
def test_busy_and_gaps_fill_the_span_and_time_may_be_shifted(items: list[tuple[int, int]], by: int) -> None:
    x = made(items)
    assert x.total_ns + x.gaps().total_ns == int(x.end[-1] - x.start[0])
    moved = made([(s + by, n) for s, n in items])
    assert moved.total_ns == x.total_ns
    assert moved.gaps().durations.tolist() == x.gaps().durations.tolist()


@given(pairs, st.integers(1, 29))
def test_splitting_an_interval_changes_nothing(items: list[tuple[int, int]], at: int) -> None:
    split = [part for s, n in items for part in ([(s, at), (s + at, n - at)] if n > at else [(s, n)])]
    assert instants(made(split)) == instants(made(items))
