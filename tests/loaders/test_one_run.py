"""The same training in several sources: one curve each, nothing lost, contradictions told."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from afterrun.loaders.joining.conflicts import Conflict, from_marks
from afterrun.loaders.names import Name
from afterrun.loaders.runs.assemble import Assembled, assemble
from afterrun.loaders.runs.placing import Loaded
from tests.support.sources import source_file

LOSS = [2.34567, 1.98765, 1.54321, 1.23459, 1.11111, 0.98762]
STEPS = [10, 20, 30, 40, 50, 60]
Rows = list[tuple[str, int | None, float]]


def line(tag: str, values: Sequence[float] = LOSS, steps: Sequence[int | None] = STEPS) -> Rows:
    return list(zip([tag] * len(values), steps, values, strict=True))


def rounded(values: Sequence[float] = LOSS, decimals: int = 4) -> list[float]:
    return [round(v, decimals) for v in values]


def build(*files: Loaded, **overrides: Name) -> Assembled:
    return assemble("run", files, overrides)


def kept(a: Assembled) -> dict[str, list[tuple[int | None, float]]]:
    """Surviving points (step, value) of each tag that has any."""
    alive = a.tables.metrics.filter(~pl.col("superseded"))
    parts = alive.partition_by("tag", as_dict=True, maintain_order=True)
    return {str(k[0]): list(zip(p["step"], p["value"], strict=True)) for k, p in parts.items()}


def column(a: Assembled, tag: str, name: str, source: str) -> list[object]:
    rows = a.tables.metrics.filter((pl.col("tag") == tag) & (pl.col("source") == f"run/{source}"))
    return rows[name].to_list()


# -- other names --------------------------------------------------------------------------------------


def test_other_names_for_the_same_values_are_one_curve() -> None:
    a = build(
        source_file(
            "hf-trainer", [*line("loss"), ("eval_loss", 30, 1.7654321), ("eval_loss", 60, 1.5432109)]
        ),
        source_file(
            "tensorboard",
            [*line("train/loss"), ("eval/loss", 30, 1.7654321), ("eval/loss", 60, 1.5432109)],
            wall_s=range(8),
        ),
    )
    assert kept(a) == {
        "train/loss": list(zip(STEPS, LOSS, strict=True)),
        "eval/loss": [(30, 1.7654321), (60, 1.5432109)],
    }
    assert a.tables.metrics["superseded"].sum() == 8
    assert a.notes == (
        "values of eval_loss, loss (hf-trainer) are those of eval/loss, train/loss (tensorboard): counted once",
    )


def test_a_rounded_copy_gives_way_to_the_exact_one() -> None:
    a = build(
        source_file("lightning-csv", line("train_loss")),
        source_file("text-log", line("loss", rounded()), wall_s=range(6)),
    )
    assert kept(a) == {"train_loss": list(zip(STEPS, LOSS, strict=True))}


def test_many_more_points_outweigh_some_digits() -> None:
    every = [round(2 - i / 70, 4) for i in range(60)]
    a = build(
        source_file("wandb", line("train/loss", [2 - i / 70 for i in range(0, 60, 10)], range(0, 60, 10))),
        source_file("text-log", line("loss", every, range(60))),
    )
    assert list(kept(a)) == ["loss"]
    assert len(kept(a)["loss"]) == 60


def test_other_values_are_another_curve() -> None:
    a = build(
        source_file("wandb", line("train/loss", [v + 0.3 for v in LOSS])),
        source_file(
            "text-log", [*line("train loss", rounded([v + 0.3 for v in LOSS])), *line("loss", rounded())]
        ),
    )
    assert list(kept(a)) == ["train/loss", "loss"]
    assert from_marks(a.tables.marks) == []


def test_other_splits_are_never_joined() -> None:
    a = build(source_file("csv", line("train_loss")), source_file("tensorboard", line("val/loss")))
    assert set(kept(a)) == {"train_loss", "val/loss"}


def test_two_tags_of_one_source_stay_two() -> None:
    a = build(source_file("csv", [*line("train_loss"), *line("train_loss_step")]))
    assert set(kept(a)) == {"train_loss", "train_loss_step"}


def test_metrics_without_a_known_name_are_joined_by_their_words() -> None:
    a = build(
        source_file("hf-trainer", line("eval_frobnication")),
        source_file("tensorboard", line("eval/frobnication"), wall_s=range(6)),
    )
    assert list(kept(a)) == ["eval/frobnication"]


def test_meanings_given_by_the_user_count() -> None:
    files = (source_file("csv", line("obj")), source_file("tensorboard", line("train/loss"), wall_s=range(6)))
    assert set(kept(build(*files))) == {"obj", "train/loss"}
    assert set(kept(build(*files, obj=Name("loss", "train", "", "min", "loss")))) == {"train/loss"}


def test_three_sources_leave_one_curve() -> None:
    a = build(
        source_file("hf-trainer", line("loss")),
        source_file("tensorboard", line("train/loss"), wall_s=range(6)),
        source_file("text-log", line("train loss", rounded())),
    )
    assert list(kept(a)) == ["train/loss"]
    assert a.tables.metrics["superseded"].sum() == 12


def test_the_training_curve_keeps_its_split_beside_a_held_out_one() -> None:
    a = build(
        source_file(
            "hf-trainer", [*line("loss"), ("eval_loss", 30, 1.7654321), ("eval_loss", 60, 1.5432109)]
        ),
        source_file("text-log", line("train loss", rounded())),
    )
    splits = dict(a.tables.metrics.filter(~pl.col("superseded")).select("tag", "split").unique().iter_rows())
    assert splits == {"loss": "train", "eval_loss": "val"}


def test_ranks_are_not_views_of_one_another() -> None:
    a = build(
        source_file("csv", line("train_loss"), rank=0),
        source_file("tensorboard", line("train/loss"), rank=1),
    )
    assert set(kept(a)) == {"train_loss", "train/loss"}


def test_what_has_no_rank_is_the_log_of_the_lowest_one() -> None:
    a = build(
        source_file("csv", line("train_loss"), rank=0, name="run/rank0.csv"),
        source_file("csv", line("train_loss", [v + 0.5 for v in LOSS]), rank=1, name="run/rank1.csv"),
        source_file("text-log", line("loss", rounded())),
    )
    assert kept(a).keys() == {"train_loss"}


# -- axes ---------------------------------------------------------------------------------------------


def test_lines_without_a_step_take_it_from_the_exact_curve() -> None:
    epochs = [s / 50 for s in STEPS]
    both = [row for v in rounded() for row in (("loss", None, v), ("lr_scale", None, 10 * v))]
    a = build(
        source_file("hf-trainer", line("loss"), epochs=epochs),
        source_file("text-log", both, epochs=[e for e in epochs for _ in (0, 1)]),
    )
    assert kept(a)["loss"] == list(zip(STEPS, LOSS, strict=True))
    assert [step for step, _ in kept(a)["lr_scale"]] == STEPS
    assert column(a, "loss", "step", "text-log") == STEPS
    assert a.notes[-1] == "run/text-log: steps of 12 of 12 values taken from hf-trainer"


def test_lines_that_may_lie_at_several_steps_have_none() -> None:
    again = [1.25, 1.5] * 6
    a = build(
        source_file("csv", line("train_loss", again, range(12))),
        source_file("text-log", line("train loss", again[:4], [None] * 4)),
    )
    assert column(a, "train loss", "step", "text-log") == [None] * 4
    assert set(kept(a)) == {"train_loss", "train loss"}


def test_the_middle_of_a_log_finds_its_place() -> None:
    a = build(
        source_file("csv", line("train_loss")),
        source_file("text-log", line("train loss", rounded()[1:5], [None] * 4)),
    )
    assert column(a, "train loss", "step", "text-log") == [20, 30, 40, 50]


def test_epochs_counted_from_one_and_from_nought_are_the_same_epochs() -> None:
    a = build(
        source_file("keras-csv", line("loss", LOSS, range(6))),
        source_file("text-log", line("train loss", rounded(), range(1, 7))),
    )
    assert list(kept(a)) == ["loss"]
    assert from_marks(a.tables.marks) == []


def test_clocks_and_epochs_are_lent_to_the_curve_that_stays() -> None:
    a = build(
        source_file("csv", line("train_loss"), epochs=[s / 60 for s in STEPS]),
        source_file("text-log", line("train loss", rounded()), wall_s=[100.0 + s for s in STEPS]),
    )
    assert column(a, "train_loss", "wall_ns", "csv") == [(100 + s) * 10**9 for s in STEPS]
    assert column(a, "train_loss", "epoch", "csv") == [s / 60 for s in STEPS]


def test_a_view_that_goes_on_is_told() -> None:
    a = build(
        source_file("hf-trainer", line("loss", LOSS[:4], STEPS[:4])),
        source_file("text-log", line("loss", rounded(), [None] * 6)),
    )
    assert kept(a) == {"loss": list(zip(STEPS[:4], LOSS[:4], strict=True))}
    assert "loss (text-log) goes on for 2 points behind the end of loss (hf-trainer)" in a.notes


# -- attempts -----------------------------------------------------------------------------------------


def test_a_record_of_the_first_attempt_is_a_view_of_the_log_that_goes_on() -> None:
    second = [v / 3 for v in LOSS]
    a = build(
        source_file("hf-trainer", line("loss")),
        source_file("csv", [*line("train_loss", rounded()), *line("train_loss", rounded(second))]),
    )
    assert a.attempts == 2
    assert kept(a) == {"train_loss": list(zip(STEPS, rounded(second), strict=True))}


def test_disjoint_steps_of_two_formats_are_not_put_together() -> None:
    a = build(
        source_file("csv", line("train_loss")),
        source_file("tensorboard", line("train/loss", [0.9, 0.8, 0.7], [70, 80, 90])),
    )
    assert {tag: len(points) for tag, points in kept(a).items()} == {"train_loss": 6, "train/loss": 3}


# -- copies -------------------------------------------------------------------------------------------


def test_streams_that_were_both_given_all_count_once() -> None:
    a = build(
        source_file("text-log", line("loss", rounded(), [None] * 6), name="job.out", job="job"),
        source_file("text-log", line("loss", rounded(), [None] * 6), name="job.err", job="job"),
    )
    assert a.attempts == 1
    assert len(kept(a)["loss"]) == 6


def test_streams_of_one_job_are_one_attempt() -> None:
    a = build(
        source_file("text-log", line("loss", rounded()), name="job.out", job="job"),
        source_file(
            "text-log", [*line("loss", rounded()[:2], STEPS[:2]), *line("lr")], name="job.err", job="job"
        ),
    )
    assert a.attempts == 1
    assert len(kept(a)["loss"]) == 6
    assert a.tables.metrics["superseded"].sum() == 2


# -- contradictions -----------------------------------------------------------------------------------


def test_two_values_at_one_step_are_a_conflict_and_both_stay() -> None:
    wrong = [*rounded()[:2], *[round(v * 1.5, 4) for v in LOSS[2:]]]
    a = build(
        source_file("hf-trainer", line("eval_loss")), source_file("tensorboard", line("eval/loss", wrong))
    )
    assert {tag: len(points) for tag, points in kept(a).items()} == {"eval_loss": 6, "eval/loss": 6}
    (found,) = from_marks(a.tables.marks)
    assert found == Conflict(
        tag="eval_loss",
        source="run/hf-trainer",
        value=1.54321,
        other_tag="eval/loss",
        other_source="run/tensorboard",
        other_value=2.3148,
        step=30,
        rank=None,
        shared=6,
        differing=4,
    )
    assert a.notes == (
        "eval_loss and eval/loss of run/hf-trainer and run/tensorboard differ at 4 of 6 shared steps, first at step 30: 1.54321 and 2.3148",
    )
    assert a.tables.marks["step"].to_list() == [30]


def test_one_tag_with_two_values_is_one_curve_and_a_conflict() -> None:
    a = build(
        source_file("csv", line("loss")),
        source_file("tensorboard", line("loss", [v + 1 for v in LOSS]), wall_s=range(6)),
    )
    assert len(kept(a)["loss"]) == 6
    assert [(c.shared, c.differing) for c in from_marks(a.tables.marks)] == [(6, 6)]


def test_a_single_value_that_differs_is_told() -> None:
    values = [round(2 - i / 70, 4) for i in range(20)]
    a = build(
        source_file("csv", line("train_loss", values, range(20))),
        source_file("tensorboard", line("train/loss", [*values[:7], 9.0, *values[8:]], range(20))),
    )
    assert len(kept(a)) == 1
    assert [(c.step, c.shared, c.differing) for c in from_marks(a.tables.marks)] == [(7, 20, 1)]


def test_no_conflict_where_the_source_has_two_curves_of_that_name() -> None:
    a = build(
        source_file("wandb", line("loss")),
        source_file(
            "text-log",
            [*line("train_loss", [v + 1 for v in LOSS]), *line("train loss", [v + 2 for v in LOSS])],
        ),
    )
    assert from_marks(a.tables.marks) == []


def test_no_conflict_between_steps_and_epochs() -> None:
    steps = list(range(0, 600, 10))
    a = build(
        source_file("tensorboard", line("train/loss", [2 - i / 70 for i in range(60)], steps)),
        source_file("text-log", line("train_loss", [1.5, 1.4, 1.3, 1.2], [10, 20, 30, 40])),
    )
    assert from_marks(a.tables.marks) == []


def test_two_measurements_of_speed_are_no_conflict() -> None:
    a = build(
        source_file("csv", line("samples_per_second")),
        source_file("tensorboard", line("samples_per_second", [v + 1 for v in LOSS])),
    )
    assert from_marks(a.tables.marks) == []


# -- whatever comes -----------------------------------------------------------------------------------

FORMATS = ("csv", "hf-trainer", "tensorboard", "text-log", "wandb")
TAGS = ("loss", "train/loss", "eval_loss", "val/loss", "lr", "learning_rate", "epoch", "what")


@st.composite
def files(draw: st.DrawFn) -> list[Loaded]:
    """Sources of one training, each with some of its points, rounded, under some name, now and then wrong."""
    n = draw(st.integers(1, 25))
    truth = draw(st.lists(st.floats(0.001, 100) | st.just(math.nan), min_size=n, max_size=n))
    made = []
    for i, kind in enumerate(draw(st.lists(st.sampled_from(FORMATS), min_size=1, max_size=4))):
        rows: Rows = []
        for tag in draw(st.lists(st.sampled_from(TAGS), min_size=1, max_size=3)):
            stepless = draw(st.booleans())
            decimals = draw(st.sampled_from([1, 3, 4, 12]))
            picked = draw(st.lists(st.integers(0, n - 1), max_size=n))
            picked = picked if draw(st.booleans()) else sorted(set(picked))
            shift = draw(st.sampled_from([0.0, 0.0, 1.0]))
            rows += [(tag, None if stepless else k, round(truth[k] + shift, decimals)) for k in picked]
        damaged = draw(st.integers(0, 2))
        made.append(source_file(kind, rows, name=f"run/{i}-{kind}", damaged=damaged))
    return made


@settings(max_examples=150)
@given(files())
def test_nothing_is_lost_and_every_curve_survives_somewhere(made: list[Loaded]) -> None:
    a = build(*made)
    metrics, sources = a.tables.metrics, a.tables.sources
    for loaded in made:
        mine = metrics.filter(pl.col("source") == loaded.name)
        read = loaded.table("metrics")
        assert mine["superseded"].sum() + (~mine["superseded"]).sum() == len(read)
        assert mine["value"].fill_nan(-1.0).sort().to_list() == read["value"].fill_nan(-1.0).sort().to_list()
    assert sources["rows"].sum() == len(metrics)
    assert sources["damaged"].sum() == sum(loaded.damaged for loaded in made)
    # a tag may be told by another one, but something of every kind of metric is left
    named = metrics.with_columns(pl.col("metric").cast(pl.String).fill_null(pl.col("tag").cast(pl.String)))
    assert set(named["metric"]) == set(named.filter(~pl.col("superseded"))["metric"])
    # no two formats tell one tag
    alive = metrics.filter(~pl.col("superseded")).join(
        pl.DataFrame({"source": sources["source"], "format": sources["format"]}), on="source"
    )
    assert (alive.group_by("tag").agg(pl.col("format").n_unique())["format"] <= 1).all()
