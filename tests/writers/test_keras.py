"""What Keras' CSV logger and its progress lines say of a fit; the backend is PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.writers.harness import Recorded, needs, plain, write

needs("keras", "torch")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keras") / "logs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "torch")
        ended = write("keras_fit", folder)
    (folder / "stdout.txt").write_text(ended.stdout, encoding="utf-8")
    return folder


def test_a_fit_continued_with_append(logs: Path) -> None:
    """The history that ``fit`` returns is the truth; the epoch, counted from 0, is the step."""
    found = Recorded(logs / "training.log")
    (run,) = found.runs
    history = json.loads((logs / "history.truth").read_text(encoding="utf-8"))
    assert len(history) == 8
    for tag, values in history.items():
        assert found.points(run, tag) == [(epoch, plain(value)) for epoch, value in enumerate(values)], tag
    assert found.points(run, "odd") == [(0, "nan"), (1, "inf"), (2, "-inf"), (3, "nan"), (4, "inf")]
    assert found.tags(run) == {*history, "epoch"}
    assert found.collection.runs[run].attempts == 1
    assert found.sound()


def test_another_separator(logs: Path) -> None:
    found = Recorded(logs / "semicolon.csv")
    (run,) = found.runs
    assert found.points(run, "learning_rate") == [(0, 0.25), (1, 0.5)]
    assert [step for step, _ in found.points(run, 'val_top "k", ü')] == [0, 1]
    assert found.sound()


def test_columns_of_a_validation_that_was_left_out_hold_nothing(logs: Path) -> None:
    """The model was validated before, so Keras writes the columns and ``NA`` in them."""
    assert "NA" in (logs / "alone.csv").read_text(encoding="utf-8")
    found = Recorded(logs / "alone.csv")
    (run,) = found.runs
    assert found.points(run, "learning_rate") == [(0, 0.25), (1, 0.5)]
    assert not [tag for tag in found.tags(run) if tag.startswith("val_")]


def test_progress_lines(logs: Path) -> None:
    """Printed with four digits; the bars count epochs from 1."""
    found = Recorded(logs / "stdout.txt")
    (run,) = found.runs
    history = json.loads((logs / "history.truth").read_text(encoding="utf-8"))
    for tag in ("loss", "val_loss", "accuracy", "learning_rate"):
        printed = [(epoch, round(value, 4)) for epoch, value in enumerate(history[tag], 1)]
        assert found.points(run, tag) == [(s, pytest.approx(v, abs=1e-9)) for s, v in printed], tag
    assert found.points(run, "odd")[:3] == [(1, "nan"), (2, "inf"), (3, "-inf")]
    assert found.outcome(run) == "finished"
