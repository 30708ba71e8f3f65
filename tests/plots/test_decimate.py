"""The envelope of a curve: what must survive thinning survives it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from afterrun.plots.canvas.decimate import envelope, merge_close, segments

curves = st.integers(1, 400).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=st.floats(-1e300, 1e300)).map(np.sort),
        hnp.arrays(np.float64, n, elements=st.floats(width=64)),
    )
)


@given(curves, st.integers(8, 60))
def test_keeps_ends_extremes_order_and_limit(curve: tuple[np.ndarray, np.ndarray], limit: int) -> None:
    x, y = curve
    kept = envelope(x, y, limit)
    assert kept[0] == 0
    assert kept[-1] == len(y) - 1
    assert (np.diff(kept) > 0).all()
    assert len(kept) <= max(limit, 1) or len(y) <= limit
    finite = y[np.isfinite(y)]
    if len(finite):
        assert np.nanmin(np.where(np.isfinite(y[kept]), y[kept], np.nan)) == finite.min()
        assert np.nanmax(np.where(np.isfinite(y[kept]), y[kept], np.nan)) == finite.max()
    assert np.isfinite(y[kept]).all() == np.isfinite(y).all()


def test_all_points_stay_where_there_is_room() -> None:
    assert envelope(np.arange(9.0), np.arange(9.0), 9).tolist() == list(range(9))


def test_a_spike_and_a_hole_stay_in_their_places() -> None:
    x, y = np.arange(100_000.0), np.zeros(100_000)
    y[70_001], y[20_003], y[50_000:50_010] = 9.0, np.nan, np.inf
    kept = envelope(x, y, 300)
    assert len(kept) <= 300
    assert {70_001, 20_003, 50_000} <= set(kept.tolist())


def test_buckets_follow_the_axis_not_the_order() -> None:
    """90 points in the first tenth of the axis, 10 in the rest: the sparse part is not thinned away."""
    x = np.concatenate([np.linspace(0, 1, 90), np.linspace(2, 10, 10)])
    kept = envelope(x, np.arange(100.0), 50)
    assert set(range(90, 100)) <= set(kept.tolist())


def test_one_place_on_the_axis_is_thinned_by_order() -> None:
    kept = envelope(np.full(100, 3.0), np.arange(100.0), 11)
    assert len(kept) <= 11
    assert kept[-1] == 99


def test_segments_and_their_merging() -> None:
    first, last = segments(np.array([True, False, True, True, False, True]))
    assert first.tolist() == [0, 2, 5]
    assert last.tolist() == [0, 3, 5]
    a, b = merge_close(first.astype(float), last.astype(float), 2.0)
    assert (a.tolist(), b.tolist()) == ([0.0], [5.0])
    a, b = merge_close(first.astype(float), last.astype(float), 1.5)
    assert (a.tolist(), b.tolist()) == ([0.0, 2.0, 5.0], [0.0, 3.0, 5.0])


@pytest.mark.parametrize("mask", [[False, False], []])
def test_no_segment(mask: list[bool]) -> None:
    first, last = segments(np.array(mask, dtype=bool))
    assert len(first) == len(last) == 0
