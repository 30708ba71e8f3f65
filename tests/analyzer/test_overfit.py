from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afterrun.analyzer.curves.matching import Matched, match
from afterrun.analyzer.curves.turning import turning_point
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.overfit import Overfit
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import build
from afterrun.analyzer.view import RunView
from tests.support.curves import noise, power_law
from tests.support.tables import make_view

N, EVERY = 600, 15
STEP = np.arange(1, N + 1)
AT = STEP[EVERY - 1 :: EVERY]


def judge(view: RunView, **thresholds: Any) -> Finding:
    (found,) = Overfit(**thresholds).run(view)
    return found


def curves(rise: float, train_end: float = 0.5, seed: int = 0, sd: float = 0.02) -> dict[str, Any]:
    """Train loss and 40 evaluations; from step 300 on val rises by ``rise`` and train falls to ``train_end``."""
    rng = np.random.default_rng(seed)
    late = np.clip((STEP - 300) / 300, 0.0, None)
    train = power_law(N) * (1.0 - (1.0 - train_end) * late)
    val = power_law(N)
    val = np.where(STEP > 300, val[299] * (1.0 + rise * late), val) * 1.05
    return {
        "train/loss": (STEP, train * np.exp(noise(rng, N, sd))),
        "eval/loss": (AT, val[AT - 1] * np.exp(noise(rng, len(AT), sd / 5))),
    }


def test_turns_and_rises() -> None:
    wall = {"train/loss": 2.0 * STEP, "eval/loss": 2.0 * AT}
    f = judge(make_view(curves(0.3), wall_s=wall, devices=4))
    assert (f.status, f.severity, f.code) == ("confirmed", "warning", "overfit")
    assert f.where.step_start == pytest.approx(300, abs=45)
    assert f.values["onset_low_step"] <= f.where.step_start <= f.values["onset_high_step"]
    assert f.values["onset_low_step"] <= f.values["best_step"] <= f.values["onset_high_step"]
    assert f.effect is not None
    assert f.effect.low is not None
    assert f.effect.high is not None
    assert f.effect.low < 30.0 < f.effect.high
    assert f.values["train_change_pct"] < -40.0
    # two seconds a step on four devices from the onset to step 600
    assert f.wasted_gpu_s == pytest.approx(8.0 * (600 - f.where.step_start))
    assert "eval/loss rose" in f.title
    assert "train/loss fell" in f.title


def test_regret_and_gap_by_hand() -> None:
    f = judge(make_view(curves(0.3, sd=1e-6)))
    val = np.array(curves(0.3, sd=1e-6)["eval/loss"][1])
    assert f.values["best_value"] == pytest.approx(val.min())
    assert f.values["last_value"] == pytest.approx(val[-1])
    assert f.values["regret_pct"] == pytest.approx(100.0 * (val[-1] / val.min() - 1.0))
    assert f.values["gap_end"] > f.values["gap_start"]


def test_patience_table_and_criteria() -> None:
    wall = {"train/loss": 2.0 * STEP, "eval/loss": 2.0 * AT}
    f = judge(make_view(curves(0.3, sd=1e-6), wall_s=wall, devices=1))
    table = {(r["patience"], r["min_delta_pct"]): r for r in f.values["patience_table"]}
    assert len(table) == 18
    five = table[5, 0.0]
    # best at step 300 (evaluation 20), five evaluations of 15 steps later
    assert five["stop_step"] == 375
    assert five["kept_step"] == 300
    assert five["given_up_pct"] == pytest.approx(0.0)
    assert five["saved_pct"] == pytest.approx(100.0 * 225 / 599)
    assert five["gpu_s_saved"] == pytest.approx(450.0)
    assert table[20, 0.0]["stop_step"] == 600
    # 1.5 % an evaluation: above 1 % after one, above 5 % after four
    assert f.values["would_have_stopped"]["GL_1"] == 315
    assert f.values["would_have_stopped"]["GL_5"] == 360


def test_costs_are_unknown_without_a_clock_or_devices() -> None:
    f = judge(make_view(curves(0.3)))
    assert f.wasted_gpu_s is None
    assert f.values["patience_table"][0]["gpu_s_saved"] is None


@pytest.mark.parametrize("seed", range(8))
def test_a_constant_gap_is_not_overfitting(seed: int) -> None:
    c = curves(0.0, train_end=1.0, seed=seed)
    rng = np.random.default_rng(seed)
    c["eval/loss"] = (AT, 1.5 * power_law(N)[AT - 1] * np.exp(noise(rng, len(AT), 0.03)))
    assert judge(make_view(c)).status == "refuted"


