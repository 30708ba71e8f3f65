"""Words and numbers as they stand in figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afterrun.plots.canvas.text import (
    count_text,
    display_name,
    legible,
    linear_ticks,
    log_ticks,
    percent_text,
    step_text,
    step_texts,
    tick_texts,
    value_text,
    whole_ticks,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.81123, "0.811"),
        (3.0, "3.00"),
        (12.345, "12.3"),
        (1234.5, "1,234"),
        (9.99e6, "9,990,000"),
        (2.5e7, "2.5e7"),
        (0.0001, "1e-4"),
        (-0.5, "−0.500"),
        (0.0, "0"),
        (math.nan, "NaN"),
        (-math.inf, "−∞"),
    ],
)
def test_values(value: float, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (12_800.0, "12,800"),
        (9_999_999.0, "9,999,999"),
        (12_500_000.0, "12,500,000"),
        (2.5, "2.5"),
        (1e18, "1e18"),
        (0.0, "0"),
    ],
)
def test_steps(x: float, text: str) -> None:
    assert step_text(x) == text


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0.0, 5000.0], ["0", "5,000"]),
        ([0.0, 5e6, 1e7], ["0", "5 M", "10 M"]),
        ([1e9, 1.5e9], ["1 G", "1.5 G"]),
        ([12_500_000.0, 12_500_001.0], ["12,500,000", "12,500,001"]),
        ([0.0, 2.5, 5.0], ["0", "2.5", "5"]),
        ([0.0, 1e18], ["0", "1e18"]),
    ],
)
def test_steps_on_an_axis(ticks: list[float], labels: list[str]) -> None:
    assert step_texts(ticks) == labels


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (4.23, "4.2 %"),
        (38.4, "38 %"),
        (0.0712, "0.071 %"),
        (1375.0, "1,375 %"),
        (-5.76, "−5.8 %"),
        (1e9, "1e9 %"),
    ],
)
def test_percentages(p: float, text: str) -> None:
    assert percent_text(p) == text


def test_counts() -> None:
    assert count_text(1, "point") == "1 point"
    assert count_text(12_800, "point") == "12,800 points"


def test_names_lose_what_must_not_be_drawn() -> None:
    assert display_name("a\x00b\x1b[31m\u202ec\nd") == "a b [31m c d"
    assert display_name("\u200b\x07") == "(no name)"
    assert display_name("x" * 100 + "END") == "x" * 29 + "…" + "x" * 27 + "END"


@given(st.text(max_size=300), st.integers(8, 60))
def test_names_are_never_longer_than_asked(name: str, limit: int) -> None:
    shown = display_name(name, limit)
    assert 1 <= len(shown) <= max(limit, len("(no name)"))
    assert "\n" not in shown


def test_a_name_without_glyphs_gets_a_number() -> None:
    unassigned = "\U0001f9ff" * 6  # no such glyph in the fonts that matplotlib ships
    assert legible(unassigned, "tag 1") == "tag 1"
    assert legible("loss " + unassigned[0]) == "loss □"
    assert legible("train/loss", "tag 1") == "train/loss"


def test_linear_ticks_are_round() -> None:
    assert linear_ticks(-0.3, 10.4, 7) == [0, 2, 4, 6, 8, 10]
    assert linear_ticks(0.115, 0.37, 7) == [0.15, 0.2, 0.25, 0.3, 0.35]
    assert whole_ticks(0.5, 3.2, 8) == [1.0, 2.0, 3.0]


@example((1e9, 1e9 + 1e-3), 3)
@given(
    st.floats(-1e9, 1e9).flatmap(lambda a: st.tuples(st.just(a), st.floats(1e-3, 1e9).map(lambda d: a + d))),
    st.integers(3, 9),
)
def test_linear_ticks_lie_inside_and_are_few(ends: tuple[float, float], most: int) -> None:
    low, high = ends
    ticks = linear_ticks(low, high, most)
    slack = 1e-6 * (high - low)
    assert 1 <= len(ticks) <= most
    assert all(low - slack <= t <= high + slack for t in ticks)
    assert len(set(tick_texts(ticks))) == len(ticks)


def test_log_ticks() -> None:
    assert log_ticks(0.17, 7.1, 7) == [0.2, 0.5, 1.0, 2.0, 5.0]
    assert log_ticks(1e-6, 1.0, 7) == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert log_ticks(1e-300, 1e300, 7) == [1e-300, 1e-200, 1e-100, 1.0, 1e100, 1e200, 1e300]


@given(st.floats(-290, 280), st.floats(0.01, 20.0), st.integers(3, 9))
def test_log_ticks_lie_inside_and_are_few(low: float, decades: float, most: int) -> None:
    ticks = log_ticks(10**low, 10 ** (low + decades), most)
    assert 1 <= len(ticks) <= most + 1
    assert all(t > 0 for t in ticks)
    assert ticks == sorted(ticks)


def test_labels_of_ticks_share_one_notation() -> None:
    assert tick_texts([0.0, 0.05, 0.1]) == ["0.00", "0.05", "0.10"]
    assert tick_texts([0.0, 1e-5, 2e-5]) == ["0", "1e-5", "2e-5"]
    assert tick_texts([0.2, 0.5, 1.0, 2.0, 5.0]) == ["0.2", "0.5", "1", "2", "5"]
    assert tick_texts([0.0, 2000.0, 4000.0]) == ["0", "2,000", "4,000"]
    assert tick_texts([-200.0, 0.0, 200.0]) == ["−200", "0", "200"]
