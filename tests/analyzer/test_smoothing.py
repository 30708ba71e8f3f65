from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.smoothing import ALPHAS, choose_alpha, ewma

values = st.lists(st.floats(-1e3, 1e3, allow_nan=False), min_size=1, max_size=50)


def test_first_value_is_forgotten() -> None:
    """100, then fifty times 1: the debiased mean is 1 + 99 x 0.9^50 x 0.1 / (1 - 0.9^51)."""
    smooth = ewma(np.array([100.0] + [1.0] * 50), 0.1)
    assert smooth[50] == pytest.approx(1.051260, abs=5e-7)
    assert smooth[0] == 100.0
    biased = 1.0 + 99.0 * 0.9**50  # a mean that starts at the first value
    assert biased == pytest.approx(1.510224, abs=5e-7)


def test_two_values_by_hand() -> None:
    # m1 = 0.25 x 4 = 1, m2 = 0.75 x 1 + 0.25 x 8 = 2.75; 1 - 0.75^2 = 0.4375
    assert ewma(np.array([4.0, 8.0]), 0.25) == pytest.approx([4.0, 2.75 / 0.4375])


def test_non_finite_values_pass_through_and_are_skipped() -> None:
    y = np.array([np.nan, 1.0, np.inf, 3.0, -np.inf])
    smooth = ewma(y, 0.5)
    clean = ewma(np.array([1.0, 3.0]), 0.5)
    assert np.isnan(smooth[0])
    assert smooth[2] == np.inf
    assert smooth[4] == -np.inf
    assert smooth[[1, 3]] == pytest.approx(clean)


@given(values, st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_agrees_with_pandas(y: list[float], alpha: float) -> None:
    expected = pd.Series(y).ewm(alpha=alpha, adjust=True, ignore_na=True).mean()
    assert ewma(np.array(y), alpha) == pytest.approx(expected.to_numpy(), rel=1e-9, abs=1e-9)


@given(values, st.sampled_from([0.02, 0.3, 1.0]))
def test_stays_within_the_values(y: list[float], alpha: float) -> None:
    smooth = ewma(np.array(y), alpha)
    assert smooth.min() >= min(y) - 1e-6
    assert smooth.max() <= max(y) + 1e-6


def test_alpha_one_is_the_curve_itself() -> None:
    assert ewma(np.array([1.0, 5.0, 2.0]), 1.0).tolist() == [1.0, 5.0, 2.0]


@pytest.mark.parametrize(("ratio", "alpha"), [(0.1, 0.095), (0.5, 0.39), (0.02, 0.0198)])
def test_chosen_alpha_is_that_of_the_local_level_model(ratio: float, alpha: float) -> None:
    """Level with steps q, observed with noise r: the best gain solves a^2 / (1 - a) = (q / r)^2 (Muth 1960)."""
    assert alpha**2 / (1.0 - alpha) == pytest.approx(ratio**2, rel=0.03)
    found = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        level = np.cumsum(rng.normal(0.0, ratio, 3000))
        chosen = choose_alpha(level + rng.normal(0.0, 1.0, 3000))
        assert chosen is not None
        found.append(chosen.alpha)
    assert float(np.median(found)) == pytest.approx(alpha, rel=0.3)  # the grid is a factor of 1.3 wide


def test_what_an_alpha_means_in_points() -> None:
    chosen = choose_alpha(np.arange(100.0))
    assert chosen is not None
    assert chosen.alpha == ALPHAS[-1] == 1.0
    assert (chosen.window_points, chosen.lag_points) == (1.0, 0.0)


def test_too_short_to_smooth() -> None:
    assert choose_alpha(np.array([3.0, 1.0])) is None
    assert choose_alpha(np.arange(7.0)) is None
