from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.curves.carry_forward import find_repeats, real_points
from tests.support.tables import make_view


def test_five_evaluations_written_on_every_epoch() -> None:
    found = find_repeats(np.repeat([0.3, 0.4, 0.5, 0.6, 0.7], 5))
    assert found is not None
    assert found.rows.tolist() == [0, 5, 10, 15, 20]
    assert found.length == 5


def test_blocks_at_both_ends_may_be_cut() -> None:
    found = find_repeats(np.repeat([0.3, 0.4, 0.5, 0.6], [2, 4, 4, 1]))
    assert found is not None
    assert found.rows.tolist() == [0, 2, 6, 10]


def test_two_evaluations_with_the_same_result() -> None:
    found = find_repeats(np.repeat([0.3, 0.4, 0.5, 0.6, 0.7], [3, 3, 6, 3, 3]))
    assert found is not None
    assert found.rows.tolist() == [0, 3, 6, 9, 12, 15]


@pytest.mark.parametrize(
    "value",
    [
        np.arange(30.0),
        np.ones(30),
        np.repeat([1.0, 2.0, 3.0], 5),  # three blocks prove nothing
        np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [2, 3, 5, 2, 7]),
        np.array([0.5, 0.5, 0.6, 0.7, 0.7, 0.8, 0.9, 0.9]),  # a coarse accuracy
        np.full(20, np.nan),
        np.array([]),
    ],
    ids=["different", "constant", "three blocks", "irregular", "coarse", "nan", "nothing"],
)
def test_ordinary_columns_stay_as_they_are(value: np.ndarray) -> None:
    assert find_repeats(value) is None


@given(st.integers(2, 7), st.integers(5, 12))
def test_what_was_repeated_is_found(length: int, evaluations: int) -> None:
    found = find_repeats(np.repeat(np.arange(evaluations, dtype=np.float64), length))
    assert found is not None
    assert found.length == length
    assert found.rows.tolist() == list(range(0, evaluations * length, length))


def test_real_points_keep_step_value_and_evidence() -> None:
    view = make_view({"eval/val/map": (range(25), np.repeat([0.3, 0.4, 0.5, 0.6, 0.7], 5))})
    (series,) = view.series
    thinned, length = real_points(series)
    assert length == 5
    assert thinned.x.tolist() == [0, 5, 10, 15, 20]
    assert thinned.value.tolist() == [0.3, 0.4, 0.5, 0.6, 0.7]
    shown = thinned.evidence(3)
    assert (shown.step, shown.value) == (15, 0.6)
    assert series.x.tolist() == list(range(25))
