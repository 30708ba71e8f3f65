from __future__ import annotations

import math

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.noisy import Noisy
from afterrun.analyzer.view import RunView
from tests.support.curves import noise, power_law
from tests.support.tables import make_view

N = 800
STEP = np.arange(1, N + 1)


def judge(view: RunView) -> Finding:
    (found,) = Noisy().run(view)
    return found


def rough(sd: float, seed: int = 0) -> RunView:
    return make_view({"train/loss": (STEP, power_law(N) * np.exp(noise(np.random.default_rng(seed), N, sd)))})


@pytest.mark.parametrize("seed", range(4))
def test_half_of_the_value_is_noise(seed: int) -> None:
    f = judge(rough(math.log(1.5), seed))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert f.values["noise_pct"] == pytest.approx(50.0, rel=0.15)
    assert f.effect is not None
    assert f.effect.low is not None
    assert f.effect.high is not None
    assert f.effect.low < f.values["noise_pct"] < f.effect.high
    assert f.where.step_start == 1


@pytest.mark.parametrize(
    ("noise_pct", "grade"), [(0.5, "quiet"), (3.0, "normal"), (10.0, "noisy"), (22.0, "very noisy")]
)
def test_a_readable_curve_is_graded_and_not_an_alarm(noise_pct: float, grade: str) -> None:
    f = judge(rough(math.log1p(noise_pct / 100.0)))
    assert f.status == "refuted"
    assert f.values["grade"] == grade
    assert f.values["noise_pct"] == pytest.approx(noise_pct, rel=0.15)


def test_a_steep_fall_is_seen_through_any_noise() -> None:
    loss = np.exp(-STEP / 80.0) * np.exp(noise(np.random.default_rng(0), N, 0.5))
    f = judge(make_view({"train/loss": (STEP, loss)}))
    assert f.status == "refuted"
    assert f.values["noise_pct"] > 40.0


def test_the_smoothing_it_names_is_consistent() -> None:
    v = judge(rough(0.5)).values
    assert v["beta"] == pytest.approx(1.0 - v["alpha"])
    assert v["window_points"] == pytest.approx((2.0 - v["alpha"]) / v["alpha"])
    assert v["lag_points"] == pytest.approx((1.0 - v["alpha"]) / v["alpha"])
    assert v["band_pct"] == pytest.approx(100.0 * math.expm1(3.29 * v["sigma_work"]))


def test_luck_of_the_best_of_fifty_evaluations() -> None:
    rng = np.random.default_rng(0)
    at = STEP[15::16]
    view = make_view(
        {
            "train/loss": (STEP, power_law(N)),
            "eval/loss": (at, 2.0 * np.exp(noise(rng, len(at), 0.05))),
        }
    )
    v = judge(view).values
    assert v["val_noise_pct"] == pytest.approx(5.0, rel=0.35)
    # sigma sqrt(2 ln 50) = 14 % for independent evaluations
    assert v["selection_luck_pct"] == pytest.approx(14.0, rel=0.4)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_points_give_no_number(n: int) -> None:
    f = judge(make_view({"loss": ([1000 * i for i in range(n)], np.linspace(3.0, 1.0, n))}))
    assert f.status == "abstained"
    assert "not enough data" in f.title
    assert set(f.values) == {"points"}


def test_a_loss_that_changes_sign_has_no_percentage() -> None:
    f = judge(make_view({"loss": (STEP, noise(np.random.default_rng(0), N, 1.0))}))
    assert f.status == "abstained"
    assert f.values["noise_pct"] is None


def test_no_training_loss() -> None:
    f = judge(make_view({"eval/loss": (STEP, power_law(N))}))
    assert f.status == "abstained"
    assert "--map" in f.missing[0]


def test_a_running_mean_is_noticed() -> None:
    e = noise(np.random.default_rng(0), N, 0.3)
    mean = np.convolve(np.pad(e, (19, 0), mode="edge"), np.ones(20) / 20, "valid")
    walk = np.cumsum(mean) / 20
    f = judge(make_view({"train/loss": (STEP, 2.0 * np.exp(walk))}))
    assert f.values["looks_averaged"]
    assert not judge(rough(0.1)).values["looks_averaged"]
