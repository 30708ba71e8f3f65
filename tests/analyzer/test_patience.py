from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.curves.patience import patience_stops, prechelt, reduce_on_plateau, replay

VAL = np.array([5.0, 4.0, 3.0, 3.5, 2.9, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7])


def test_patience_by_hand() -> None:
    one, three = replay(VAL, 1, 0.0), replay(VAL, 3, 0.0)
    assert (one.stop, one.kept) == (3, 2)
    assert (three.stop, three.kept) == (7, 4)
    assert replay(VAL, 20, 0.0).stop is None
    assert replay(VAL, 20, 0.0).kept == 4


def test_min_delta_is_relative_to_the_best_so_far() -> None:
    # 2.9 is 3.3 % better than 3.0: it counts at 1 %, not at 5 %
    assert replay(VAL, 3, 1.0).kept == 4
    assert replay(VAL, 3, 5.0).kept == 2
    assert replay(VAL, 3, 5.0).stop == 5


def test_negative_errors_improve_downwards() -> None:
    falling = np.array([-0.5, -0.6, -0.7, -0.65, -0.64])  # an accuracy turned round
    assert replay(falling, 2, 1.0).kept == 2
    assert replay(falling, 2, 1.0).stop == 4


def test_table_has_a_row_for_each_rule() -> None:
    rows = patience_stops(VAL)
    assert len(rows) == 18
    assert [(r.patience, r.min_delta_pct) for r in rows[:3]] == [(1, 0.0), (1, 0.1), (1, 1.0)]


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=60), st.integers(1, 12))
def test_more_patience_never_stops_earlier_nor_keeps_worse(error: list[float], patience: int) -> None:
    y = np.array(error)
    less, more = replay(y, patience, 0.0), replay(y, patience + 1, 0.0)
    assert (more.stop or len(y)) >= (less.stop or len(y))
    assert y[more.kept] <= y[less.kept]


def test_reduce_on_plateau_agrees_with_torch_by_hand() -> None:
    # best at index 2; bad evaluations 3, 4, 5: the third exceeds patience 2
    error = np.array([3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert reduce_on_plateau(error, patience=2) == 5
    assert reduce_on_plateau(error, patience=4) is None


def test_reduce_on_plateau_wants_a_ten_thousandth() -> None:
    assert reduce_on_plateau(1.0 - 1e-5 * np.arange(20), patience=5) == 6  # only 6e-5 better by then
    assert reduce_on_plateau(1.0 - 2e-4 * np.arange(20), patience=10) is None


def test_generalisation_loss_by_hand() -> None:
    found = prechelt(VAL, np.linspace(2.0, 1.0, 12))
    # GL at index 3 is 100 (3.5 / 3.0 - 1) = 16.7
    assert [found[f"GL_{a}"] for a in (1, 2, 3, 5)] == [3, 3, 3, 3]


def test_up_counts_strips_of_five() -> None:
    val = np.concatenate([np.linspace(2.0, 1.0, 10), np.linspace(1.01, 2.0, 15)])
    found = prechelt(val, np.ones(25))
    # strip ends at 4, 9, 14, 19, 24: falling once, then rising three times
    assert found["UP_2"] == 19
    assert found["UP_3"] == 24
    assert found["UP_4"] is None


def test_progress_quotient_by_hand() -> None:
    train = np.array([1.25, 1.0, 1.0, 1.0, 1.0])
    # P = 1000 (1.05 / 1 - 1) = 50, GL at 4 is 10: PQ = 0.2
    assert prechelt(np.array([1.0, 1.0, 1.0, 1.0, 1.1]), train)["PQ_0.5"] is None
    # GL = 30: PQ = 0.6
    assert prechelt(np.array([1.0, 1.0, 1.0, 1.0, 1.3]), train)["PQ_0.5"] == 4


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6])
def test_short_runs_have_all_criteria_they_can_have(n: int) -> None:
    found = prechelt(np.ones(n), np.ones(n))
    assert set(found.values()) == {None}
    assert ("PQ_1" in found) == (n >= 5)
