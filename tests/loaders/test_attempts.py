from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.runs.attempts import (
    FileSpan,
    Place,
    Within,
    mark_superseded,
    place_files,
    restarts_within,
)

S = 10**9
FRAME = {
    "tag": pl.Categorical,
    "seq": pl.Int64,
    "step": pl.Int64,
    "value": pl.Float64,
    "epoch": pl.Float64,
    "wall_ns": pl.Int64,
}


def span(
    source: int, pid: str | None, tags: str, first_s: int | None, last_s: int | None, last_step: int = 0
) -> FileSpan:
    return FileSpan(
        source=source,
        process=None if pid is None else ("host", pid),
        tags=frozenset(tags),
        first_ns=None if first_s is None else first_s * S,
        last_ns=None if last_s is None else last_s * S,
        last_step=last_step,
    )


def rows(
    *tags: Sequence[int],
    names: Sequence[str] = ("alpha", "beta"),
    value: Sequence[float] | None = None,
    epoch: Sequence[float] | None = None,
    wall_s: Sequence[float] | None = None,
) -> pl.DataFrame:
    """Rows of tags written one each in turn: ``seq`` is the row index. The other columns are those of every tag."""
    n = len(tags[0])
    moments = [(i, t) for i in range(n) for t in range(len(tags)) if i < len(tags[t])]
    table = {
        "tag": [names[t] for _, t in moments],
        "seq": list(range(len(moments))),
        "step": [tags[t][i] for i, t in moments],
        "value": [None if value is None else value[i] for i, _ in moments],
        "epoch": [None if epoch is None else epoch[i] for i, _ in moments],
        "wall_ns": [None if wall_s is None else int(wall_s[i] * S) for i, _ in moments],
    }
    return pl.DataFrame(table, schema=FRAME)


def restarts(*tags: Sequence[int]) -> list[int]:
    """Boundaries of tags that say nothing but their steps."""
    return list(restarts_within(rows(*tags)).begins)


def test_two_trainings_one_after_the_other_are_two_attempts() -> None:
    places = place_files([span(0, "1", "a", 0, 50), span(1, "2", "a", 5000, 5050)])
    assert places == {0: Place(attempt=1, rank=None), 1: Place(attempt=2, rank=None)}


def test_writers_that_overlap_are_ranks_in_order_of_pid() -> None:
    places = place_files([span(i, pid, "a", 0, 40) for i, pid in enumerate(["103", "100", "99"])])
    assert [places[i] for i in range(3)] == [Place(attempt=1, rank=r) for r in (2, 1, 0)]


def test_files_of_one_process_or_with_other_tags_are_parts_of_one_attempt() -> None:
    places = place_files([span(0, "1", "a", 0, 50), span(1, "1", "a", 51, 90), span(2, "2", "b", 10, 80)])
    assert {p.attempt for p in places.values()} == {1}
    assert {p.rank for p in places.values()} == {None}


def test_empty_files_take_no_rank_and_no_attempt() -> None:
    places = place_files(
        [span(0, "1", "", None, None), span(1, "2", "a", 0, 60), span(2, "3", "", None, None)]
    )
    assert {(p.attempt, p.rank) for p in places.values()} == {(1, None)}


def test_without_a_clock_files_follow_each_other_by_step() -> None:
    places = place_files([span(0, None, "a", None, None, 900), span(1, None, "a", None, None, 300)])
    assert (places[1].attempt, places[0].attempt) == (1, 2)


def test_order_of_files_does_not_matter() -> None:
    spans = [
        span(0, "1", "ab", 0, 50),
        span(1, "2", "a", 60, 90),
        span(2, "2", "b", 61, 90),
        span(3, "3", "a", 100, 120),
    ]
    assert place_files(spans) == place_files(spans[::-1])


def test_a_resume_walks_steps_again() -> None:
    assert restarts([*range(1, 121), *range(101, 151)]) == [120]


def test_starting_over_from_the_first_step_is_a_restart() -> None:
    assert restarts([1, 2, 3, 4, 5, 1, 2, 3, 4, 5]) == [5]


def test_relogged_steps_are_no_restart() -> None:
    assert restarts([*range(30), 0, 10, 20]) == []
    assert restarts([0, 0, 1, 2, 3]) == []


def test_rows_out_of_order_are_no_restart() -> None:
    assert restarts([1, 2, 4, 3, 5, 6]) == []


def test_tags_with_other_counters_are_not_compared() -> None:
    assert restarts([0, 1, 2, 3], [11, 23, 35, 47]) == []


def test_several_tags_fall_in_one_restart() -> None:
    a, b = [10, 20, 30, 40, 20, 30, 40, 50], [10, 20, 30, 40, 20, 30, 40, 50]
    assert restarts(a, b) == [8], "tag a falls at its fifth row, which is written first"


