"""The small curve in each row of the table."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from afterrun.plots.report.spark import BUCKETS, HEIGHT, WIDTH, extremes, spark
from tests.support.tables import make_view


def points(path: str) -> np.ndarray:
    pairs = re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)
    return np.array([[float(a), float(b)] for a, b in pairs])


def test_a_falling_loss_falls_from_corner_to_corner() -> None:
    drawn = spark(make_view({"loss": (range(100), np.exp(-np.arange(100) / 30))}).train_loss)
    assert drawn is not None
    line = points(drawn.line)
    assert line[0].tolist() == [0.0, 2.0]
    assert line[-1].tolist() == [WIDTH, HEIGHT - 2]
    assert (np.diff(line[:, 0]) >= 0).all()
    assert drawn.label == "loss from 1 to 0.03688"


def test_a_spike_of_one_point_survives() -> None:
    y = np.ones(10_000) + np.linspace(0.1, 0, 10_000)
    y[6_543] = 50.0
    drawn = spark(make_view({"loss": (range(10_000), y)}).train_loss)
    assert drawn is not None
    line = points(drawn.line)
    assert len(line) <= 2 * BUCKETS + 2
    assert line[:, 1].min() == 2.0
    assert abs(line[line[:, 1].argmin(), 0] - WIDTH * 6_543 / 9_999) < 0.1


def test_nan_is_marked_where_it_happens_and_the_onset_too() -> None:
    y = np.ones(101)
    y[50:] = np.nan
    drawn = spark(make_view({"loss": (range(101), y)}).train_loss, onset_step=50)
    assert drawn is not None
    assert drawn.gaps.startswith("M60 ")
    assert drawn.onset == "M60.0 0V28"


def test_no_curve_no_picture() -> None:
    assert spark(None) is None
    assert spark(make_view({"loss": ([1], [2.0])}).train_loss) is None
    outside = spark(make_view({"loss": ([1, 2], [2.0, 1.0])}).train_loss, onset_step=99)
    assert outside is not None
    assert outside.onset == ""


def test_a_constant_curve_is_a_line_in_the_middle() -> None:
    drawn = spark(make_view({"loss": (range(5), [2.0] * 5)}).train_loss)
    assert drawn is not None
    assert set(points(drawn.line)[:, 1]) == {HEIGHT / 2}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.integers(1, 40))
def test_extremes_keep_ends_and_range(values: list[float], buckets: int) -> None:
    y = np.array(values)
    keep = extremes(y, buckets)
    assert keep[0] == 0
    assert keep[-1] == len(y) - 1
    assert (np.diff(keep) > 0).all()
    assert len(keep) <= 2 * buckets + 2
    assert (y[keep].min(), y[keep].max()) == (y.min(), y.max())