def test_a_val_loss_that_comes_back_is_not_overfitting() -> None:
    hump = 1.0 + 0.4 * np.exp(-0.5 * ((STEP - 300) / 60.0) ** 2)
    c = curves(0.0, train_end=0.9)
    c["eval/loss"] = (AT, (power_law(N) * hump)[AT - 1])
    assert judge(make_view(c)).status == "refuted"


def test_both_rising_is_a_divergence() -> None:
    f = judge(make_view(curves(0.5, train_end=2.0)))
    assert f.status == "refuted"
    assert f.values["reason"] == "divergence"


def test_train_standing_still_is_drift() -> None:
    c = curves(0.3)
    flat = np.where(STEP > 300, power_law(N)[299], power_law(N))
    c["train/loss"] = (STEP, flat * np.exp(noise(np.random.default_rng(1), N, 0.005)))
    f = judge(make_view(c))
    assert f.status == "refuted"
    assert f.values["reason"] == "val-drift"


def test_train_at_its_floor_may_stand_still() -> None:
    c = curves(0.3)
    floor = np.maximum(8.0 * np.exp(-STEP / 30.0), 0.004)
    c["train/loss"] = (STEP, floor * np.exp(noise(np.random.default_rng(1), N, 0.005)))
    f = judge(make_view(c))
    assert (f.status, f.values["train_at_floor"]) == ("confirmed", True)
    assert "nothing left to learn" in f.title


def test_ten_epochs_suffice_when_the_turn_is_plain() -> None:
    val = [1.40, 1.10, 0.92, 0.88, 0.93, 0.99, 1.06, 1.12, 1.19, 1.25]
    train = [1.30, 1.00, 0.80, 0.66, 0.55, 0.46, 0.38, 0.32, 0.27, 0.23]
    f = judge(make_view({"loss": (range(1, 11), train), "val_loss": (range(1, 11), val)}))
    assert f.status in ("confirmed", "possible")
    assert f.where.step_start == 4


def test_nine_evaluations_are_shown_and_not_judged() -> None:
    val = [1.40, 1.10, 0.88, 0.93, 0.99, 1.06, 1.12, 1.19, 1.25]
    f = judge(make_view({"loss": (range(9), np.linspace(1.3, 0.3, 9)), "val_loss": (range(9), val)}))
    assert f.status == "abstained"
    assert "9" in f.missing[0]
    assert (f.values["best_step"], f.values["best_value"], f.values["last_value"]) == (2, 0.88, 1.25)


def test_an_accuracy_falls_in_points() -> None:
    rng = np.random.default_rng(0)
    late = np.clip((STEP - 200) / 400, 0.0, None)
    val = 0.85 - 0.35 * np.exp(-STEP / 40.0) - 0.10 * late
    train = 1.0 - 0.5 * np.exp(-STEP / 150.0)
    view = make_view(
        {
            "train/accuracy": (STEP, np.clip(train + rng.normal(0, 0.004, N), 0.0, 1.0)),
            "eval/accuracy": (AT, val[AT - 1] + rng.normal(0, 0.003, len(AT))),
        }
    )
    f = judge(view)
    assert f.status == "confirmed"
    assert f.effect is not None
    assert f.effect.unit.startswith("percentage points")
    assert f.effect.value == pytest.approx(9.5, abs=1.5)
    assert "fell" in f.title


def test_one_alarm_for_many_metrics_and_the_rest_is_told() -> None:
    c = curves(0.3)
    c["train/accuracy"] = (STEP, np.linspace(0.5, 0.99, N))
    c["eval/accuracy"] = (AT, np.linspace(0.5, 0.8, len(AT)))
    f = judge(make_view(c))
    assert f.values["val_tag"] == "eval/loss"
    (other,) = f.values["other_metrics"]
    assert (other["tag"], other["best_step"]) == ("eval/accuracy", 600)
    assert any("eval/accuracy was best only at step 600" in a for a in f.advice)


# -- inputs that are missing or odd ------------------------------------------------------------------


def test_no_validation_names_the_line_to_paste() -> None:
    f = judge(make_view({"loss": (STEP, power_law(N)), "dev/lossy": (AT, power_law(N)[AT - 1])}))
    assert f.status == "abstained"
    assert "--map 'dev/lossy=loss:val'" in f.missing[0]


