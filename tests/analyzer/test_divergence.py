"""A loss that rises for good: the verdict, the onset, and what it is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from afterrun.analyzer.curves.rise import onset, rise
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.divergence import Divergence
from tests.support.tables import make_view

N = 600
STEP = np.arange(1, N + 1) * 10


def curve(turn: int, factor: float, sd: float = 0.03, seed: int = 0, n: int = N) -> np.ndarray:
    """Falls to 1 and, from row ``turn`` on, climbs in a straight line to ``factor`` at the end."""
    t = np.arange(n)
    smooth = 1.0 + 2.0 * np.exp(-t / (n * 0.08))
    smooth[turn:] *= np.linspace(1.0, factor, n - turn)
    return smooth * np.exp(np.random.default_rng(seed).normal(0.0, sd, n))


def run(y: np.ndarray, tag: str = "train/loss", **curves: np.ndarray) -> Finding:
    named = {tag: (STEP[: len(y)], y)} | {
        k.replace("__", "/"): (STEP[: len(v)], v) for k, v in curves.items()
    }
    (finding,) = Divergence().run(make_view(named))
    return finding


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("turn", "factor", "sd"), [(300, 2.5, 0.03), (400, 2.0, 0.08), (250, 4.0, 0.01)])
def test_a_climb_is_confirmed_with_its_onset(turn: int, factor: float, sd: float, seed: int) -> None:
    f = run(curve(turn, factor, sd, seed))
    assert (f.status, f.severity) == ("confirmed", "critical")
    assert f.where.step_start is not None
    assert abs(f.where.step_start - STEP[turn]) <= 0.05 * STEP[-1]
    assert f.values["onset_step_low"] <= f.values["onset_step"] <= f.values["onset_step_high"]


def test_the_size_of_the_rise_by_hand() -> None:
    y = np.concatenate([np.linspace(3.0, 1.0, 200), np.full(200, 1.0), np.full(200, 2.0)])
    f = run(y)
    assert f.values["lowest_level"] == pytest.approx(1.0, rel=0.02)
    assert f.values["end_level"] == pytest.approx(2.0)
    assert f.values["rise_pct"] == pytest.approx(100.0, rel=0.03)
    assert f.effect is not None
    assert f.effect.value == f.values["rise_pct"]
    assert f.where.step_end == STEP[-1]


def test_one_jump_is_possible_and_called_a_step() -> None:
    y = np.concatenate([np.linspace(3.0, 1.0, 300), np.full(300, 1.8)])
    f = run(y)
    assert (f.status, f.severity, f.values["one_jump"]) == ("possible", "warning", True)
    assert f.where.step_start == STEP[300]
    assert "stepped up at once" in f.title


def test_everything_after_the_onset_is_wasted() -> None:
    y = curve(300, 3.0)
    walls = {"train/loss": (5.0 * np.arange(N)).tolist()}
    (f,) = Divergence().run(make_view({"train/loss": (STEP, y)}, wall_s=walls, devices=2))
    assert f.where.step_start is not None
    expected = 5.0 * 2 * (STEP[-1] - f.where.step_start) / 10
    assert f.wasted_gpu_s == pytest.approx(expected)


def test_learning_rate_and_gradient_norm_at_the_onset_are_told() -> None:
    lr = np.where(np.arange(N) < 280, 1e-4, 1e-3)
    grad = np.where(np.arange(N) < 300, 1.0, 4.0)
    f = run(curve(300, 3.0), train__learning_rate=lr, train__grad_norm=grad)
    assert f.values["lr_at_onset"] == pytest.approx(1e-3)
    assert f.values["lr_peak"] == pytest.approx(1e-3)
    assert f.values["steps_after_lr_peak"] == 0.0
    assert f.values["grad_norm_factor"] == pytest.approx(4.0)
    assert "learning rate 0.001" in f.title


def test_a_curve_that_climbs_into_nan_has_diverged() -> None:
    y = curve(300, 6.0, n=360)
    f = run(np.concatenate([y, np.full(100, math.nan)]))
    assert f.status == "confirmed"
    assert f.values["ends_non_finite"] is True
    assert "then became non-finite" in f.title


def test_a_sudden_nan_is_no_divergence() -> None:
    y = curve(599, 1.0)
    y[400:] = math.nan
    assert run(y).status == "refuted"


def test_only_the_training_loss_counts() -> None:
    f = run(curve(599, 1.0), eval__loss=curve(200, 3.0))
    assert f.status == "refuted"
    assert f.values["tag"] == "train/loss"


def test_a_validation_loss_alone_is_possible_at_most() -> None:
    f = run(curve(300, 3.0), tag="eval/loss")
    assert (f.status, f.severity) == ("possible", "warning")
    assert "overfitting" in f.advice[-1]


def test_in_reinforcement_learning_a_rise_is_information() -> None:
    f = run(curve(300, 3.0), rollout__ep_rew_mean=np.arange(float(N)))
    assert (f.status, f.severity) == ("possible", "info")


def test_a_slow_climb_that_goes_on_is_possible() -> None:
    assert run(curve(300, 1.35, sd=0.01)).status == "possible"


@pytest.mark.parametrize("seed", range(10))
def test_what_does_not_diverge(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = np.arange(N)
    smooth = 1.0 + 2.0 * np.exp(-t / 50.0)
    spike = smooth.copy()
    spike[300:320] *= 3.0
    for y in (
        smooth * np.exp(rng.normal(0.0, 0.2, N)),
        smooth * np.exp(rng.normal(0.0, 0.7, N)),
        np.full(N, 2.3) * np.exp(rng.normal(0.0, 0.05, N)),
        spike * np.exp(rng.normal(0.0, 0.02, N)),
        smooth * (1.0 + 0.12 * np.sin(t / 15.0)),
        smooth[:12] * np.exp(rng.normal(0.0, 0.05, 12)),
    ):
        assert run(y).status == "refuted"


def test_ten_epochs_are_enough() -> None:
    f = run(np.array([2.0, 1.2, 0.9, 0.8, 0.75, 0.9, 1.3, 1.9, 2.6, 3.4]))
    assert f.status == "confirmed"
    assert f.where.step_start in (40, 50, 60)


def test_a_loss_that_crosses_zero_must_lose_half_of_its_gain() -> None:
    rng = np.random.default_rng(1).normal(0.0, 0.02, N)
    down = np.linspace(2.0, -2.0, 400)
    back, little = np.linspace(-2.0, 1.0, 200), np.linspace(-2.0, -1.0, 200)
    assert run(np.concatenate([down, back]) + rng).status == "possible"
    assert run(np.concatenate([down, little]) + rng).status == "refuted"


def test_few_points_and_no_loss_abstain() -> None:
    assert run(np.ones(9)).status == "abstained"
    f = run(np.ones(50), tag="zorp")
    assert (f.status, f.missing) == ("abstained", ("a training loss: --map 'zorp=loss:train'",))


def test_rise_of_a_staircase_by_hand() -> None:
    u = np.repeat([3.0, 2.0, 1.0, 2.0], 52)  # whole blocks of four
    r = rise(u, stay_share=0.05)
    assert (r.start, r.low, r.end, r.least) == (3.0, 1.0, 2.0, 2.0)
    assert r.height == 1.0
    assert r.last_low == 155


def test_onset_of_two_straight_lines_is_their_corner() -> None:
    t = np.arange(500.0)
    u = np.where(t < 320, -0.001 * t, -0.32 + 0.01 * (t - 320))
    found = onset(u, rise(u, 0.05))
    assert abs(found.at - 320) <= 2
    assert found.low <= 320 <= found.high
    assert not found.step


def test_a_huge_rise_is_told_by_its_levels() -> None:
    assert "% up" in run(curve(300, 3.0)).title
    huge = run(curve(300, 500.0)).title
    assert "% up" not in huge
    assert "from 0.983 to 466" in huge
