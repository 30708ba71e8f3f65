"""A score that is lost again: hand-made curves with known levels."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.collapse import Collapse
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import build
from afterrun.analyzer.view import RunView
from tests.support.curves import noise, power_law
from tests.support.tables import make_view

N = 400
STEP = np.arange(N) * 10
REWARD = "rollout/ep_rew_mean"


def judge(view: RunView) -> Finding:
    (found,) = Collapse().run(view)
    return found


def reward(end: float, *, at: int = 300, over: int = 20) -> np.ndarray:
    """From -100 to 200 within the first half, and from row ``at`` on down to ``end``; noise of 5."""
    rise = -100 + 300 / (1 + np.exp(-(np.arange(N) - 100) / 15))
    fall = np.clip((np.arange(N) - at) / over, 0, 1)
    return rise * (1 - fall) + end * fall + noise(np.random.default_rng(1), N, 5.0, 0.5)


def test_a_reward_that_falls_back() -> None:
    f = judge(make_view({REWARD: (STEP, reward(-70.0))}))
    assert (f.status, f.severity) == ("confirmed", "critical")
    assert f.where.step_start == pytest.approx(3000, abs=60)
    assert f.values["lost_pct"] == pytest.approx(90, abs=5)
    assert f.values["best_level"] == pytest.approx(200, abs=12)


@pytest.mark.parametrize(
    "curve",
    [
        pytest.param(reward(200.0), id="kept"),
        pytest.param(reward(100.0), id="a third lost"),
        pytest.param(np.where(np.arange(N) < 350, reward(-70.0), 200.0), id="regained"),
        pytest.param(noise(np.random.default_rng(2), N, 5.0, 0.9), id="never gained"),
    ],
)
def test_no_collapse(curve: np.ndarray) -> None:
    assert judge(make_view({REWARD: (STEP, curve)})).status == "refuted"


def test_training_accuracy_is_a_score_and_validation_accuracy_is_another_matter() -> None:
    accuracy = 0.9 * (1 - np.exp(-np.arange(N) / 40))
    lost = np.where(np.arange(N) < 250, accuracy, 0.1) + noise(np.random.default_rng(3), N, 0.005)
    assert judge(make_view({"train/accuracy": (STEP, lost)})).severity == "warning"
    assert judge(make_view({"val/accuracy": (STEP, lost)})).status == "abstained"


def test_a_loss_that_goes_with_it_tells_the_story() -> None:
    loss = np.where(np.arange(N) < 250, power_law(N), 9.0)
    lost = np.where(np.arange(N) < 250, 0.9 * (1 - np.exp(-np.arange(N) / 40)), 0.1)
    view, faults = run_passes(
        make_view({"train/loss": (STEP, loss), "train/accuracy": (STEP, lost)}), build()
    )
    assert faults == []
    assert [f.severity for f in view.earlier["collapse"]] == ["info"]
    assert any(f.is_alarm for f in view.earlier["level-shift"])


def test_without_a_score_the_line_to_paste_is_named() -> None:
    f = judge(make_view({"train/loss": (STEP, power_law(N)), "zorp": (STEP, power_law(N))}))
    assert f.status == "abstained"
    assert "--map" in f.missing[0]


def test_few_values_are_not_judged() -> None:
    assert judge(make_view({REWARD: (STEP[:10], reward(-70.0)[:10])})).status == "abstained"