def test_validation_that_is_all_nan_has_no_values() -> None:
    f = judge(
        make_view({"loss": (range(10), np.linspace(2.0, 1.1, 10)), "val_loss": (range(10), [np.nan] * 10)})
    )
    assert f.status == "abstained"
    assert "val_loss has no finite value, all 10 are NaN" in f.title


def test_validation_without_its_training_curve() -> None:
    f = judge(make_view({"eval/loss": (AT, power_law(N)[AT - 1])}))
    assert f.status == "abstained"
    assert "--map" in f.missing[0]


def test_repeated_values_are_one_evaluation() -> None:
    """The map is computed every fifth epoch and written on each: five evaluations, too few to judge."""
    score = np.repeat([0.3, 0.4, 0.5, 0.6, 0.7], 5)
    view = make_view({"train/loss": (range(25), power_law(25)), "eval/val/map": (range(25), score)})
    f = judge(view)
    assert f.status == "abstained"
    assert (f.values["evaluations"], f.values["repeated_rows"]) == (5, 5)
    assert "5 real evaluations" in f.title


def test_a_score_without_a_training_curve_stands_beside_the_training_loss() -> None:
    rng = np.random.default_rng(0)
    late = np.clip((STEP - 200) / 400, 0.0, None)
    score = 0.6 - 0.3 * np.exp(-STEP / 40.0) - 0.12 * late
    c = curves(0.0)
    c["eval/map"] = (AT, score[AT - 1] + rng.normal(0, 0.003, len(AT)))
    del c["eval/loss"]
    f = judge(make_view(c))
    assert (f.status, f.values["val_tag"], f.values["gap_end"]) == ("confirmed", "eval/map", None)
    c["eval/reward"] = c.pop("eval/map")
    assert judge(make_view(c)).status == "abstained"


def batches_and_epochs(with_clock: bool) -> RunView:
    """Train by batch, 0 to 99; validation by epoch, 0 to 4, after every twentieth batch."""
    train, val = np.linspace(2.0, 1.01, 100), np.array([1.9, 1.7, 1.5, 1.3, 1.1])
    wall = {"Loss/Train": 1000.0 + np.arange(100.0), "Loss/Valid": 1019.5 + 20.0 * np.arange(5.0)}
    return make_view(
        {"Loss/Train": (range(100), train), "Loss/Valid": (range(5), val)},
        wall_s=wall if with_clock else None,
    )


def test_batches_and_epochs_meet_on_the_wall_clock() -> None:
    (pair,) = batches_and_epochs(True).pairs
    matched = match(pair)
    assert isinstance(matched, Matched)
    assert matched.axis == "wall clock"
    assert matched.train_per_val == 20
    train = np.linspace(2.0, 1.01, 100)
    assert matched.train == pytest.approx(train.reshape(5, 20).mean(axis=1))
    f = judge(batches_and_epochs(True))
    assert f.values["evaluations"] == 5
    assert "20 batches for each epoch" in f.title
    assert f.values["gap_start"] == pytest.approx(np.median(np.array([1.9, 1.7, 1.5]) - matched.train[:3]))


def test_batches_and_epochs_without_a_clock_are_not_compared() -> None:
    f = judge(batches_and_epochs(False))
    assert f.status == "abstained"
    assert "common axis" in f.missing[0]


def test_training_points_between_evaluations_are_averaged() -> None:
    view = make_view({"train/loss": ([1, 2, 3, 4], [4.0, 2.0, 3.0, 1.0]), "eval/loss": ([2, 4], [5.0, 5.0])})
    matched = match(view.pairs[0])
    assert isinstance(matched, Matched)
    assert matched.train.tolist() == [3.0, 2.0]


def test_evaluations_between_training_points_are_interpolated() -> None:
    view = make_view(
        {"train/loss": ([0, 10, 20], [4.0, 2.0, 1.0]), "eval/loss": ([5, 10, 15, 20], [5.0, 5.0, 5.0, 5.0])}
    )
    matched = match(view.pairs[0])
    assert isinstance(matched, Matched)
    assert matched.train.tolist() == [4.0, 2.0, 1.5, 1.0]


# -- the turning point -------------------------------------------------------------------------------


