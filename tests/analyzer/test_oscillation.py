"""Swings of a training loss: waves of known size and period on known noise."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.oscillation import Oscillation
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, noise, power_law
from tests.support.tables import make_view

N = 800
row = np.arange(N)
STEP = 10 * row


def loss(
    size: float = 0.0, period: float = 24.0, at: int = 200, sd: float = 0.03, rho: float = 0.0, seed: int = 0
) -> np.ndarray:
    """A descent that swings by ``size`` on the log scale from row ``at`` on."""
    swings = size * np.sin(2 * np.pi * row / period) * (row >= at)
    return np.asarray(power_law(N) * np.exp(swings + noise(np.random.default_rng(seed), N, sd, rho)))


def judge(view: RunView) -> Finding:
    (found,) = Oscillation().run(view)
    return found


@pytest.mark.parametrize("period", [2.0, 8.0, 24.0, 50.0])
def test_swings_are_found_with_their_period_and_size(period: float) -> None:
    # a period of two points has its extremes where cosine, not sine, is sampled
    wave = np.cos(np.pi * row) if period == 2.0 else np.sin(2 * np.pi * row / period)
    curve = power_law(N) * np.exp(0.3 * wave + noise(np.random.default_rng(0), N, 0.03))
    f = judge(make_view({"loss": (STEP, curve)}))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert f.values["period_steps"] == pytest.approx(10 * period, rel=0.06)
    size = 0.3 * (
        np.sqrt(2) if period == 2.0 else 1.0
    )  # a square wave has the power of a sine that is larger
    assert f.values["size_pct"] == pytest.approx(100 * np.expm1(size), rel=0.15)


@pytest.mark.parametrize("at", [100, 300, 500])
def test_the_onset(at: int) -> None:
    f = judge(make_view({"loss": (STEP, loss(0.3, at=at))}))
    assert f.where.step_start == pytest.approx(10 * at, abs=400)


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(loss(), id="healthy"),
        pytest.param(loss(0.05), id="small swings"),
        pytest.param(loss(sd=0.5), id="white noise of half the value"),
        pytest.param(loss(sd=0.2, rho=0.9), id="waves without a period"),
        pytest.param(loss() * np.where(row % 100 == 50, 3.0, 1.0), id="spikes at equal distances"),
    ],
)
def test_what_is_no_oscillation(curve: np.ndarray) -> None:
    assert judge(make_view({"loss": (STEP, curve)})).status == "refuted"


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 0.95])
def test_correlated_noise_never_swings(rho: float) -> None:
    found = [judge(make_view({"loss": (STEP, loss(sd=0.2, rho=rho, seed=i))})) for i in range(40)]
    assert [f for f in found if f.is_alarm] == []


def test_the_order_of_the_data_and_a_cyclical_rate_are_named() -> None:
    rate = constant_lr(N) * (1 + 0.9 * np.sin(2 * np.pi * row / 24))
    f = judge(make_view({"loss": (STEP, loss(0.3)), "lr": (STEP, rate)}))
    assert (f.severity, f.values["with_learning_rate"]) == ("info", True)
    assert f.title.endswith("with the learning rate.")


def test_a_reward_makes_it_information() -> None:
    f = judge(make_view({"loss": (STEP, loss(0.3)), "episode_reward": (STEP, row / N)}))
    assert f.severity == "info"


def test_few_values_or_no_loss() -> None:
    assert judge(make_view({"loss": (STEP[:80], loss(0.3)[:80])})).status == "abstained"
    assert judge(make_view({"loss": (STEP, loss(0.3) - 3)})).status == "abstained"
    assert judge(make_view({"zorp": (STEP, loss(0.3))})).status == "abstained"
