"""What DVCLive writes: a table a metric, the last values, the parameters; continued by a second process."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.writers.harness import Recorded, needs, write

needs("dvclive")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder: Path = tmp_path_factory.mktemp("dvclive") / "logs"
    for attempt in ("first", "again"):
        write("dvclive_live", folder, attempt)
    return Recorded(folder)


def test_metrics(found: Recorded) -> None:
    (run,) = found.runs
    assert run == "live"
    assert found.points(run, "loss") == [
        (0, 1.0), (1, 0.5), (2, "nan"), (3, "inf"), (4, 0.125), (5, 9.0), (6, 10.0),
    ]  # fmt: skip
    assert found.points(run, "train/loss/a") == [(i, i * 0.5) for i in range(5)]
    assert found.points(run, "val/größe λ") == [(i, 1 / 3) for i in range(5)]
    assert found.points(run, "sparse") == [(1, 1.0), (3, 3.0)]
    assert found.tags(run) == {"loss", "train/loss/a", "val/größe λ", "sparse"}
    assert found.sound()


def test_times_where_they_were_asked_for(found: Recorded) -> None:
    (run,) = found.runs
    times = found.times_ns(run, "sparse")
    assert all(0 < time.time_ns() - t < 3600 * 10**9 for t in times if t is not None)
    assert times == sorted(times, key=lambda t: t or 0)
    assert found.times_ns(run, "loss") == [None] * 7


def test_last_values(found: Recorded) -> None:
    (run,) = found.runs
    assert {k: v for k, v in found.params(run).items() if k.startswith("summary.")} == {
        "summary.loss": 10.0, "summary.train.loss.a": 2.0, "summary.val.größe λ": 1 / 3, "summary.sparse": 3,
        "summary.step": 6, "summary.final": 3, "summary.extra.deep.x": 1,
    }  # fmt: skip


def test_parameters(found: Recorded) -> None:
    (run,) = found.runs
    assert {k: v for k, v in found.params(run).items() if not k.startswith("summary.")} == {
        "lr": 0.1, "optimizer.name": "adam", "optimizer.betas": [0.9, 0.99], "größe": "λ", "amp": True,
    }  # fmt: skip
