"""What a Hugging Face Trainer leaves behind: state, event files and stdout; crashed, then resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.writers.harness import Ended, Recorded, needs, write

needs("transformers", "accelerate", "torch")

AXES = ("step", "epoch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("trainer") / "logs"
    return folder


@pytest.fixture(scope="module")
def crashed(folder: Path) -> tuple[Ended, Recorded]:
    ended = write("hf_trainer", folder, "crash", fails=True)
    (folder / "train.log").write_text(ended.stdout + ended.stderr, encoding="utf-8")
    return ended, Recorded(folder)


@pytest.fixture(scope="module")
def resumed(crashed: tuple[Ended, Recorded], folder: Path) -> tuple[Ended, Recorded]:
    (folder / "train.log").unlink()
    return write("hf_trainer", folder, "resume"), Recorded(folder)


def history(path: Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) of each key of ``log_history``."""
    found: dict[str, list[tuple[int, float]]] = {}
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["log_history"]
    for row in rows:
        for key, value in row.items():
            found.setdefault(key, []).append((row["step"], float(value)))
    return found


def test_a_crash_is_not_a_finish(crashed: tuple[Ended, Recorded]) -> None:
    """Where tokens are counted, rows in the middle of training have ``train_runtime`` as the last one has."""
    ended, found = crashed
    assert ended.code == 1
    assert "train_runtime" in ended.stdout
    assert found.outcome("out") in ("unknown", "running")
    assert not [mark for mark in found.marks("out") if mark[0] == "finish"]
    (log,) = (run for run in found.runs if "text-log" in found.tables.of_run(run).runs["formats"][0])
    assert found.outcome(log) == "crashed"
    assert "finish" not in {kind for kind, _, _ in found.marks(log)}


def test_the_state_of_the_resumed_run(resumed: tuple[Ended, Recorded], folder: Path) -> None:
    _, found = resumed
    truth = history(folder / "out" / "trainer_state.json")
    assert {"loss", "grad_norm", "eval_near_loss", "eval_fär_loss", "train_loss"} <= set(truth)
    for tag in set(truth) - set(AXES):
        last = dict(truth[tag])  # rows of two data sets evaluated at one step repeat the tokens seen
        assert sorted(found.points("out", tag)) == sorted(last.items()), tag
    losses = found.rows("out", "loss").filter(~found.rows("out", "loss")["superseded"])
    assert losses["step"].to_list() == [2, 4, 6, 8, 10, 12, 14]
    assert losses["epoch"].to_list() == pytest.approx([step / 5 for step in losses["step"]])
    assert losses["tokens"].to_list() == [step * 16 for step in losses["step"]]
    params = found.params("out")
    assert {k: params[k] for k in ("max_steps", "num_train_epochs", "train_batch_size")} == {
        "max_steps": 15, "num_train_epochs": 3, "train_batch_size": 2,
    }  # fmt: skip
    assert found.outcome("out") == "finished"


def test_event_files_of_both_attempts(resumed: tuple[Ended, Recorded], folder: Path) -> None:
    """The second process goes on at step 10; what the first wrote past it is lost work."""
    found = Recorded(folder / "out" / "runs" / "events")
    (run,) = found.runs
    assert found.collection.runs[run].attempts == 2
    truth = history(folder / "out" / "trainer_state.json")
    for tag, key in (("train/loss", "loss"), ("train/learning_rate", "learning_rate")):
        assert found.points(run, tag) == [(s, float(np.float32(v))) for s, v in truth[key]], tag
    again = found.rows(run, "train/loss").filter(found.rows(run, "train/loss")["superseded"])
    assert again.select("attempt", "step").rows() == [(1, 12)]
    assert "text/args/text_summary" in found.params(run)
    assert found.sound()


def test_printed_dictionaries(resumed: tuple[Ended, Recorded], folder: Path, tmp_path: Path) -> None:
    """Printed with four digits, strings from transformers 5 on; they name the epoch and no step."""
    ended, _ = resumed
    (tmp_path / "train.log").write_text(ended.stdout, encoding="utf-8")
    found = Recorded(tmp_path / "train.log")
    (run,) = found.runs
    truth = [(s, v) for s, v in history(folder / "out" / "trainer_state.json")["loss"] if s > 10]
    rows = found.rows(run, "loss")
    assert rows["value"].to_list() == [pytest.approx(value, rel=1e-3) for _, value in truth]
    assert rows["epoch"].to_list() == [step / 5 for step, _ in truth]
    assert rows["step"].null_count() == 2
    assert [kind for kind, _, _ in found.marks(run)] == ["finish"]
    assert found.outcome(run) == "finished"