def test_turning_point_of_a_noiseless_valley() -> None:
    y = np.abs(np.arange(41.0) - 20.0)
    t = turning_point(y)
    assert (t.best, t.after) == (20, 20)
    assert t.p_up < 1e-4
    # median of the last five (16..20) minus median of the five around the bottom (0, 1, 1, 2, 2)
    assert t.rise == 18.0 - 1.0
    assert t.height == 20.0


def test_wandering_noise_widens_the_error() -> None:
    white = [turning_point(np.random.default_rng(s).normal(0, 1, 80)).se for s in range(40)]
    slow = [turning_point(noise(np.random.default_rng(s), 80, 1.0, rho=0.7)).se for s in range(40)]
    assert float(np.median(slow)) > 1.2 * float(np.median(white))


def test_scale_and_axis_do_not_change_the_verdict() -> None:
    c = curves(0.2)
    scaled = {tag: (np.asarray(x) * 7, np.asarray(y) * 1e-3) for tag, (x, y) in c.items()}
    a, b = judge(make_view(c)), judge(make_view(scaled))
    assert a.status == b.status == "confirmed"
    assert b.where.step_start == 7 * (a.where.step_start or 0)
    assert a.effect is not None
    assert b.effect is not None
    assert b.effect.value == pytest.approx(a.effect.value)


def test_every_held_out_loss_is_judged_and_the_worst_confirmed_one_speaks() -> None:
    calm, worse = curves(0.0), curves(0.5)
    del calm["eval/loss"]
    c = {**calm, "eval_in_domain_loss": curves(-0.2)["eval/loss"], "eval_ood_loss": worse["eval/loss"]}
    c["train/loss"] = worse["train/loss"]
    f = judge(make_view(c))
    assert (f.status, f.values["val_tag"]) == ("confirmed", "eval_ood_loss")
    assert "eval_ood_loss" in f.title
    del c["eval_ood_loss"]
    assert judge(make_view(c)).status == "refuted"


@pytest.mark.parametrize("length", [3, 10])
def test_a_held_out_loss_that_jumps_for_good_is_possible(length: int) -> None:
    rng = np.random.default_rng(0)
    epoch = np.arange(40)
    train = 0.5 + 2.0 * np.exp(-epoch / 10)
    val = (0.6 + 2.0 * np.exp(-epoch / 5)) * np.exp(rng.normal(0, 0.02, 40))
    c = {"train_loss": (epoch, train), "val_loss": (epoch, val)}
    assert judge(make_view(c)).status == "refuted"
    jumped = val.copy()
    jumped[-length:] = 50.0 * np.exp(rng.normal(0, 0.02, length))
    f = judge(make_view(c | {"val_loss": (epoch, jumped)}))
    assert (f.status, f.severity, f.values["reason"]) == ("possible", "warning", "jumped, not drifted")
    assert (f.where.step_start, f.where.step_end) == (39 - length, 39)
    assert f"at step {40 - length} and stayed there to the end" in f.title
    back = jumped.copy()
    back[-1] = 0.6
    assert judge(make_view(c | {"val_loss": (epoch, back)})).status == "refuted"


def test_a_jump_with_the_training_loss_is_no_overfit() -> None:
    """Both go from 2 to 12 at row 240 of 400; the training loss swings too much for a trend of its tail."""
    rng = np.random.default_rng(5)
    rows = np.arange(400)
    train = np.where(rows < 240, 2 + 6 * np.exp(-rows / 40), 12.0) * np.exp(rng.normal(0, 0.05, 400))
    at = rows[9::10]
    val = np.where(at < 240, 2.1 + 6 * np.exp(-at / 40), 12.0)
    view, _ = run_passes(make_view({"train/loss": (rows, train), "val/loss": (at, val)}), build())
    assert [f.is_alarm for f in view.earlier["level-shift"]] == [True]
    assert [f.status for f in view.earlier["overfit"]] == ["refuted"]


def test_a_few_evaluations_far_above_in_no_order() -> None:
    """1.7 after 800 steps, then 2.6, 3.6, 3.5, 2.9, 3.9, 4.3: no trend that six values could prove, and no doubt."""
    at = np.arange(0, 2200, 200)
    val = np.array([4.6, 2.5, 2.2, 1.8, 1.7, 2.6, 3.6, 3.5, 2.9, 3.9, 4.3])
    steps = np.arange(2200)
    f = judge(make_view({"train/loss": (steps, 4.5 * np.exp(-steps / 500)), "val/loss": (at, val)}))
    assert (f.status, f.where.step_start) == ("possible", 800)
