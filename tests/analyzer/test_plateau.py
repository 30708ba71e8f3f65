from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afterrun.analyzer.curves.flatness import last_window, stretch
from afterrun.analyzer.curves.lr_schedule import Schedule
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.plateau import Plateau
from afterrun.analyzer.view import RunView
from tests.support.curves import constant_lr, cosine_lr, linear_lr, noise, power_law, wall
from tests.support.tables import make_view

N = 1000
STEP = np.arange(1, N + 1)


def judge(view: RunView) -> Finding:
    """The finding about the end of the run, which comes last."""
    return list(Plateau().run(view))[-1]


def view_of(loss: Any, lr: Any = None, sd: float = 0.02, seed: int = 0, **options: Any) -> RunView:
    e = np.exp(noise(np.random.default_rng(seed), len(loss), sd, rho=0.2))
    step = np.arange(1, len(loss) + 1)
    curves = {"train/loss": (step, np.asarray(loss) * e)}
    if lr is not None:
        curves["train/learning_rate"] = (step, lr)
    return make_view({**curves, **options.pop("more", {})}, **options)


def test_a_stall_at_peak_rate_is_found_where_it_begins() -> None:
    seconds = {"train/loss": 3.0 * STEP}
    f = judge(view_of(wall(N, 0.3), constant_lr(N), wall_s=seconds, devices=2))
    assert (f.status, f.severity, f.code) == ("confirmed", "warning", "plateau")
    assert f.where.step_start == pytest.approx(300, abs=50)
    assert f.values["onset_low_step"] <= f.where.step_start <= f.values["onset_high_step"]
    assert f.values["cause"] == "unexplained"
    assert f.values["level"] == pytest.approx(5.0, rel=0.02)
    assert f.values["stop_support"] > 10.0
    assert f.effect is not None
    assert f.effect.low is not None
    assert f.effect.high is not None
    assert f.effect.low < 0.0 < f.effect.high
    assert f.wasted_gpu_s == pytest.approx(6.0 * (1000 - f.where.step_start), rel=0.01)
    assert "stopped falling" in f.title
    assert "peak" in f.title


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("schedule", [constant_lr, cosine_lr])
def test_a_power_law_is_no_plateau(schedule: Any, seed: int) -> None:
    f = judge(view_of(power_law(N), schedule(N), seed=seed))
    assert not f.is_alarm


def test_without_a_learning_rate_a_stall_is_possible() -> None:
    f = judge(view_of(wall(N, 0.3)))
    assert (f.status, f.severity) == ("possible", "warning")
    assert f.values["lr_share_end"] is None


def test_a_stall_while_a_cosine_is_still_high() -> None:
    f = judge(view_of(wall(N, 0.2), cosine_lr(N)))
    assert f.is_alarm
    assert f.where.step_start == pytest.approx(200, abs=50)


def test_the_end_of_the_schedule_explains_a_flat_end() -> None:
    loss = np.where(STEP < 700, 2.0 + 6.0 * np.exp(-STEP / 150.0), 2.0 + 6.0 * np.exp(-700 / 150.0))
    f = judge(view_of(loss, linear_lr(N, 700), sd=0.002))
    assert (f.status, f.severity) == ("confirmed", "info")
    assert f.values["cause"] == "schedule_end"
    assert f.wasted_gpu_s is None


def test_one_fall_at_the_first_step_is_a_move() -> None:
    f = judge(make_view({"loss": (range(51), [100.0] + [1.0] * 50)}))
    assert (f.severity, f.values["kind"], f.values["cause"]) == ("info", "flat at the end", "frozen")


def test_flat_for_most_of_the_run_at_peak_rate_is_possible() -> None:
    f = judge(view_of(6.0 + 5.0 * np.exp(-STEP / 30.0), constant_lr(N), sd=0.01))
    assert (f.status, f.severity, f.values["kind"]) == ("possible", "warning", "flat for long")


def test_nothing_left_to_learn_is_information() -> None:
    f = judge(view_of(0.0005 + 2.0 * np.exp(-STEP / 30.0), constant_lr(N), sd=0.01))
    assert (f.severity, f.values["cause"]) == ("info", "converged")


def test_dead_gradients_are_named() -> None:
    grad = np.where(STEP < 300, 1.0, 1e-6)
    view = view_of(wall(N, 0.3), constant_lr(N), more={"train/grad_norm": (STEP, grad)})
    f = judge(view)
    assert f.values["cause"] == "dead_gradients"
    assert f.is_alarm


def test_swings_are_named_as_a_rate_too_high() -> None:
    loss = wall(N, 0.3) * (1.0 + 0.10 * np.sin(STEP / 3.0) * (STEP > 300))
    causes = judge(view_of(loss, constant_lr(N))).values
    assert causes["cause"] == "lr_too_high"
    assert "period of 19 points" in causes["causes"][0]["because"]


