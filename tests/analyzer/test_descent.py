from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.curves.descent import fit_descent
from tests.support.curves import noise, power_law, wall

N = 800
X = np.arange(1.0, N + 1.0)
T = np.arange(N) / N
SMOOTH = {
    "power law": power_law(N),
    "exponential": 2.0 + 6.0 * np.exp(-T / 0.1),
    "two exponentials": 0.3 + 3.0 * (0.8 * np.exp(-T / 0.05) + 0.2 * np.exp(-T / 0.2)),
    "logarithm-like": 2.0 + 6.0 * (1.0 + T / 0.01) ** -0.2,
}
ABRUPT = {
    "straight line": np.where(T < 0.4, 8.0 - 10.0 * T, 4.0),
    "parabola": wall(N, 0.3),
}


@pytest.mark.parametrize("sd", [0.005, 0.03])
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_descents_do_not_stop(name: str, sd: float) -> None:
    for seed in range(5):
        cost = np.log(SMOOTH[name]) + noise(np.random.default_rng(seed), N, sd)
        found = fit_descent([(X, cost)], "log")
        assert found is not None
        assert found.support < 2.0


@pytest.mark.parametrize(("name", "end"), [("straight line", 320), ("parabola", 240)])
def test_abrupt_descents_stop_where_they_do(name: str, end: int) -> None:
    cost = np.log(ABRUPT[name]) + noise(np.random.default_rng(1), N, 0.02)
    found = fit_descent([(X, cost)], "log")
    assert found is not None
    assert found.support > 10.0
    assert found.end == pytest.approx(end, abs=0.05 * N)
    assert found.end_low <= found.end <= found.end_high


def test_a_quiet_witness_helps_a_noisy_curve() -> None:
    loss = wall(N, 0.3, level=6.0)
    rng = np.random.default_rng(5)
    alone = (X, np.log(loss) + noise(rng, N, 0.12))
    held = (X[19::20], np.log(1.03 * loss[19::20]) + noise(rng, N // 20, 0.01))
    one, both = fit_descent([alone], "log"), fit_descent([alone, held], "log")
    assert one is not None
    assert both is not None
    assert both.support > one.support + 5.0


def test_scale_of_loss_and_axis_do_not_matter() -> None:
    cost = np.log(wall(N, 0.3)) + noise(np.random.default_rng(2), N, 0.02)
    a = fit_descent([(X, cost)], "log")
    b = fit_descent([(50.0 * X + 1000.0, cost + 7.0)], "log")
    assert a is not None
    assert b is not None
    assert b.support == pytest.approx(a.support, rel=1e-6)
    assert b.end == pytest.approx(50.0 * a.end + 1000.0)
    assert b.fall == pytest.approx(a.fall)


@pytest.mark.parametrize("cost", [np.ones(100), np.arange(100.0), np.arange(5.0)[::-1]])
def test_nothing_that_falls_has_no_shape(cost: np.ndarray) -> None:
    assert fit_descent([(np.arange(float(len(cost))), cost)], "log") is None


def test_noiseless_curves_are_judged_without_trouble() -> None:
    found = fit_descent([(X, np.log(wall(N, 0.3)))], "log")
    assert found is not None
    assert np.isfinite(found.support)
    assert found.support > 10.0
