"""Numbers for people: each expectation can be read off by eye."""

from __future__ import annotations

import pytest

from afterrun.plots.report import format as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.81131, "0.8113"),
        (0.811, "0.8110"),
        (12_346.0, "12,346"),
        (-1.5, "-1.500"),
        (0, "0"),
        (6_400, "6,400"),
        (float("nan"), "NaN"),
        ("Infinity", "Infinity"),
        (3.2e-7, "3.200e-07"),
    ],
)
def test_number(value: float | str | None, text: str) -> None:
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (842.0, "", "842"),
        (4_500.0, "", "4.5 k"),
        (110_000.0, "", "110 k"),
        (999_600.0, "", "1 M"),
        (18_240_000.0, "B", "18.2 MB"),
        (0.0, "B", "0 B"),
        (-2_500.0, "", "-2.5 k"),
        (float("inf"), "", "inf"),
    ],
)
def test_compact(value: float, unit: str, text: str) -> None:
    assert fmt.compact(value, unit) == text


def test_null_is_a_dash_and_never_a_zero() -> None:
    assert {fmt.count(None), fmt.duration(None), fmt.gpu_time(None), fmt.instant(None)} == {"–"}
    assert fmt.interval(None, None, None) == "–"
    assert fmt.steps(None, None) == "–"
    assert fmt.gpu_time(0.0) != "–"


def test_gpu_time_and_duration() -> None:
    assert fmt.gpu_time(32_760.0) == "9.1 GPU-h"
    assert fmt.gpu_time(90.0) == "1.5 GPU-min"
    assert fmt.duration(7_380.0) == "2 h 03 min"


def test_instant_is_utc_and_survives_nonsense() -> None:
    assert fmt.instant(1_700_000_000_000_000_000) == "2023-11-14 22:13 UTC"
    assert fmt.instant(9_223_372_036_854_775_807) == "2262-04-11 23:47 UTC"


def test_interval_stands_between_number_and_what_it_counts() -> None:
    assert fmt.interval(18.2, 15.1, 21.4, "%") == "18.2 % (15.1 to 21.4)"
    assert fmt.interval(18.2, 15.1, 21.4, "% above the best") == "18.2 % (15.1 to 21.4) above the best"
    assert fmt.interval(50.0, 50.0, 50.0, "% of the values") == "50 % of the values"
    assert fmt.interval(0.25, None, None) == "0.250"
    assert fmt.interval(1.0, 0.5, 2.0) == "1 (0.500 to 2)"


def test_steps() -> None:
    assert fmt.steps(6_400, 51_200) == "steps 6,400 to 51,200"
    assert fmt.steps(6_400, None) == "step 6,400"
    assert fmt.steps(6_400, 6_400) == "step 6,400"


def test_plural() -> None:
    assert fmt.plural(1, "run") == "1 run"
    assert fmt.plural(1_200, "run") == "1,200 runs"