# -- epochs or trainings: blocks of equal length -------------------------------------------------

DECAY = [3.0, 2.0, 1.4, 1.1, 1.0]
"""What each training of five rows does."""
STEPS = [0, 1, 2, 3, 4]
EPOCHS = Within(cyclic=("loss",))
TRAININGS = Within(begins=(5, 10))


def three(**columns: Sequence[float]) -> Within:
    """Three blocks of the steps 0 to 4 of a loss."""
    return restarts_within(rows(STEPS * 3, names=["loss"], **columns))


def test_equal_blocks_about_which_nothing_is_known_are_epochs_by_guess() -> None:
    assert three() == Within(cyclic=("loss",), guessed=True)
    assert three(value=[1.0] * 15) == Within(cyclic=("loss",), guessed=True), "a flat curve says nothing"
    assert restarts(STEPS * 2) == [5], "two blocks are no rhythm"
    assert restarts([*STEPS, *STEPS[:3], *STEPS]) == [5, 8], "nor are blocks of different lengths"


def test_the_epoch_decides_first() -> None:
    assert three(epoch=[0] * 5 + [1] * 5 + [2] * 5, value=DECAY * 3) == EPOCHS
    assert three(epoch=[0, 0, 1, 1, 2] * 3, value=[0.1 * i for i in range(15)]) == TRAININGS
    assert three(epoch=[0] * 15) == Within(cyclic=("loss",), guessed=True), "one epoch says nothing"


def test_the_epoch_decides_about_two_blocks_and_about_unequal_ones() -> None:
    two = rows([*STEPS, 0, 1], names=["loss"], epoch=[0] * 5 + [1] * 2)
    assert restarts_within(two) == EPOCHS


def test_the_level_of_the_loss_tells_trainings_from_epochs() -> None:
    assert three(value=DECAY * 3) == TRAININGS
    assert (
        three(value=[3.0, 2.5, 2.1, 1.8, 1.6, 1.5, 1.4, 1.3, 1.25, 1.2, 1.16, 1.12, 1.1, 1.08, 1.06])
        == EPOCHS
    )


def test_a_score_that_rises_tells_it_as_well() -> None:
    rising = rows(STEPS * 3, names=["accuracy"], value=[0.1, 0.5, 0.7, 0.8, 0.85] * 3)
    assert restarts_within(rising) == TRAININGS


def test_a_learning_rate_that_returns_every_epoch_is_not_asked_beside_a_loss() -> None:
    """Warm restarts bring the rate back to where it was; the loss goes on."""
    loss = rows(STEPS * 3, names=["loss"], value=[2.0 - 0.1 * i for i in range(15)])
    rate = rows(STEPS * 3, names=["lr"], value=[0.1, 0.08, 0.05, 0.02, 0.01] * 3)
    both = pl.concat([loss, rate.with_columns(pl.col("seq") + 15)])
    assert restarts_within(both) == Within(cyclic=("loss", "lr"))
    assert restarts_within(rate).begins == (5, 10), "alone it is what there is"


