"""What one cell says: numbers, nothing, words, moments."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.tables.cells import (
    SECOND_NS,
    clock_unit_ns,
    is_nothing,
    moment,
    moments,
    number,
    numbers,
    whole,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("-1", -1.0),
        ("+1e-3", 0.001),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e999", math.inf),
        ("-1e999", -math.inf),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("1,234", 1234.0),
        ("-1,234,567.5", -1234567.5),
        ("12.5%", 12.5),
        ("True", 1.0),
        ("false", 0.0),
        ("tensor(0.25)", 0.25),
        ("tensor(0.25, device='cuda:0')", 0.25),
        ("np.float32(0.25)", 0.25),
        ("[0.25]", 0.25),
    ],
)
def test_numbers(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "NAN"])
def test_nan_is_a_number(text: str) -> None:
    read = number(text)
    assert read is not None
    assert math.isnan(read)


@pytest.mark.parametrize(
    "text", ["", "abc", "1_000", "0x10", "1e", "--1", "1.2.3", "12,34", "0.5s", "1 2", "１", "(1"]
)
def test_words(text: str) -> None:
    assert number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("0,5", 0.5), ("-1.234,5", -1234.5), ("1,5e-3", 0.0015), ("3", 3.0), ("1.5", None), ("1.234", None)],
)
def test_decimal_comma(text: str, value: float | None) -> None:
    assert number(text, decimal_comma=True) == value


def test_nothing_is_not_nan_and_not_zero() -> None:
    assert [is_nothing(t) for t in ("", " ", "-", "None", "null", "N/A", "nan", "0")] == [True] * 6 + [
        False
    ] * 2


def test_columns_tell_numbers_nothing_and_words() -> None:
    values, words = numbers(pl.Series(["1", " 2 ", "x", "", "-", "1,234", None, "nan"]))
    assert values.fill_nan(-1.0).to_list() == [1.0, 2.0, None, None, None, 1234.0, None, -1.0]
    assert words is not None
    assert words.to_list() == [False, False, True, False, False, False, False, False]


@given(
    st.lists(
        st.one_of(
            st.floats().map(repr),
            st.integers().map(str),
            st.text(alphabet="0123456789.,eE+-naif% ", max_size=8),
        ),
        max_size=20,
    )
)
def test_columns_and_cells_agree(texts: list[str]) -> None:
    """The column form must not read a cell otherwise than the cell form."""
    values, words = numbers(pl.Series(texts, dtype=pl.String))
    for i, text in enumerate(texts):
        alone = number(text.strip())
        assert repr(values[i]) == repr(alone) or (alone == 0 and values[i] == 0)
        is_word = alone is None and not is_nothing(text)
        assert (words is not None and bool(words[i])) == is_word


@given(st.floats())
def test_printed_floats_come_back(value: float) -> None:
    read = number(repr(value))
    assert read == value or (math.isnan(value) and read is not None and math.isnan(read))


def test_whole_numbers_only() -> None:
    column = pl.Series([1.0, 2.5, None, float("nan"), float("inf"), -3.0, 1e17])
    assert whole(column).to_list() == [1, None, None, None, None, -3, None]


@pytest.mark.parametrize(
    ("column", "unit_ns"),
    [
        ([1700000000.0, 1700000001.5], SECOND_NS),
        ([1700000000000.0], 1_000_000),
        ([1700000000000000.0], 1_000),
        ([1700000000000000000.0], 1),
        ([0.0, 12.5], None),
        ([12.5, 1700000000.0], None),
        ([float("nan")], None),
    ],
)
def test_clock_by_size(column: list[float], unit_ns: int | None) -> None:
    assert clock_unit_ns(pl.Series(column)) == unit_ns


def test_moments_in_nanoseconds() -> None:
    assert moments(pl.Series([1700000012.5, 3.0, None]), SECOND_NS).to_list() == [
        1700000012500000000,
        None,
        None,
    ]


def test_iso_moments() -> None:
    expected = int(datetime(2024, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC).timestamp() * 1000) * 1_000_000
    for text in (
        "2024-01-02T03:04:05.500Z",
        "2024-01-02 03:04:05,500",
        "2024/01/02 03:04:05.5",
        "2024-01-02 05:04:05.5+02:00",
    ):
        assert moment(text) == expected
    for text in ("2024-01-02", "12:30:00", "5", "", "9999-01-01 00:00:00", "1970-01-01 00:00:00"):
        assert moment(text) is None
