"""One run as the passes see it: picking curves, pairs, the clock, what it cost."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.view import RunView
from afterrun.loaders.names import Name
from tests.support.tables import make_tables, make_view

STEPS = list(range(1, 11))
LOSS = [10.0 / s for s in STEPS]


def test_series_stand_in_order_of_first_appearance() -> None:
    view = make_view({"train/loss": (STEPS, LOSS), "eval/loss": ([5, 10], [3.0, 2.0])})
    assert [(s.tag, len(s), s.split) for s in view.series] == [
        ("train/loss", 10, "train"),
        ("eval/loss", 2, "val"),
    ]


def test_train_loss_is_the_loss_of_the_training_split() -> None:
    view = make_view({"eval/loss": ([5, 10], [3.0, 2.0]), "train/loss": (STEPS, LOSS)})
    assert view.train_loss is not None
    assert view.train_loss.tag == "train/loss"


def test_a_loss_without_a_finite_value_is_not_picked() -> None:
    view = make_view({"train/loss": (STEPS, [math.nan] * 10), "train/box_loss": (STEPS, LOSS)})
    assert view.train_loss is not None
    assert view.train_loss.tag == "train/box_loss"
    assert make_view({"val_loss": (STEPS, [math.nan] * 10)}).pick("loss", "val") is None


def test_pick_takes_the_curve_with_the_most_points_and_the_first_split_that_has_one() -> None:
    view = make_view({"train/loss_epoch": ([5, 10], [3.0, 2.0]), "train/loss_step": (STEPS, LOSS)})
    picked = view.pick("loss", "test", "train")
    assert picked is not None
    assert picked.tag == "train/loss_step"
    assert view.pick("accuracy") is None


def test_only_the_lowest_rank_leads() -> None:
    tables = make_tables({"train/loss": (STEPS, LOSS)})
    both = pl.concat([tables.metrics.with_columns(rank=pl.lit(r, dtype=pl.Int32)) for r in (1, 0)])
    view = RunView(name="run", tables=tables.with_(metrics=both))
    assert [s.rank for s in view.series] == [1, 0]
    assert [s.rank for s in view.lead] == [0]


def test_axis_tags_are_no_curves() -> None:
    view = make_view({"epoch": (STEPS, [0.1 * s for s in STEPS]), "train/loss": (STEPS, LOSS)})
    assert [s.tag for s in view.lead] == ["epoch", "train/loss"]
    assert [s.tag for s in view.curves] == ["train/loss"]


def test_overrides_give_the_direction() -> None:
    view = replace(
        make_view({"dev/xyz": (STEPS, LOSS)}), overrides={"dev/xyz": Name("xyz", "val", "", "max", "quality")}
    )
    assert view.series[0].better == "max"


def test_pairs_given_by_the_user_come_first() -> None:
    curves = {"a": (STEPS, LOSS), "b": (STEPS, LOSS), "train/loss": (STEPS, LOSS), "val/loss": (STEPS, LOSS)}
    view = replace(make_view(curves), pairs_given=(("a", "b"), ("a", "nowhere")))
    assert [(p.train.tag, p.val.tag) for p in view.pairs] == [("a", "b"), ("train/loss", "val/loss")]


def test_pairs_on_one_axis_and_on_two() -> None:
    view = make_view({"train/loss": (STEPS, LOSS), "val/loss": ([2, 6, 10], [3.0, 2.0, 1.0])})
    assert view.pairs[0].same_axis
    other = make_view(
        {"train/loss": ([100 * s for s in STEPS], LOSS), "val/loss": ([1, 2, 3], [3.0, 2.0, 1.0])}
    )
    assert not other.pairs[0].same_axis


def test_map_hint_proposes_the_unnamed_curve_that_sounds_like_the_metric() -> None:
    view = make_view({"dev/lossy's": (STEPS[:3], LOSS[:3]), "lossy": (STEPS, LOSS), "zorp": (STEPS, LOSS)})
    assert view.map_hint("loss", "val") == "--map 'dev/lossy'\"'\"'s=loss:val'"
    assert view.map_hint("loss", "train") == "--map 'lossy=loss:train'"


@pytest.mark.parametrize("tag", ["max_mem", "l", "skipped", "step_avg", "frac", "explained_variance"])
def test_map_hint_proposes_no_curve_of_something_else(tag: str) -> None:
    assert make_view({tag: (STEPS, LOSS)}).map_hint("loss", "val") == "--map 'TAG=loss:val'"
    view = make_view({tag: (STEPS, LOSS), "zorp": (STEPS, LOSS)})
    assert view.map_hint("loss", "train") == "--map 'TAG=loss:train'"


def test_map_hint_proposes_the_only_curve_as_the_training_one() -> None:
    view = make_view({"zorp": (STEPS, LOSS), "epoch": (STEPS, LOSS)})
    assert view.map_hint("loss", "train") == "--map 'zorp=loss:train'"
    assert make_view({"lr": (STEPS, LOSS)}).map_hint("loss", "train") == "--map 'TAG=loss:train'"


def test_cost_is_wall_clock_times_devices() -> None:
    walls = {"train/loss": [100.0 + 2.0 * s for s in STEPS]}
    view = make_view({"train/loss": (STEPS, LOSS)}, wall_s=walls, devices=8)
    assert view.wall_s_between(3, 7) == pytest.approx(8.0)
    assert view.gpu_s_between(3, 7) == pytest.approx(64.0)
    # beyond the record there is nothing to bill
    assert view.wall_s_between(9, 99) == pytest.approx(2.0)


def test_cost_is_null_where_clock_or_devices_are_not_recorded() -> None:
    assert make_view({"train/loss": (STEPS, LOSS)}, devices=8).gpu_s_between(1, 5) is None
    walls = {"train/loss": [float(s) for s in STEPS]}
    view = make_view({"train/loss": (STEPS, LOSS)}, wall_s=walls)
    assert view.wall_s_between(1, 5) == pytest.approx(4.0)
    assert view.gpu_s_between(1, 5) is None


def test_superseded_rows_do_not_stretch_the_clock() -> None:
    view = make_view(
        {"train/loss": ([1, 2, 3, 2, 3], [5.0, 4.0, 3.0, 4.0, 3.0])},
        wall_s={"train/loss": [0.0, 1.0, 2.0, 10.0, 11.0]},
        superseded={"train/loss": [False, True, True, False, False]},
        attempt={"train/loss": [1, 1, 1, 2, 2]},
        devices=1,
    )
    assert view.gpu_s_between(2, 3) == pytest.approx(1.0)


def test_parameters_of_the_latest_attempt_win() -> None:
    tables = make_tables({"train/loss": (STEPS, LOSS)}, params={"max_steps": "200", "seed": "1"})
    first = tables.params.with_columns(attempt=pl.lit(2, dtype=pl.Int32))
    second = tables.params.filter(pl.col("key") == "max_steps").with_columns(value=pl.lit("100"))
    view = RunView(name="run", tables=tables.with_(params=pl.concat([first, second])))
    assert view.params == {"max_steps": "200", "seed": "1"}


def test_with_earlier_adds_findings_and_keeps_what_was_built() -> None:
    view = make_view({"train/loss": (STEPS, LOSS)})
    built, loss = view.series, view.train_loss
    finding = Finding(code="spike", status="refuted", severity="info", run="run", title="None.")
    after = view.with_earlier([finding]).with_earlier([finding])
    assert after.earlier == {"spike": (finding, finding)}
    assert view.earlier == {}
    assert after.series is built
    assert after.train_loss is loss


def test_outcome_and_devices_without_a_run_row() -> None:
    tables = make_tables({"train/loss": (STEPS, LOSS)})
    view = RunView(name="run", tables=tables.with_(runs=tables.runs.clear()))
    assert view.outcome == "unknown"
    assert view.devices is None