def test_the_clock_decides_where_no_level_does() -> None:
    flat = [1.0] * 15
    steady = [10.0 * i for i in range(15)]
    pausing = [10.0 * i + 600.0 * (i // 5) for i in range(15)]
    evaluating = [10.0 * i + 30.0 * (i // 5) for i in range(15)]
    assert three(value=flat, wall_s=steady) == EPOCHS
    assert three(value=flat, wall_s=pausing) == TRAININGS
    assert three(value=flat, wall_s=evaluating) == Within(cyclic=("loss",), guessed=True), (
        "an evaluation of half a minute may be either"
    )


def test_what_runs_on_through_all_blocks_makes_them_epochs() -> None:
    loss = rows(STEPS * 3, names=["loss"], value=DECAY * 3)
    counted = rows(range(15), names=["tokens"], value=[100.0 * i for i in range(15)])
    assert restarts_within(pl.concat([loss, counted])) == EPOCHS
    by_epoch = rows([0, 1, 2], names=["val_loss"], value=[2.0, 1.5, 1.0]).with_columns(
        seq=pl.Series([4, 9, 14])
    )
    assert restarts_within(pl.concat([loss, by_epoch])) == EPOCHS, "its steps never fall"


def test_going_on_from_a_checkpoint_is_a_restart_whatever_runs_on() -> None:
    """Validations before and after a resume may lie at steps that never fall."""
    loss = rows([*range(1, 121), *range(101, 151)], names=["loss"])
    counted = rows(
        [*range(1, 121), *range(101, 151)], names=["step"], value=[*range(1, 121), *range(101, 151)]
    )
    checked = rows([50, 100, 150], names=["val_loss"]).with_columns(seq=pl.Series([50, 100, 169]))
    assert restarts_within(pl.concat([loss, counted, checked])) == Within(begins=(120,))


def test_what_falls_back_with_the_step_makes_them_trainings() -> None:
    loss = rows(STEPS * 3, names=["loss"], value=[2.0 - 0.1 * i for i in range(15)])
    elapsed = rows(STEPS * 3, names=["elapsed_time"], value=[10.0, 20.0, 30.0, 40.0, 50.0] * 3)
    assert restarts_within(pl.concat([loss, elapsed])) == Within(begins=(5, 10))


def test_a_step_logged_as_a_metric_is_no_witness_of_itself() -> None:
    loss = rows(STEPS * 3, names=["loss"], value=[2.0 - 0.1 * i for i in range(15)])
    itself = rows(STEPS * 3, names=["step"], value=[float(s) for s in STEPS * 3])
    assert restarts_within(pl.concat([loss, itself])) == EPOCHS


@given(st.integers(3, 6), st.integers(3, 40), st.floats(0.3, 0.9))
def test_a_decay_written_whole_or_in_pieces_is_always_told_apart(n: int, length: int, rate: float) -> None:
    """The same smooth loss: once more in every block, or going on through all of them."""
    steps = list(range(length)) * n
    again = [1 + 8 * rate ** (i % length) for i in range(n * length)]
    going_on = [1 + 8 * rate ** (i / n) for i in range(n * length)]
    assert len(restarts_within(rows(steps, names=["loss"], value=again)).begins) == n - 1
    assert restarts_within(rows(steps, names=["loss"], value=going_on)).begins == ()


@pytest.mark.parametrize("name", ["log.csv", "train.log"])
def test_three_trainings_appended_to_one_file_are_three_attempts(tmp_path: Path, name: str) -> None:
    line = "{0},{1}\n" if name == "log.csv" else "step {0} loss {1}\n"
    body = "".join(
        line.format(step, value) for _ in range(3) for step, value in zip(STEPS, DECAY, strict=True)
    )
    (tmp_path / name).write_text(("step,loss\n" if name == "log.csv" else "") + body)
    (run,) = inventory(collect([tmp_path]))["runs"]
    (loss,) = [m for m in run["metrics"] if m["tag"] == "loss"]
    assert (run["attempts"], loss["points"], loss["superseded"], loss["last_step"]) == (3, 5, 10, 4)
    assert run["notes"] == []


def test_epochs_by_guess_are_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n" + "".join(f"{step},1.0\n" for step in STEPS * 3))
    (run,) = inventory(collect([tmp_path]))["runs"]
    (loss,) = [m for m in run["metrics"] if m["tag"] == "loss"]
    assert (run["attempts"], loss["points"], loss["superseded"], loss["last_step"]) == (1, 15, 0, None)
    assert "nothing says whether the blocks are epochs or trainings" in run["notes"][0]


def frame(attempt: list[int], step: list[int | None], tag: str = "a") -> pl.DataFrame:
    n = len(step)
    return pl.DataFrame(
        {"rank": [None] * n, "tag": [tag] * n, "attempt": attempt, "seq": list(range(n)), "step": step},
        schema={
            "rank": pl.Int32,
            "tag": pl.Categorical,
            "attempt": pl.Int32,
            "seq": pl.Int64,
            "step": pl.Int64,
        },
    )


def superseded(rows: pl.DataFrame) -> list[bool]:
    return mark_superseded(rows, pl.Series([True] * len(rows), dtype=pl.Boolean)).to_list()


def test_a_later_attempt_supersedes_from_its_first_step_on() -> None:
    assert superseded(frame([1, 1, 1, 2, 2], [10, 20, 30, 20, 25])) == [False, True, True, False, False]


def test_also_past_the_point_where_the_later_attempt_ended() -> None:
    assert superseded(frame([1, 1, 1, 1, 2], [10, 20, 30, 40, 20])) == [False, True, True, True, False]


def test_the_last_write_of_a_step_wins() -> None:
    assert superseded(frame([1, 1, 1, 1], [0, 1, 2, 1])) == [False, True, False, False]


def test_rows_without_a_step_are_never_superseded() -> None:
    assert superseded(frame([1, 1, 2], [None, None, None])) == [False, False, False]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 20)), max_size=60))
def test_what_survives_never_repeats_a_step_and_attempts_only_move_on(pairs: list[tuple[int, int]]) -> None:
    pairs = sorted(pairs, key=lambda p: p[0])
    rows = frame([a for a, _ in pairs], [s for _, s in pairs])
    gone = superseded(rows)
    kept = rows.filter(~pl.Series(gone, dtype=pl.Boolean)).sort("step")
    assert len(kept) + sum(gone) == len(pairs)
    assert kept["step"].is_unique().all()
    assert kept["attempt"].is_sorted(), "a later attempt holds all steps from its first one on"
