"""What Lightning's CSV logger and TensorBoard logger write of one fit."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.writers.harness import Recorded, needs, plain, write

needs("lightning")

AXES = ("step", "epoch")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lightning") / "logs"
    write("lightning_fit", folder)
    return folder


def cells(path: Path) -> dict[str, list[tuple[int, float | str]]]:
    """(step, value) of each column, by the standard library; empty cells hold nothing."""
    found: dict[str, list[tuple[int, float | str]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for name, cell in row.items():
                if cell and name not in AXES:
                    found.setdefault(name, []).append((int(row["step"]), plain(float(cell))))
    return found


def test_every_cell_of_the_table_at_its_step(logs: Path) -> None:
    folder = logs / "lightning_logs" / "version_0"
    found = Recorded(folder)
    (run,) = found.runs
    expected = cells(folder / "metrics.csv")
    assert {tag: found.points(run, tag) for tag in found.tags(run) - set(AXES)} == expected
    assert expected["odd"][1:6] == [(1, 1.0), (2, "nan"), (3, 3.0), (4, "inf"), (5, 5.0)]
    assert expected["lr-SGD"] == [(0, 0.5), (4, 0.25), (8, 0.125)]
    assert expected['val/größe, "q"'] == [(3, 1.5), (7, 1.5), (11, 1.5)]
    assert [step for step, _ in expected["train_loss_epoch"]] == [3, 7, 11]
    assert found.sound()


def test_epochs_stand_beside_the_steps(logs: Path) -> None:
    found = Recorded(logs / "lightning_logs" / "version_0")
    (run,) = found.runs
    assert found.rows(run, "train_loss_step")["epoch"].to_list() == [0.0] * 4 + [1.0] * 4 + [2.0] * 4
    assert found.rows(run, "val_loss")["epoch"].to_list() == [0.0, 1.0, 2.0]


def test_both_loggers_tell_the_same(logs: Path) -> None:
    """Event files hold the values as float32; Lightning adds ``hp_metric`` and the hyper-parameters to them."""
    table, events = Recorded(logs / "lightning_logs"), Recorded(logs / "tb")
    (left,), (right,) = table.runs, events.runs
    assert events.tags(right) - table.tags(left) == {"hp_metric"}
    for tag in table.tags(left) - set(AXES):
        rounded = [
            (step, value if isinstance(value, str) else float(np.float32(value)))
            for step, value in table.points(left, tag)
        ]
        assert events.points(right, tag) == rounded, tag
    assert events.params(right) == {"lr": 0.5, "optimizer": "sgd", "layers": "(1, 2)"}
    assert events.sound()


def test_hyperparameters_beside_the_table(logs: Path) -> None:
    found = Recorded(logs / "lightning_logs" / "version_0")
    (run,) = found.runs
    assert found.params(run) == {"lr": 0.5, "optimizer": "sgd", "layers": [1, 2]}
