"""Restarts: which work was done twice, how long the run stood still, and what is no restart."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.curves.restarts import restarts
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.restart import RestartPass
from afterrun.analyzer.view import RunView
from tests.support.tables import make_view


def attempts(
    *ranges: tuple[int, int],
    wall_s: list[float] | None = None,
    devices: int | None = None,
    scale: float = 1.0,
) -> RunView:
    """A loss of 1 + 10 / step; each attempt walks its range, values of later ones multiplied by ``scale``."""
    steps = [s for a, b in ranges for s in range(a, b + 1)]
    number = [i + 1 for i, (a, b) in enumerate(ranges) for _ in range(a, b + 1)]
    starts = [a for a, _ in ranges]
    superseded = [any(s >= start for start in starts[n:]) for s, n in zip(steps, number, strict=True)]
    values = [(1.0 + 10.0 / (s + 1)) * scale ** (n - 1) for s, n in zip(steps, number, strict=True)]
    return make_view(
        {"train/loss": (steps, values)},
        attempt={"train/loss": number},
        superseded={"train/loss": superseded},
        wall_s={"train/loss": wall_s} if wall_s else None,
        devices=devices,
    )


def run(view: RunView) -> Finding:
    (finding,) = RestartPass().run(view)
    return finding


def test_a_resume_from_a_checkpoint_loses_the_steps_since() -> None:
    # steps 1..120 at 1 s each, an hour of nothing, then 101..150
    wall = [float(s) for s in range(1, 121)] + [3720.0 + s for s in range(50)]
    f = run(attempts((1, 120), (101, 150), wall_s=wall, devices=4))
    assert (f.status, f.severity, f.attempt) == ("confirmed", "warning", 2)
    assert (f.where.step_start, f.where.step_end) == (101, 120)
    assert (f.values["steps_redone"], f.values["rows_redone"]) == (20, 20)
    assert f.values["lost_s"] == pytest.approx(20.0)
    assert f.wasted_gpu_s == pytest.approx(80.0)
    assert f.values["downtime_s"] == pytest.approx(3600.0)
    assert "20 steps in all were done twice" in f.title
    assert (f.evidence[0].step, f.evidence[0].source) == (101, "made")


def test_a_resume_that_goes_on_cleanly_is_information() -> None:
    f = run(attempts((1, 100), (101, 150)))
    assert (f.status, f.severity) == ("confirmed", "info")
    assert (f.values["steps_redone"], f.values["rows_redone"]) == (0, 0)
    assert f.where.step_start == 101
    assert "no step done twice" in f.title


def test_the_checkpoint_row_logged_again_is_no_lost_work() -> None:
    f = run(attempts((1, 100), (100, 150)))
    assert (f.severity, f.values["rows_redone"]) == ("info", 1)


def test_several_restarts_add_up_and_no_row_is_lost_twice() -> None:
    f = run(attempts((1, 100), (81, 100), (81, 160), (151, 200)))
    assert [r["rows_redone"] for r in f.values["restarts"]] == [20, 20, 10]
    assert f.values["rows_redone"] == 50
    assert f.values["attempts"] == 4
    assert f.where.step_start == 81


def test_two_trainings_in_one_folder() -> None:
    f = run(attempts((0, 49), (0, 49), scale=2.0))
    assert (f.status, f.severity) == ("possible", "warning")
    assert f.where.step_start == 0
    assert "second training in the same folder" in f.title
    assert f.values["restarts"][0]["from_the_beginning"] is True
    assert f.values["restarts"][0]["curve_shift_pct"] == pytest.approx(100.0)


def test_a_curve_that_shifts_at_the_resume_is_named() -> None:
    f = run(attempts((1, 120), (101, 150), scale=1.3))
    assert f.values["restarts"][0]["curve_shift_pct"] == pytest.approx(30.0)
    assert any("attempt 2 restored" in a and "30 %" in a for a in f.advice)


def test_missing_steps_between_attempts_are_told() -> None:
    f = run(attempts((1, 100), (141, 200)))
    assert f.values["restarts"][0]["steps_unrecorded"] == 40
    assert any("missing log" in a for a in f.advice)


def test_cost_is_null_without_a_clock() -> None:
    f = run(attempts((1, 120), (101, 150), devices=4))
    assert (f.wasted_gpu_s, f.values["lost_s"], f.values["downtime_s"]) == (None, None, None)


def test_one_attempt_is_refuted() -> None:
    f = run(attempts((1, 50)))
    assert f.status == "refuted"
    assert f.title == "One attempt: train/loss goes from step 1 to 50 without a step back."


def test_a_value_logged_twice_is_no_restart() -> None:
    steps = [*range(11), 10, *range(11, 21), 20]
    superseded = [i in (10, 21) for i in range(len(steps))]
    view = make_view({"t": (steps, np.arange(float(len(steps))))}, superseded={"t": superseded})
    assert run(view).status == "refuted"


def test_tags_that_count_differently_are_no_restart() -> None:
    view = make_view(
        {"train_loss": ([0, 1, 2, 3], [2.3, 2.2, 2.1, 2.0]), "train_acc_epoch": ([11, 23], [0.31, 0.44])}
    )
    assert run(view).status == "refuted"


def test_ranks_are_no_restart() -> None:
    view = make_view({"train/loss": (range(40), np.ones(40))})  # type: ignore[dict-item]  # a range is a sequence
    ranks = [view.tables.metrics.with_columns(rank=pl.lit(r, dtype=pl.Int32)) for r in range(4)]
    assert run(RunView(name="run", tables=view.tables.with_(metrics=pl.concat(ranks)))).status == "refuted"


def test_without_steps_a_rewind_cannot_be_seen() -> None:
    view = make_view({"train/loss": (range(80), np.ones(80))})  # type: ignore[dict-item]  # a range is a sequence
    frame = view.tables.metrics.with_columns(step=pl.lit(None, dtype=pl.Int64))
    f = run(RunView(name="run", tables=view.tables.with_(metrics=frame)))
    assert (f.status, f.missing) == ("abstained", ("a step beside each value",))


def test_attempts_without_steps_are_still_told() -> None:
    view = attempts((1, 50), (51, 90))
    frame = view.tables.metrics.with_columns(step=pl.lit(None, dtype=pl.Int64))
    f = run(RunView(name="run", tables=view.tables.with_(metrics=frame)))
    assert (f.status, f.severity, f.where.step_start) == ("confirmed", "info", None)
    assert "lost work is not known" in f.title


def test_a_curve_that_stands_in_two_formats_was_not_trained_twice() -> None:
    view = attempts((1, 100), (91, 150))
    events = view.tables.metrics
    state = events.filter(~pl.col("superseded")).with_columns(
        source=pl.lit("trainer_state.json", dtype=pl.Categorical),
        attempt=pl.lit(1, dtype=pl.Int32),
        superseded=pl.lit(value=True),
    )
    sources = view.tables.sources
    other = sources.with_columns(
        source=pl.lit("trainer_state.json", dtype=pl.Categorical),
        format=pl.lit("hf-trainer", dtype=pl.Categorical),
    )
    tables = view.tables.with_(metrics=pl.concat([state, events]), sources=pl.concat([sources, other]))
    f = run(RunView(name="run", tables=tables))
    assert (f.values["rows_redone"], f.values["restarts"][0]["reached_step"]) == (10, 100)


def test_no_curve_abstains() -> None:
    view = attempts((1, 50))
    f = run(RunView(name="run", tables=view.tables.with_(metrics=view.tables.metrics.clear())))
    assert f.status == "abstained"


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=5))
def test_kept_and_redone_rows_add_up(spans: list[tuple[int, int]]) -> None:
    view = attempts(*((a, a + n) for a, n in spans))
    s = view.train_loss
    assert s is not None
    found = restarts(view, s)
    assert len(found) == len(spans) - 1
    assert len(s) + sum(r.rows_redone for r in found) == len(s.frame)
    assert s.superseded == sum(r.rows_redone for r in found)
