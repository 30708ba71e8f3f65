"""Numbers in sentences."""

from __future__ import annotations

import math

import pytest

from afterrun.analyzer.prose import change_pct, count, duration, gpu_time, number, percent, place
from tests.support.tables import make_view


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"), (3.0, "3"), (1234567.0, "1,234,567"), (12345.6, "12,346"), (3.14159, "3.14"), (0.051234, "0.0512"),
        (1.5e-7, "1.50e-07"), (-2.5, "-2.50"), (math.nan, "NaN"), (math.inf, "inf"), (-math.inf, "-inf"), (None, "not recorded"),
        (3e300, "3.00e+300"), (999.6, "1,000"),
    ],
)  # fmt: skip
def test_number(x: float | None, text: str) -> None:
    assert number(x) == text


@pytest.mark.parametrize(
    ("x", "text"), [(12.4, "12 %"), (3.26, "3.3 %"), (0.0, "0 %"), (-45.2, "-45 %"), (0.012, "0.012 %")]
)
def test_percent(x: float, text: str) -> None:
    assert percent(x) == text


@pytest.mark.parametrize(("log_ratio", "pct"), [(0.0, 0.0), (math.log(2), 100.0), (math.log(0.5), -50.0)])
def test_change(log_ratio: float, pct: float) -> None:
    assert change_pct(log_ratio) == pytest.approx(pct)


def test_a_change_beyond_floating_point_stays_finite() -> None:
    assert math.isfinite(change_pct(1e6))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.0, "5 s"), (90.0, "90 s"), (600.0, "10 min"), (3780.0, "63 min"), (7500.0, "2 h 05 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("gpu_s", "text"), [(32760.0, "9.1 GPU-h"), (60.0, "1 GPU-min"), (3600.0, "1 GPU-h")]
)
def test_gpu_time(gpu_s: float, text: str) -> None:
    assert gpu_time(gpu_s) == text


def test_count_and_place() -> None:
    assert (count(1, "step"), count(1200, "step"), count(2, "entry", "entries")) == (
        "1 step",
        "1,200 steps",
        "2 entries",
    )
    s = make_view({"train/loss": ([1000, 2000], [1.0, 2.0])}).series[0]
    assert place(s, 1000.0) == "step 1,000"
