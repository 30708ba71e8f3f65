from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.lr_dead import LrDead
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, cosine_lr, linear_lr, noise, power_law
from tests.support.tables import make_view

N = 1000
STEP = np.arange(1, N + 1)


def judge(view: RunView) -> Finding:
    (found,) = LrDead().run(view)
    return found


def view_of(lr: Any, loss: Any = None, sd: float = 0.002, **options: Any) -> RunView:
    curves = {"train/learning_rate": (STEP, lr)}
    if loss is not None:
        curves["train/loss"] = (STEP, loss * np.exp(noise(np.random.default_rng(0), N, sd)))
    return make_view(curves, **options)


def frozen_at(k: int) -> Any:
    return np.where(k > STEP, power_law(N), power_law(N)[k - 1])


def test_a_schedule_planned_for_half_of_the_run() -> None:
    seconds = {"train/loss": 2.0 * STEP, "train/learning_rate": 2.0 * STEP}
    f = judge(view_of(linear_lr(N, 500), frozen_at(500), wall_s=seconds, devices=8))
    assert (f.status, f.severity) == ("confirmed", "warning")
    # below 0.9 % of the peak from point 496 on, zero from 500
    assert f.where.step_start == 497
    assert f.values["dead_share_pct"] == pytest.approx(100.0 * 503 / 999)
    assert f.wasted_gpu_s == pytest.approx(16.0 * 503)
    assert f.effect is not None
    assert f.effect.high == pytest.approx(100.0 * 504 / 999)


@pytest.mark.parametrize(
    "lr",
    [
        cosine_lr(N),
        linear_lr(N, N),
        constant_lr(N),
        np.where(STEP <= 500, 1.0, np.where(STEP <= 750, 0.1, 0.1 * 0.1)),
        (0.00001 / STEP) ** 0.5,
        np.array([0.0] * 300 + [1.0] * 700),
        0.5 * (1.0 + np.cos(np.pi * (STEP / 251.0 % 1.0))),
    ],
    ids=["cosine", "linear", "constant", "two drops by ten", "inverse root", "late start", "restarts"],
)
def test_schedules_that_live_to_the_end(lr: Any) -> None:
    assert judge(view_of(lr, power_law(N))).status == "refuted"


def test_a_small_rate_that_still_helps_is_alive() -> None:
    lr = np.where(STEP <= 500, 1.0, 0.005)
    f = judge(view_of(lr, power_law(N)))
    assert f.status == "refuted"
    assert "alive" in f.title
    assert f.values["loss_improvement_pct"] > 0.5


def test_a_small_rate_and_a_flat_loss_is_dead() -> None:
    lr = np.where(STEP <= 500, 1.0, 0.005)
    f = judge(view_of(lr, frozen_at(500)))
    assert (f.status, f.values["loss_course"]) == ("confirmed", "flat")


def test_a_small_rate_without_a_loss_is_possible() -> None:
    assert judge(view_of(np.where(STEP <= 500, 1.0, 0.005))).status == "possible"
    assert judge(view_of(np.where(STEP <= 500, 1.0, 0.0))).status == "confirmed"


def test_zero_rate_under_a_falling_loss_is_only_possible() -> None:
    """The rate that is recorded is then not the one that trains."""
    assert judge(view_of(linear_lr(N, 500), power_law(N))).status == "possible"


def test_a_rate_that_was_always_zero() -> None:
    f = judge(view_of(np.zeros(N), np.full(N, 2.0)))
    assert f.status == "confirmed"
    assert f.where.step_start == 1
    assert "zero from the first record to the last" in f.title


def test_one_living_parameter_group_is_enough() -> None:
    view = make_view(
        {
            "lr/group0": (STEP, linear_lr(N, 500)),
            "lr/group1": (STEP, constant_lr(N)),
            "train/loss": (STEP, power_law(N)),
        }
    )
    assert judge(view).status == "refuted"


def test_no_learning_rate_names_the_line_to_paste() -> None:
    f = judge(make_view({"loss": (STEP, power_law(N)), "learning-speed": (STEP, constant_lr(N))}))
    assert f.status == "abstained"
    assert "--map 'learning-speed=lr:train'" in f.missing[0]


def test_the_title_says_where_the_rate_fell_and_what_the_loss_did() -> None:
    lr = np.where(STEP <= 500, 1.0, np.where(STEP <= 900, 0.008, 0.0001))
    f = judge(view_of(lr, frozen_at(500)))
    assert "is below 1 % of its peak from step 501 to the end" in f.title
    assert "ends at 0.010 %" in f.title
    assert "the training loss did not move meanwhile (" in f.title
    assert ", interval " in f.title
