"""Loss spikes: all of them, their onsets, and the curves that only look like them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.spike import Spike
from afterrun.analyzer.view import RunView
from tests.support.tables import make_view

N = 800
STEP = np.arange(1, N + 1) * 5


def descent(sd: float = 0.03, seed: int = 0, n: int = N) -> np.ndarray:
    t = np.arange(n) / n
    return (0.5 + 3.0 * np.exp(-t / 0.1)) * np.exp(np.random.default_rng(seed).normal(0.0, sd, n))


def with_spikes(y: np.ndarray, rows: list[int], height: float = 1.5, tau: float = 4.0) -> np.ndarray:
    out = y.copy()
    for r in rows:
        out[r:] *= 1.0 + height * np.exp(-np.arange(len(y) - r) / tau)
    return out


def run(y: np.ndarray, **curves: np.ndarray) -> Finding:
    named = {"train/loss": (STEP[: len(y)], y)} | {
        k.replace("__", "/"): (STEP[: len(v)], v) for k, v in curves.items()
    }
    (finding,) = Spike().run(make_view(named))
    return finding


def test_all_spikes_are_listed_with_their_onsets() -> None:
    rows = [150, 300, 301 + 60, 700]
    f = run(with_spikes(descent(), rows))
    assert (f.code, f.status, f.severity) == ("spike", "confirmed", "warning")
    assert f.values["spikes"] == [int(STEP[r]) for r in rows]
    assert f.values["count"] == 4
    assert f.where.step_start == STEP[150]
    assert "4 loss spikes" in f.title


def test_height_recovery_and_area_by_hand() -> None:
    y = np.where(np.arange(N) % 2 == 0, 1.0, 1.001)
    y[400:403] = [3.0, 2.0, 1.5]
    f = run(y)
    event = f.values["largest"]
    assert event["height_pct"] == pytest.approx(200.0, rel=0.01)
    assert event["peak"] == 3.0
    assert event["points"] == 3
    assert event["recover_steps"] == 15.0
    assert event["area_loss_steps"] == pytest.approx(5 * (2.0 + 1.0 + 0.5), rel=0.01)
    assert f.effect is not None
    assert f.effect.low is not None
    assert f.effect.high is not None
    assert f.effect.low < 200.0 < f.effect.high
    assert [(e.step, e.value) for e in f.evidence] == [(int(STEP[400]), 3.0)]


def test_cost_is_the_time_to_recover() -> None:
    y = with_spikes(descent(), [400])
    walls = {"train/loss": (2.0 * np.arange(N)).tolist()}
    (f,) = Spike().run(make_view({"train/loss": (STEP, y)}, wall_s=walls, devices=4))
    assert f.wasted_gpu_s == pytest.approx(2.0 * 4 * f.values["largest"]["points"])


def test_a_gradient_spike_before_the_loss_is_named() -> None:
    grad = np.exp(np.random.default_rng(1).normal(0.0, 0.1, N))
    grad[395:402] *= 20.0
    f = run(with_spikes(descent(), [400]), train__grad_norm=grad)
    assert f.values["largest"]["grad_lead_steps"] == 25.0
    assert f.values["led_by_gradient"] == 1
    assert any("Clip" in a and "1 of 1" in a for a in f.advice)


def test_a_spike_at_a_restart_says_so() -> None:
    y = with_spikes(descent(), [400])
    view = make_view({"train/loss": (STEP, y)}, attempt={"train/loss": [1] * 400 + [2] * 400})
    (f,) = Spike().run(view)
    assert "right after a restart" in f.title
    assert "resume" in f.advice[0]


def test_a_jump_of_the_learning_rate_is_named() -> None:
    lr = np.where(np.arange(N) < 400, 1e-4, 1e-3)
    f = run(with_spikes(descent(), [400]), train__learning_rate=lr)
    assert f.values["largest"]["lr_factor"] == pytest.approx(10.0)
    assert any("scheduler" in a for a in f.advice)


def test_a_jump_that_stays_is_no_spike() -> None:
    y = descent()
    y[500:] *= 1.6
    f = run(y)
    assert f.status == "refuted"
    assert f.values["unrecovered"] == [int(STEP[500])]
    assert "did not come back" in f.title


def test_a_smooth_hump_at_the_end_of_the_warm_up_is_no_spike() -> None:
    n, w = 1500, 80
    t = np.arange(n)
    y = descent(0.008, n=n) * (1.0 + 0.25 * np.exp(-0.5 * ((t - w) / 30.0) ** 2))
    lr = 1e-3 * np.minimum(1.0, (t + 1) / w)
    curves = {"train/loss": (t, y), "train/learning_rate": (t, lr)}
    (f,) = Spike().run(make_view(curves))
    assert not f.is_alarm


def test_one_mild_lone_point_on_a_noisy_curve_is_no_alarm() -> None:
    y = descent(0.06)
    y[400] *= 1.6
    f = run(y)
    assert not f.is_alarm


def test_a_tall_lone_point_on_a_calm_curve_is_a_spike() -> None:
    y = descent(0.02)
    y[400] *= 2.5
    f = run(y)
    assert (f.status, f.severity, f.values["spikes"]) == ("confirmed", "warning", [int(STEP[400])])


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_no_spike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    smooth = 0.5 + 3.0 * np.exp(-np.arange(N) / 80.0)
    for y in (
        smooth * np.exp(rng.normal(0.0, 0.2, N)),
        smooth * rng.gamma(2.0, 0.5, N),
        smooth + rng.exponential(0.3, N),
        np.round(smooth * 0.01 * np.exp(rng.normal(0.0, 0.05, N)), 4) + 1e-4,
    ):
        assert not run(y).is_alarm


def test_heavy_tails_go_down_as_far_as_up() -> None:
    y = descent(0.02)
    y[[200, 300, 500]] *= 0.3
    y[[250, 450]] *= 2.0
    f = run(y)
    assert f.status == "refuted"
    assert f.values["mirrored"] == 2


def test_a_loss_that_crosses_zero_is_judged_by_its_range() -> None:
    y = np.linspace(1.0, -1.0, N) + np.random.default_rng(2).normal(0.0, 0.01, N)
    y[400:404] += [2.0, 1.5, 1.0, 0.5]
    f = run(y)
    assert f.values["spikes"] == [int(STEP[400])]
    assert f.values["largest"]["height_pct"] is None


def test_nan_between_is_passed_over() -> None:
    y = with_spikes(descent(), [400])
    y[200:210] = math.nan
    assert run(y).values["spikes"] == [int(STEP[400])]


def test_without_steps_points_are_counted() -> None:
    view = make_view({"train/loss": (STEP, with_spikes(descent(), [400]))})
    stepless = view.tables.metrics.with_columns(step=pl.lit(None, dtype=pl.Int64))
    (f,) = Spike().run(RunView(name="run", tables=view.tables.with_(metrics=stepless)))
    assert f.where.step_start is None
    assert "point 401" in f.title


def test_no_training_loss_abstains_with_the_line_to_paste() -> None:
    (f,) = Spike().run(make_view({"xyz": (STEP, descent())}))
    assert f.status == "abstained"
    assert f.missing == ("a training loss: --map 'xyz=loss:train'",)


def test_few_points_abstain() -> None:
    f = run(descent(n=29))
    assert (f.status, f.values["points"]) == ("abstained", 29)


def test_a_sample_of_the_points_cannot_show_that_there_is_no_spike() -> None:
    view = make_view({"train/loss": (STEP, descent())})
    sampled = view.tables.sources.with_columns(sampled=pl.lit(value=True))
    (f,) = Spike().run(RunView(name="run", tables=view.tables.with_(sources=sampled)))
    assert f.status == "abstained"
    assert "sample" in f.missing[0]


def test_thresholds_are_obeyed() -> None:
    y = with_spikes(descent(), [400], height=0.5)
    view = make_view({"train/loss": (STEP, y)})
    assert [f.status for f in Spike().run(view)] == ["confirmed"]
    (deaf,) = replace(Spike(), rise_min_pct=80.0).run(view)
    assert deaf.status == "refuted"
    assert deaf.parameters["rise_min_pct"] == 80.0
