"""Whether a run did what it was started for: plans, ends, and histories that begin late."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.curves.goal import EPOCH_KEYS, STEP_KEYS, goals
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.incomplete import Incomplete
from afterrun.analyzer.view import RunView
from afterrun.loaders.schema import SCHEMAS
from tests.support.tables import make_view


def view_of(last: int, every: int = 1, *, first: int | None = None, **options: object) -> RunView:
    steps = np.arange(every if first is None else first, last + 1, every)
    params = {k: json.dumps(v) for k, v in options.pop("params", {}).items()}  # type: ignore[attr-defined]  # a mapping
    return make_view({"train/loss": (steps, 1.0 + 1.0 / (steps + 1))}, params=params, **options)


def finished(view: RunView, step: int) -> RunView:
    mark = {
        "run": ["run"], "source": ["made"], "attempt": [1], "rank": [None], "t_ns": [None], "step": [step],
        "line": [None], "kind": ["finish"], "text": ["done"],
    }  # fmt: skip
    return RunView(name="run", tables=view.tables.with_(marks=pl.DataFrame(mark, schema=SCHEMAS["marks"])))


def with_epochs(view: RunView, epochs: list[float]) -> RunView:
    frame = view.tables.metrics.with_columns(epoch=pl.Series(epochs, dtype=pl.Float64))
    return RunView(name="run", tables=view.tables.with_(metrics=frame))


def run(view: RunView) -> Finding:
    (finding,) = Incomplete().run(view)
    return finding


def test_a_log_that_ends_at_41_of_100_is_not_finished() -> None:
    f = run(view_of(41, params={"train_iters": 100}))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert (f.values["reached"], f.values["planned"], f.values["unit"]) == (41.0, 100.0, "steps")
    assert f.effect is not None
    assert f.effect.value == pytest.approx(59.0)
    assert f.where.step_start == 41
    assert f.title == "Not finished: 41 of 100 steps (59 % missing), and no record of the end."


@pytest.mark.parametrize(
    ("last", "every", "planned", "met"),
    [
        (100, 1, 100, True),
        (99, 1, 100, False),
        (990, 30, 1000, True),  # the next record would lie past the end
        (960, 30, 1000, False),
        (975, 25, 1000, False),
        (2000, 10, 1000, True),
    ],
)
def test_one_recording_interval_may_be_missing_at_the_end(
    last: int, every: int, planned: int, *, met: bool
) -> None:
    assert (run(view_of(last, every, params={"max_steps": planned})).status == "refuted") is met


def test_counting_from_zero_ends_one_earlier() -> None:
    assert run(view_of(99, first=0, params={"max_steps": 100})).status == "refuted"


def test_the_state_file_knows_the_step_exactly() -> None:
    assert run(view_of(990, 30, params={"max_steps": 1000, "global_step": 1000})).status == "refuted"
    f = run(view_of(990, 30, params={"max_steps": 1000, "global_step": 995}))
    assert (f.status, f.values["reached"]) == ("confirmed", 995.0)


def test_an_end_record_before_the_plan_is_what_early_stopping_looks_like() -> None:
    f = run(finished(view_of(700, 10, params={"max_steps": 1000}), 700))
    assert (f.status, f.severity) == ("possible", "info")
    assert "early stopping" in f.title


def test_a_failure_is_named() -> None:
    f = run(view_of(40, params={"max_steps": 100}, outcome="oom"))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert "(oom)" in f.title
    unplanned = run(view_of(40, outcome="killed"))
    assert (unplanned.status, unplanned.severity) == ("possible", "info")


def test_the_state_of_a_checkpoint_says_nothing_of_the_run() -> None:
    view = view_of(500, 10, params={"max_steps": 1000})
    path = view.tables.sources.with_columns(path=pl.lit("out/checkpoint-500/trainer_state.json"))
    f = run(RunView(name="run", tables=view.tables.with_(sources=path)))
    assert (f.status, f.severity, f.values["checkpoint_only"]) == ("possible", "info", True)


def test_a_running_run_is_not_incomplete() -> None:
    f = run(view_of(41, params={"max_steps": 100}, outcome="running"))
    assert f.status == "abstained"
    assert "still being written" in f.missing[0]


def test_without_a_plan_and_without_an_end_nothing_is_said() -> None:
    f = run(view_of(41))
    assert f.status == "abstained"
    assert len(f.missing) == 2
    assert run(finished(view_of(41), 41)).status == "refuted"


@pytest.mark.parametrize("value", [0, -1, "auto", None, True, float("nan"), [3]])
def test_a_plan_that_is_not_set_is_no_plan(value: object) -> None:
    assert run(view_of(41, params={"max_steps": value})).status == "abstained"


@pytest.mark.parametrize("key", [*STEP_KEYS, "args.max_steps", "Trainer.Max-Steps"])
def test_names_of_planned_steps(key: str) -> None:
    (goal,) = goals(view := view_of(41, params={key: 100}), view.train_loss)
    assert (goal.key, goal.unit, goal.planned, goal.reached) == (key, "steps", 100.0, 41.0)


@pytest.mark.parametrize("key", EPOCH_KEYS)
def test_names_of_planned_epochs(key: str) -> None:
    view = with_epochs(view_of(6, params={key: 3}), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    (goal,) = goals(view, view.train_loss)
    assert (goal.unit, goal.planned, goal.reached, goal.met) == ("epochs", 3.0, 3.0, True)


@pytest.mark.parametrize(
    ("epochs", "planned", "met"),
    [
        ([0.0, 1.0, 2.0], 3, True),
        ([1.0, 2.0, 3.0], 3, True),
        ([1.0, 2.0], 3, False),
        ([0.0, 1.0], 3, False),
        ([0.98, 1.96, 2.94], 3, True),
        ([0.98, 1.96], 3, False),
    ],
)
def test_epochs_from_zero_from_one_and_in_fractions(epochs: list[float], planned: int, *, met: bool) -> None:
    view = with_epochs(view_of(len(epochs), params={"epochs": planned}), epochs)
    assert (run(view).status == "refuted") is met


def test_a_step_of_one_an_epoch_is_the_epoch() -> None:
    assert run(view_of(20, params={"epochs": 20})).status == "refuted"
    assert run(view_of(12, params={"epochs": 20})).status == "confirmed"


def test_epochs_are_not_judged_by_batches() -> None:
    assert run(view_of(5000, 50, params={"epochs": 20})).status == "abstained"


def test_one_plan_that_is_met_is_enough() -> None:
    view = with_epochs(view_of(3, params={"epochs": 3, "max_steps": 90_000}), [1.0, 2.0, 3.0])
    f = run(view)
    assert f.status == "refuted"
    assert "3 of 3 epochs" in f.title


def test_a_run_that_never_wrote_a_metric_is_a_failed_start() -> None:
    view = view_of(5)
    empty = view.tables.sources.with_columns(
        status=pl.lit("empty", dtype=pl.Categorical),
        path=pl.lit("events.out.tfevents.1"),
        format=pl.lit("tensorboard"),
    )
    tables = view.tables.with_(metrics=view.tables.metrics.clear(), sources=empty)
    f = run(RunView(name="run", tables=tables))
    assert (f.status, f.severity) == ("confirmed", "warning")
    assert f.title == "No metric was ever written: events.out.tfevents.1 holds no value."
    images = tables.with_(sources=empty.with_columns(note=pl.lit("12 images skipped")))
    assert run(RunView(name="run", tables=images)).status == "abstained"
    trace = tables.with_(sources=empty.with_columns(format=pl.lit("xplane"), path=pl.lit("local.xplane.pb")))
    assert run(RunView(name="run", tables=trace)).status == "abstained"
    unread = tables.with_(sources=empty.with_columns(status=pl.lit("unreadable", dtype=pl.Categorical)))
    assert run(RunView(name="run", tables=unread)).status == "abstained"


def test_a_history_that_begins_late_is_noted() -> None:
    view = with_epochs(view_of(5900, 100, first=3500), [float(e) for e in range(35, 60)])
    f = run(view)
    assert (f.status, f.severity, f.where.step_start) == ("possible", "info", 3500)
    assert "begins at step 3,500 (epoch 35)" in f.title
    assert "recorded part only" in f.title


@pytest.mark.parametrize(("first", "every"), [(0, 100), (100, 100), (400, 100), (1, 1)])
def test_a_usual_first_record_is_not_late(first: int, every: int) -> None:
    assert run(view_of(first + 50 * every, every, first=first)).status == "abstained"


def test_a_late_history_and_an_early_end_are_two_findings() -> None:
    found = list(Incomplete().run(view_of(5900, 100, first=3500, params={"max_steps": 9000})))
    assert [(f.status, f.where.step_start) for f in found] == [("possible", 3500), ("confirmed", 5900)]


def test_max_steps_of_the_trainer_overrides_its_epochs() -> None:
    steps = list(range(100, 1100, 100))
    epochs = [0.003 * s for s in steps]
    for planned, status in ((1000, "refuted"), (4000, "confirmed")):
        params = {"max_steps": planned, "num_train_epochs": 3}
        view = with_epochs(view_of(1000, 100, first=100, params=params), epochs)
        assert run(view).status == status
