"""Runs that never moved: flat curves with a known cause."""

from __future__ import annotations

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.not_learning import NotLearning
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import build
from afterrun.analyzer.view import RunView
from tests.analyzer.test_plateau import STEP, N, view_of
from tests.support.curves import constant_lr, noise, power_law, wall
from tests.support.tables import make_view


def judge(view: RunView) -> Finding:
    (found,) = NotLearning().run(view)
    return found


def test_a_run_that_never_moved() -> None:
    f = judge(view_of(np.full(N, 2.3), constant_lr(N), sd=0.01))
    assert (f.status, f.severity, f.values["kind"]) == ("confirmed", "warning", "never moved")
    assert f.where.step_start == 1
    assert "never moved" in f.title


def test_a_rate_of_zero_freezes_the_run() -> None:
    f = judge(view_of(np.full(N, 2.3), np.zeros(N), sd=0.01))
    assert (f.severity, f.values["cause"]) == ("warning", "frozen")


def test_a_record_that_starts_late_does_not_say_never_moved() -> None:
    late = np.arange(5000, 6000)
    loss = 2.0 * np.exp(noise(np.random.default_rng(0), N, 0.01))
    view = make_view({"train/loss": (late, loss), "train/learning_rate": (late, constant_lr(N))})
    assert judge(view).status == "refuted"


def test_a_warmup_that_is_too_long_is_named() -> None:
    rate = constant_lr(N, warmup=900)
    f = judge(view_of(np.full(N, 2.3), rate, sd=0.005))
    assert f.values["cause"] == "warmup_too_long"


def test_a_loss_that_follows_the_summed_rate_wants_more_of_it() -> None:
    rate = np.where(STEP < 500, 1e-6, 1e-5)
    loss = 2.0 * np.exp(-0.002 * np.cumsum(rate) / np.sum(rate))
    found = judge(view_of(loss, rate, sd=0.0005))
    assert found.values["kind"] == "never moved"
    assert found.values["cause"] == "lr_too_low"


@pytest.mark.parametrize(
    "loss", [power_law(N), wall(N, 0.3), np.linspace(2.3, 2.1, N)], ids=["falls", "stalls", "falls slowly"]
)
def test_what_moved(loss: np.ndarray) -> None:
    assert judge(view_of(loss, constant_lr(N))).status == "refuted"


def test_few_values_or_a_loss_that_crosses_zero() -> None:
    assert judge(make_view({"loss": (range(8), [2.3] * 8)})).status == "abstained"
    assert judge(make_view({"loss": (range(50), [(-1.0) ** i for i in range(50)])})).status == "abstained"


def test_a_plateau_is_not_told_beside_it() -> None:
    view, _ = run_passes(view_of(np.full(N, 2.3), constant_lr(N), sd=0.01), build())
    alarms = {code for code, found in view.earlier.items() if any(f.is_alarm for f in found)}
    assert alarms == {"not-learning"}
