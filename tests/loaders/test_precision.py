from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.joining.precision import precision_of


def test_the_most_decimals_and_digits_of_any_number_count() -> None:
    told = precision_of(np.array([2.3456, 0.12, 12.5, 0.0, np.nan]))
    assert (told.decimals, told.digits, told.single) == (4, 5, False)


def test_a_number_may_be_off_by_a_unit_of_the_last_decimal() -> None:
    told = precision_of(np.array([2.3456, 0.0023]))
    assert told.tolerance(np.array([2.3456, 0.0023])) == pytest.approx([0.0001, 0.0001])


def test_scientific_notation_keeps_digits_not_decimals() -> None:
    told = precision_of(np.array([12.4, 1.24e-5]))
    assert told.digits == 3
    assert told.tolerance(np.array([12.4, 1.24e-5])) == pytest.approx([0.1, 1e-7])


def test_float32_numbers_are_read_as_such() -> None:
    values = np.array([0.1, 2.3456789], np.float32).astype(np.float64)
    told = precision_of(values)
    assert told.single
    assert told.told == 7
    assert (np.abs(np.array([0.1, 2.3456789]) - values) <= told.tolerance(values)).all()


def test_a_number_in_full_has_no_room() -> None:
    values = np.array([1 / 3, 2 / 7])
    assert (precision_of(values).tolerance(values) < 1e-15).all()


def test_what_is_not_finite_widens_nothing() -> None:
    values = np.array([1.25, np.inf, np.nan])
    assert precision_of(values).tolerance(values)[1:].tolist() == pytest.approx([0.01, 0.01])


def test_zeros_alone_say_nothing() -> None:
    assert precision_of(np.zeros(5)).tolerance(np.zeros(5)).max() < 1e-14


@given(st.lists(st.floats(0.01, 50), min_size=3, max_size=60), st.integers(2, 6))
def test_the_true_value_lies_within_the_room_of_a_rounded_one(values: list[float], decimals: int) -> None:
    true = np.array([*values, 1.23456789])
    for written in (np.round(true, decimals), np.floor(true * 10**decimals) / 10**decimals):
        assert (np.abs(true - written) <= precision_of(written).tolerance(written) * (1 + 1e-9)).all()
