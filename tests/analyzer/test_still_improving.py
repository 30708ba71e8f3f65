from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.overfit import Overfit
from afterrun.analyzer.passes.still_improving import StillImproving
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, cosine_lr, linear_lr, noise, power_law
from tests.support.tables import make_view

N = 1000
STEP = np.arange(1, N + 1)
AT = STEP[19::20]


def judge(view: RunView) -> Finding:
    (found,) = StillImproving().run(view)
    return found


def view_of(loss: Any, lr: Any = None, val: Any = None, sd: float = 0.005, seed: int = 0) -> RunView:
    rng = np.random.default_rng(seed)
    curves = {"train/loss": (STEP, loss * np.exp(noise(rng, N, sd)))}
    if lr is not None:
        curves["train/learning_rate"] = (STEP, lr)
    if val is not None:
        curves["eval/loss"] = (AT, val[AT - 1] * np.exp(noise(rng, len(AT), 0.001)))
    return make_view(curves)


def test_a_run_cut_short_at_constant_rate() -> None:
    loss = np.exp(-0.0005 * STEP)
    f = judge(view_of(loss, constant_lr(N), val=1.1 * loss))
    assert (f.status, f.severity) == ("confirmed", "info")
    assert not f.is_alarm
    # 199 steps of 0.05 %
    expected = 100.0 * (1.0 - np.exp(-0.0005 * 199))
    assert f.values["train_improvement_pct"] == pytest.approx(expected, rel=0.05)
    assert f.effect is not None
    assert f.effect.low is not None
    assert f.effect.high is not None
    assert f.effect.low < expected < f.effect.high
    assert f.where.step_start == 801
    assert "eval/loss by" in f.title
    assert "would have gone lower" in f.title


@pytest.mark.parametrize("lr", [cosine_lr(N), linear_lr(N, N)], ids=["cosine", "linear"])
def test_an_ended_schedule_settles_it(lr: Any) -> None:
    f = judge(view_of(np.exp(-0.0005 * STEP), lr))
    assert f.status == "refuted"
    assert "learning rate has ended" in f.title


def test_a_flat_end() -> None:
    f = judge(view_of(2.0 + 3.0 * np.exp(-STEP / 60.0), constant_lr(N), sd=0.001))
    assert f.status == "refuted"
    assert f.title.startswith("Not improving any more")


def test_noise_hides_it_and_that_is_said() -> None:
    f = judge(view_of(np.exp(-0.00005 * STEP), constant_lr(N), sd=0.2, seed=1))
    assert f.status == "refuted"
    assert f.title.startswith("No sure improvement")


def test_a_rising_validation_loss_settles_it() -> None:
    loss = np.exp(-0.0005 * STEP)
    f = judge(view_of(loss, constant_lr(N), val=np.exp(0.0003 * STEP)))
    assert f.status == "refuted"
    assert "eval/loss got worse" in f.title


def test_an_overfit_found_before_settles_it() -> None:
    loss = np.exp(-0.0005 * STEP)
    val = np.where(STEP < 500, loss, loss[499] * (1.0 + (STEP - 500) / 1500.0))
    view = view_of(loss, constant_lr(N), val=val)
    found = list(Overfit().run(view))
    assert found[0].status == "confirmed"
    assert judge(view.with_earlier(found)).status == "refuted"


def test_few_points_give_no_number() -> None:
    f = judge(make_view({"loss": ([0, 1000], [3.0, 1.0])}))
    assert f.status == "abstained"
    assert set(f.values) == {"points"}


def test_a_loss_below_zero_is_measured_by_its_range() -> None:
    f = judge(view_of(-0.01 * STEP, constant_lr(N), sd=1e-6))
    assert f.status == "confirmed"
    # a fifth of the run is 199 of the 899 steps between the 5th and the 95th percentile
    assert f.values["train_improvement_pct"] == pytest.approx(100.0 * 199 / 899, rel=0.01)


def test_no_training_loss() -> None:
    assert judge(make_view({"eval/loss": (AT, power_law(N)[AT - 1])})).status == "abstained"


def test_a_held_out_loss_above_its_best_settles_it() -> None:
    loss = np.exp(-0.0005 * STEP)
    val = np.where(STEP < 600, loss, 1.15 * loss[599])  # flat, but 15 % above its best
    f = judge(view_of(loss, constant_lr(N), val=val))
    assert f.status == "refuted"
    assert 10.0 < f.values["val_above_best_pct"] <= 15.0, "the lowest level is a median over some evaluations"
    assert "above its best" in f.title


def test_a_loss_on_its_way_back_from_a_jump_is_recovering() -> None:
    loss = np.exp(-0.0005 * STEP) * np.where(STEP < 700, 1.0, 1.6)
    f = judge(view_of(loss, constant_lr(N)))
    assert f.status == "refuted"
    assert "it is recovering" in f.title


def test_a_score_of_generated_samples_is_no_training_loss() -> None:
    assert judge(make_view({"fid": (STEP, 100.0 * np.exp(-0.0005 * STEP))})).status == "abstained"


def test_a_short_curve_that_only_falls_is_at_its_best() -> None:
    step = np.arange(12)
    f = judge(make_view({"loss": (step, 2.0 * 0.92**step)}))
    assert f.values["train_above_best_pct"] == 0.0
    assert f.status == "confirmed"
