"""NaN and infinities: what they mean depends on the curve and on the pattern."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.curves.holes import hole
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.non_finite import NonFinite
from afterrun.analyzer.pipeline import run_passes
from afterrun.analyzer.registry import build
from afterrun.analyzer.view import RunView
from tests.support.tables import make_view

NAN, INF = math.nan, math.inf
N = 200
STEP = np.arange(1, N + 1)


def loss() -> np.ndarray:
    return 1.0 + 3.0 / STEP


def run(curves: Mapping[str, np.ndarray], **options: object) -> Finding:
    named = {tag: (STEP[: len(v)], v) for tag, v in curves.items()}
    (finding,) = NonFinite().run(make_view(named, **options))
    return finding


def test_nan_to_the_end_is_critical_and_everything_after_it_is_wasted() -> None:
    y, grad = loss(), np.ones(N)
    y[150:], grad[149:] = NAN, NAN
    walls = {tag: (3.0 * STEP).tolist() for tag in ("train/loss", "train/grad_norm")}
    f = run({"train/loss": y, "train/grad_norm": grad}, wall_s=walls, devices=2)
    assert (f.status, f.severity) == ("confirmed", "critical")
    assert (f.where.step_start, f.where.step_end) == (151, 200)
    assert f.wasted_gpu_s == pytest.approx(3.0 * 2 * 49)
    assert f.values["share_pct"] == pytest.approx(25.0)
    assert (f.values["first_tag"], f.values["first_tag_step"]) == ("train/grad_norm", 150)
    assert f.values["last_loss"] == pytest.approx(1.0 + 3.0 / 150)
    assert "train/loss is NaN from step 151 to the end (50 values of 200)" in f.title
    assert [(e.tag, e.step, e.value) for e in f.evidence] == [
        ("train/loss", 150, pytest.approx(1.02)),
        ("train/loss", 151, "NaN"),
        ("train/grad_norm", 150, "NaN"),
    ]


def test_nan_from_the_first_row_is_critical() -> None:
    f = run({"train/loss": np.full(N, NAN)})
    assert (f.severity, f.values["pattern"], f.where.step_start) == ("critical", "always", 1)
    assert "in all of its 200 values" in f.title


def test_a_training_column_nobody_filled_is_not_a_failed_run() -> None:
    f = run({"train/loss": np.full(N, NAN), "eval/loss": loss()})
    assert f.status == "refuted"
    assert f.values["never_finite"] == ["train/loss"]


def test_transient_nan_is_a_warning_that_recovered() -> None:
    y = loss()
    y[[80, 120]] = NAN
    f = run({"train/loss": y})
    assert (f.severity, f.where.step_start, f.where.step_end) == ("warning", 81, 121)
    assert (f.values["recovered_step"], f.values["lost_from_step"], f.wasted_gpu_s) == (82, None, None)


def test_growth_before_the_onset_is_measured_and_changes_the_advice() -> None:
    y, grad = loss(), np.ones(N)
    grad[100:150] = np.exp(np.linspace(0.0, 2.0, 50))
    y[150:] = NAN
    f = run({"train/loss": y, "train/grad_norm": grad})
    assert f.values["grad_growth_factor"] == pytest.approx(math.exp(2.0), rel=1e-6)
    assert any("Clip the gradient norm" in a for a in f.advice)
    calm = run({"train/loss": y, "train/grad_norm": np.ones(N)})
    assert any("nothing led up to it" in a for a in calm.advice)


def test_falling_loss_scale_points_to_half_precision() -> None:
    y = loss()
    y[150:] = NAN
    scale = np.repeat([65536.0, 32768.0, 16384.0, 8192.0], 50)
    f = run({"train/loss": y, "loss_scale": scale})
    assert (f.values["loss_scale_halvings"], f.values["last_loss_scale"]) == (2, 16384.0)
    assert any("bfloat16" in a for a in f.advice)


def test_skipped_steps_of_mixed_precision_are_information() -> None:
    grad = np.ones(N)
    grad[[0, 1, 90]] = INF
    f = run({"train/loss": loss(), "train/grad_norm": grad})
    assert (f.severity, f.values["role"], f.values["infinite"]) == ("info", "grad norm", 3)
    assert "the training loss is finite throughout" in f.title


@pytest.mark.parametrize(
    ("bad", "severity"),
    [
        (slice(196, 200), "info"),
        (slice(195, 200), "warning"),
        (slice(50, 61), "warning"),
        (slice(50, 60), "info"),
    ],
)
def test_a_gradient_norm_in_lasting_trouble_is_a_warning(bad: slice, severity: str) -> None:
    grad = np.ones(N)
    grad[bad] = NAN
    assert run({"train/loss": loss(), "train/grad_norm": grad}).severity == severity


def test_validation_loss_lost_for_good_is_a_warning() -> None:
    val = loss()
    val[100:] = NAN
    f = run({"train/loss": loss(), "eval/loss": val})
    assert (f.severity, f.values["role"], f.values["lost_from_step"]) == ("warning", "val loss", 101)
    assert f.wasted_gpu_s is None


def test_a_metric_that_is_nan_before_its_first_real_value_is_information() -> None:
    wer = np.concatenate([np.full(80, NAN), np.full(58, 0.3)])
    f = run({"train/loss": loss(), "val/wer": wer})
    assert (f.severity, f.values["pattern"]) == ("info", "first part")
    assert "val/wer is NaN in its first 80 of 138 values and finite from step 81 on" in f.title


def test_a_validation_column_that_is_nan_in_every_row_counts_as_absent() -> None:
    f = run({"loss": 2.0 - 0.1 * np.arange(10), "val_loss": np.full(10, NAN)})
    assert f.status == "refuted"
    assert f.values["never_finite"] == ["val_loss"]
    assert "val_loss holds NaN in every row and counts as not recorded" in f.title


def test_an_infinite_validation_loss_is_counted() -> None:
    f = run({"train/box_loss": np.array([2.8, 1.7]), "val/cls_loss": np.array([INF, INF])})
    assert (f.severity, f.values["tag"], f.values["non_finite"]) == ("warning", "val/cls_loss", 2)
    assert "infinite in all of its 2 values" in f.title


def test_absent_classes_are_information() -> None:
    f = run(
        {
            "train/loss": loss(),
            "bbox/AP-cat": np.full(N, 0.4),
            "bbox/AP-yak": np.append(np.full(N - 1, NAN), 0.1),
        }
    )
    assert f.severity == "info"


def test_nan_at_regular_places_is_a_cell_nobody_filled() -> None:
    y = np.full(N, NAN)
    y[9::10] = loss()[9::10]
    f = run({"train/loss": y})
    assert (f.severity, f.values["pattern"]) == ("info", "regular")


def test_a_loss_that_vanishes_when_the_gradient_norm_turns_nan_is_critical() -> None:
    grad = np.append(np.full(15, 0.75), np.full(10, NAN))
    steps = np.arange(3370, 3395)
    view = make_view({"lm loss": (steps[:15], 0.9 - 0.001 * np.arange(15)), "grad norm": (steps, grad)})
    (f,) = NonFinite().run(view)
    assert (f.severity, f.where.step_start, f.where.step_end) == ("critical", 3385, 3394)
    assert (f.values["pattern"], f.values["last_loss_step"], f.values["non_finite"]) == ("hidden", 3384, 10)
    assert "no longer written from step 3,385" in f.title


def test_nan_that_was_rolled_back_is_told() -> None:
    steps = [1, 2, 3, 4, 3, 4, 5]
    view = make_view(
        {"train/loss": (steps, [3.0, 2.0, NAN, NAN, 1.5, 1.4, 1.3])},
        attempt={"train/loss": [1, 1, 1, 1, 2, 2, 2]},
        superseded={"train/loss": [False, False, True, True, False, False, False]},
    )
    (f,) = NonFinite().run(view)
    assert (f.status, f.severity, f.attempt) == ("confirmed", "warning", 1)
    assert (f.where.step_start, f.where.step_end) == (3, 4)
    assert "rolled back" in f.title


def test_all_finite_says_how_much_was_looked_at() -> None:
    f = run({"train/loss": loss(), "epoch": STEP / 10.0})
    assert f.title == "All 200 recorded values of 1 curve are finite."


def test_no_curve_abstains() -> None:
    view = make_view({"train/loss": (STEP, loss())})
    empty = view.tables.with_(metrics=view.tables.metrics.clear())
    (f,) = NonFinite().run(RunView(name="run", tables=empty))
    assert f.status == "abstained"


def test_all_ranks_are_looked_at() -> None:
    view = make_view({"train/loss": (STEP, loss())})
    rank0 = view.tables.metrics.with_columns(rank=pl.lit(0, dtype=pl.Int32))
    broken = pl.when(pl.col("step") > 150).then(NAN).otherwise(pl.col("value"))
    rank1 = rank0.with_columns(rank=pl.lit(1, dtype=pl.Int32), value=broken)
    both = view.tables.with_(metrics=pl.concat([rank0, rank1]))
    (f,) = NonFinite().run(RunView(name="run", tables=both))
    assert (f.severity, f.rank, f.where.step_start) == ("critical", 1, 151)


@given(st.lists(st.sampled_from([1.0, 2.0, NAN, INF, -INF]), min_size=1, max_size=60))
def test_every_non_finite_value_is_counted_once(values: list[float]) -> None:
    y = np.array(values)
    s = make_view({"train/loss": (np.arange(len(y)), y)}).series[0]
    found = hole(s)
    bad = ~np.isfinite(y)
    assert (found is None) == (not bad.any())
    if found is None:
        return
    assert found.count == bad.sum()
    assert found.inf == np.isinf(y).sum()
    assert found.first == np.flatnonzero(bad)[0]
    assert (found.tail is None) == bool(np.isfinite(y[-1]))
    assert found.longest <= found.count
    assert (found.pattern == "always") == bool(bad.all())
    assert found.sentence()


def test_infinities_at_regular_places_are_a_fault_and_no_empty_cells() -> None:
    y = loss()
    y[::2] = INF
    f = run({"train/loss": y})
    assert (f.severity, f.values["pattern"], f.values["infinite"]) == ("warning", "transient", 100)
    assert "nobody filled" not in f.title


def test_one_infinite_validation_loss_is_a_warning_and_one_nan_is_not() -> None:
    val = loss()
    val[90] = INF
    assert run({"train/loss": loss(), "eval/loss": val}).severity == "warning"
    val[90] = NAN
    assert run({"train/loss": loss(), "eval/loss": val}).severity == "info"


@pytest.mark.parametrize(
    ("bad", "severity"), [(slice(150, 200), "warning"), (slice(198, 200), "info"), (slice(3, 200), "info")]
)
def test_an_accuracy_lost_for_good_is_a_warning(bad: slice, severity: str) -> None:
    accuracy = 0.9 - 0.5 / STEP
    accuracy[bad] = NAN
    assert run({"train/loss": loss(), "val/accuracy": accuracy}).severity == severity


def test_values_that_no_sum_can_hold_count_as_infinite() -> None:
    """Every pass over values near the largest float: none breaks, and the curve is told as infinite."""
    rng = np.random.default_rng(0)
    huge = rng.uniform(-1, 1, 200) * 1.7e308
    view, faults = run_passes(
        make_view({"loss": (range(200), np.abs(huge)), "val_loss": (range(200), huge)}), build()
    )
    assert faults == []
    assert view.earlier["non-finite"][0].title.startswith("loss is infinite in all")
