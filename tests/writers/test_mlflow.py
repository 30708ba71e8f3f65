"""What MLflow writes into its two stores that need no server: files and SQLite. Both are to read the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.writers.harness import Recorded, needs, write

needs("mlflow")

NAMES = ["parent ü", "child", "failed", "deleted", "killed", "open", "model"]


class Store(Recorded):
    """Runs by the name that MLflow gave them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        named = {run: self.params(run).get("mlflow.runName", run) for run in self.runs}
        self.by_name = {name: run for run, name in named.items()}


@pytest.fixture(scope="module", params=["files", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("mlflow") / "logs"
    write("mlflow_runs", folder, request.param)
    return Store(folder)


def test_one_run_for_each_run(store: Store) -> None:
    assert sorted(store.by_name) == sorted(NAMES)
    assert len(store.runs) == len(NAMES)
    assert store.sound()


def test_metrics_with_steps_and_times(store: Store) -> None:
    run = store.by_name["parent ü"]
    assert store.points(run, "train/loss") == [
        (0, 1.0), (1, 0.5), (2, "nan"), (3, "inf"), (4, "-inf"), (5, 0.125), (6, 0.0625),
    ]  # fmt: skip
    assert store.times_ns(run, "train/loss")[:6] == [(1700000000123 + i * 1000) * 10**6 for i in range(6)]
    assert store.points(run, "val/acc") == [(-3, 0.9)]
    assert store.points(run, "large") == [(-3, 1e300)]
    assert store.points(run, "with blank") == [(-3, -1.5)]
    assert store.points(run, "plain") == [(None, 3.0), (None, 4.0)], "a step that stands still is none"
    assert store.points(store.by_name["child"], "loss") == [(1, 2.0)]


def test_parameters_keep_their_names(store: Store) -> None:
    params = store.params(store.by_name["parent ü"])
    assert {key: value for key, value in params.items() if not key.startswith("mlflow.")} == {
        "lr": "0.1", "optimizer/name": "adam", "layers": "[1, 2]", "größe": 'λ: "q"', "empty": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("parent ü", "finished"), ("failed", "crashed"), ("killed", "killed"), ("child", "finished")],
)
def test_how_runs_ended(store: Store, name: str, outcome: str) -> None:
    assert store.outcome(store.by_name[name]) == outcome


def test_a_run_left_open_has_no_end(store: Store) -> None:
    run = store.by_name["open"]
    assert [kind for kind, _, _ in store.marks(run)] == ["start"]
    assert store.outcome(run) in ("unknown", "running")


def test_a_deleted_run_is_said_to_be_deleted(store: Store) -> None:
    assert "deleted in MLflow" in store.notes(store.by_name["deleted"])


def test_metrics_of_a_logged_model_count_once(store: Store) -> None:
    assert store.points(store.by_name["model"], "val/mse") == [(1, 0.25)]


def test_system_metrics_are_counters(store: Store) -> None:
    run = store.by_name["parent ü"]
    assert store.points(run, "system/system_memory_usage_percentage") == []
    used = store.tables.samples.filter(
        (pl.col("run") == run) & (pl.col("counter").cast(pl.String) == "host_mem_used_pct")
    )
    assert len(used) > 0
    assert all(0 < value < 100 for value in used["value"])
    assert used["t_ns"].null_count() == 0
    tags = store.tables.metrics.filter(pl.col("run") == run)["tag"].cast(pl.String)
    assert [tag for tag in tags.unique() if tag.startswith("system/")] == []
