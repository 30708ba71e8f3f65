from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.attempts import FileSpan, Place, mark_superseded, place_files, restarts_within

S = 10**9


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


def restarts(*tags: list[int]) -> list[int]:
    """Boundaries of tags written one row each in turn: seq is the row index."""
    rows = sorted(
        (i * len(tags) + t, t, step) for t, steps in enumerate(tags) for i, step in enumerate(steps)
    )
    seq, tag, step = (np.array(c, dtype=np.int64) for c in zip(*rows, strict=True))
    return restarts_within(tag, seq, step)[0]


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


def test_a_batch_index_that_begins_again_every_epoch_is_no_restart() -> None:
    steps = np.tile(np.arange(50), 4)
    begins, cyclic = restarts_within(np.zeros(200, dtype=np.int64), np.arange(200), steps)
    assert begins == []
    assert cyclic == {0}


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
