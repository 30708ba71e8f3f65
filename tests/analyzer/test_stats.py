from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.stats import (
    block_means,
    block_size,
    effective_n,
    lag1,
    mad_sd,
    noise_scale,
    normal_quantile,
    range_max,
    running_median,
    theil_sen_slope,
    trend,
)
from tests.support.curves import noise

floats = st.floats(-1e6, 1e6, allow_nan=False)
arrays = st.lists(floats, min_size=1, max_size=60).map(lambda v: np.array(v, dtype=np.float64))


def test_mad_sd_by_hand() -> None:
    # median 3, deviations 2 1 0 1 97 -> median 1
    assert mad_sd(np.array([1.0, 2.0, 3.0, 4.0, 100.0])) == pytest.approx(1.4826)
    assert mad_sd(np.array([5.0])) == 0.0


def test_mad_sd_sees_rounded_values_move() -> None:
    # six of eight are the same: the median deviation is 0, the mean one 2 x 0.4 / 8
    y = np.array([1.0, 1.0, 1.0, 1.4, 1.0, 1.0, 0.6, 1.0])
    assert mad_sd(y) == pytest.approx(math.sqrt(math.pi / 2.0) * 0.1)


@pytest.mark.parametrize("n", [200, 5000])
def test_noise_scale_recovers_white_noise_under_a_trend(n: int) -> None:
    rng = np.random.default_rng(3)
    t = np.arange(n) / n
    u = np.log(0.3 + 2.0 * np.exp(-t / 0.12)) + rng.normal(0.0, 0.02, n)
    assert noise_scale(u) == pytest.approx(0.02, rel=0.25 if n < 1000 else 0.05)


def test_noise_scale_of_ten_epochs_is_of_the_right_size() -> None:
    t = np.arange(10) / 10
    found = [
        noise_scale(np.log(0.3 + 2.0 * np.exp(-t / 0.12)) + np.random.default_rng(seed).normal(0.0, 0.02, 10))
        for seed in range(50)
    ]
    assert 0.015 < float(np.median(found)) < 0.06  # first differences give 0.12


def test_noise_scale_of_nothing_is_zero() -> None:
    assert noise_scale(np.array([1.0, 2.0])) == 0.0
    assert noise_scale(np.arange(50.0)) == pytest.approx(0.0, abs=1e-12)


def test_lag1_of_alternation_and_of_a_ramp() -> None:
    assert lag1(np.array([1.0, -1.0] * 50)) == pytest.approx(-0.99)
    assert lag1(np.arange(100.0)) > 0.9
    assert lag1(np.ones(9)) == 0.0


def test_effective_n_by_hand() -> None:
    assert effective_n(100, 0.0) == 100.0
    assert effective_n(100, 0.5) == pytest.approx(100.0 / 3.0)
    assert effective_n(100, -0.5) == 100.0


def test_block_means_by_hand() -> None:
    # the last block takes the point that is left over
    assert block_means(np.array([1.0, 3.0, 5.0, 7.0, 9.0]), 2).tolist() == [2.0, 7.0]
    assert block_means(np.array([1.0, 3.0, 5.0]), 1).tolist() == [1.0, 3.0, 5.0]
    assert block_means(np.array([1.0, 3.0]), 5).tolist() == [2.0]


@given(arrays, st.integers(1, 20))
def test_block_means_lie_within_the_values(y: np.ndarray, k: int) -> None:
    means = block_means(y, k)
    assert means.min() >= y.min() - 1e-6 * abs(y).max()
    assert means.max() <= y.max() + 1e-6 * abs(y).max()


def test_block_size_grows_with_correlation() -> None:
    rng = np.random.default_rng(0)
    white = block_size(noise(rng, 2000, 1.0))
    slow = block_size(noise(rng, 2000, 1.0, rho=0.9))
    assert white <= 3
    assert slow > 20
    assert block_size(np.arange(19.0)) == 1


def test_theil_sen_ignores_a_wild_point() -> None:
    x = np.arange(20.0)
    y = 3.0 * x
    y[7] = 1e6
    assert theil_sen_slope(x, y) == pytest.approx(3.0)
    assert theil_sen_slope(x[:1], y[:1]) == 0.0


def test_theil_sen_of_a_long_series_uses_all_of_it() -> None:
    rng = np.random.default_rng(1)
    x = np.arange(20_000.0)
    slope = theil_sen_slope(x, 1e-4 * x + rng.normal(0.0, 1.0, len(x)))
    assert slope == pytest.approx(1e-4, rel=0.05)  # 150 single points would miss it by a fifth


def test_trend_of_five_rising_values_is_exact() -> None:
    t = trend(np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert t.p_up == pytest.approx(1.0 / math.factorial(5))
    assert t.p_down == 1.0
    assert t.tau == 1.0


@pytest.mark.parametrize("order", [(1, 3, 2, 4), (4, 1, 3, 2), (2, 1, 4, 3)])
def test_exact_p_counts_the_orders(order: tuple[int, ...]) -> None:
    def score(values: tuple[int, ...]) -> int:
        return sum(1 if b > a else -1 for a, b in itertools.combinations(values, 2))

    orders = list(itertools.permutations(range(4)))
    expected = sum(score(o) >= score(order) for o in orders) / len(orders)
    assert trend(np.array(order, dtype=np.float64)).p_up == pytest.approx(expected)


def test_trend_of_ties_is_not_exact_and_not_wrong() -> None:
    assert trend(np.array([1.0, 1.0, 1.0, 1.0, 1.0])).p_up == 1.0
    assert 0.01 < trend(np.array([1.0, 2.0, 2.0, 3.0, 4.0])).p_up < 0.05


def test_trend_of_three_points_knows_nothing() -> None:
    t = trend(np.array([1.0, 2.0, 3.0]))
    assert (t.low, t.high, t.p_up) == (-math.inf, math.inf, 1.0)
    assert t.slope == pytest.approx(1.0)


def test_trend_interval_covers_the_slope() -> None:
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        t = trend(0.01 * np.arange(300.0) + noise(rng, 300, 1.0, rho=0.5))
        covered += t.low <= 0.01 <= t.high
    assert covered >= 51  # nominal 57 of 60


def test_trend_does_not_find_one_in_autocorrelated_noise() -> None:
    hits = sum(trend(noise(np.random.default_rng(s), 300, 1.0, rho=0.9)).p_up < 0.01 for s in range(60))
    assert hits <= 4  # single points give 30


@given(arrays)
def test_trend_turns_with_the_series(y: np.ndarray) -> None:
    up, down = trend(y), trend(-y)
    assert up.p_up == pytest.approx(down.p_down)
    assert up.slope == pytest.approx(-down.slope, abs=1e-6 * (1.0 + abs(y).max()))


def test_normal_quantile_known_values() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959964, abs=1e-6)


@given(arrays, st.integers(1, 25))
def test_running_median_agrees_with_the_plain_loop(y: np.ndarray, k: int) -> None:
    n = len(y)
    half = min(k | 1, n if n % 2 else n - 1) // 2
    expected = [float(np.median(y[max(0, i - half) : i + half + 1])) for i in range(n)]
    assert running_median(y, k) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=70), st.randoms())
def test_range_max_is_the_maximum_of_each_stretch(values: list[float], dice: random.Random) -> None:
    y = np.array(values)
    pairs = [sorted(dice.sample(range(len(y) + 1), 2)) for _ in range(8)]
    first, stop = np.array(pairs).T
    assert range_max(y, first, stop).tolist() == [max(values[a:b]) for a, b in pairs]