def test_a_scheduler_that_never_fired_is_named() -> None:
    view = view_of(
        wall(N, 0.3), constant_lr(N), params={"lr_scheduler": '"ReduceLROnPlateau"', "lr_patience": "20"}
    )
    assert judge(view).values["cause"] == "plateau_scheduler_idle"


def test_a_flat_stretch_that_a_drop_ended_is_noted() -> None:
    rate = np.where(STEP < 500, 0.1, 0.01)
    loss = np.where(STEP < 500, 2.0 + 3.0 * np.exp(-STEP / 30.0), 1.2 + 0.8 * np.exp(-(STEP - 500) / 20.0))
    notes = [
        f for f in Plateau().run(view_of(loss, rate, sd=0.01)) if f.values.get("kind") == "lifted by a drop"
    ]
    (note,) = notes
    assert (note.status, note.severity, note.values["cause"]) == ("confirmed", "info", "lr_too_high")
    assert note.where.step_end == pytest.approx(499, abs=1)
    assert note.where.step_start is not None
    assert 60 <= note.where.step_start <= 300
    assert note.values["fall_pct"] == pytest.approx(40.0, abs=4.0)


def test_a_rising_loss_is_no_plateau() -> None:
    loss = np.where(STEP < 400, power_law(N), power_law(N)[399] * (1.0 + (STEP - 400) / 400.0))
    assert not judge(view_of(loss, constant_lr(N))).is_alarm


def test_repeated_rows_are_no_plateau() -> None:
    """A loss computed every fifth epoch and written on each."""
    loss = np.repeat(power_law(40), 5)
    view = make_view({"loss": (range(200), loss)})
    f = judge(view)
    assert f.status == "refuted"
    assert f.values["points"] < 40


@pytest.mark.parametrize("n", [1, 2, 11])
def test_few_points_give_no_number(n: int) -> None:
    f = judge(view_of(np.linspace(3.0, 1.0, n)))
    assert f.status == "abstained"
    assert "not enough data" in f.title
    assert f.effect is None


def test_no_training_loss_names_the_line_to_paste() -> None:
    f = judge(make_view({"zorp": (STEP, power_law(N))}))
    assert f.status == "abstained"
    assert "--map 'zorp=loss:train'" in f.missing[0]


def test_reduce_on_plateau_is_replayed_on_the_held_out_loss() -> None:
    at = STEP[19::20]
    val = np.maximum(5.0 - 0.2 * np.arange(50), 3.0)
    f = judge(view_of(wall(N, 0.3), constant_lr(N), more={"eval/loss": (at, val)}))
    # best at the eleventh evaluation, the eleventh bad one after it is the 22nd: step 440
    assert f.values["reduce_on_plateau_step"] == 440


# -- parts -------------------------------------------------------------------------------------------


def test_equivalence_of_a_stretch() -> None:
    (s,) = view_of(np.exp(-0.001 * STEP), sd=1e-4).series
    part = stretch(s, 500)
    assert part.improvement == pytest.approx(0.499, rel=0.01)
    assert part.course(0.005) == "improving"
    assert part.course(0.6) == "flat"
    assert part.course((part.low + part.high) / 2.0) == "undetermined"
    (up,) = view_of(np.exp(0.001 * STEP), sd=1e-4).series
    assert stretch(up, 500).course(0.005) == "rising"


@pytest.mark.parametrize(("n", "size"), [(30, 10), (300, 100), (800, 200), (5000, 1000)])
def test_last_window(n: int, size: int) -> None:
    (s,) = view_of(np.linspace(2.0, 1.0, n)).series
    part = last_window(s, 0.2, 200)
    assert part.end - part.start == size


def schedule(lr: Any) -> Schedule:
    (s,) = make_view({"lr": (np.arange(len(lr)), lr)}).series
    return Schedule(s)


def test_schedule_by_hand() -> None:
    s = schedule([0.0, 0.5, 1.0, 1.0, 0.1, 0.1, 0.001])
    assert s.peak == 1.0
    assert s.warmup_end == 2.0
    assert s.below_from(0.01) == 6.0
    assert s.below_from(0.0001) is None
    assert s.at(np.array([-1.0, 0.9, 2.5, 9.0])).tolist() == [0.0, 0.0, 1.0, 0.001]
    assert [(d.x, d.before, d.after) for d in s.drops] == [(4.0, 1.0, 0.1), (6.0, 0.1, 0.001)]


def test_a_smooth_decay_has_no_drops() -> None:
    assert schedule(cosine_lr(500)[:480]).drops == ()


def test_a_rate_of_another_axis_is_not_used() -> None:
    view = make_view({"train/loss": (STEP, wall(N, 0.3)), "lr": (range(10), np.ones(10))})
    assert judge(view).values["lr_share_end"] is None
