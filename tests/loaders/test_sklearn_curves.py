"""Learning curves of scikit-learn as tables and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import Read, claimed, load_claimed, write


def load(folder: Path, text: str, name: str = "learning_curve.csv") -> Read:
    found, read = load_claimed(write(folder, text, name))
    assert found == "sklearn-learning-curve"
    return read


def band(read: Read, tag: str) -> list[tuple[float | None, float | None]]:
    rows = read.metrics.filter(read.metrics["tag"] == tag)
    return list(rows.select("low", "high").rows())


@pytest.mark.parametrize(
    ("size", "train", "test"),
    [
        ("train_size", "train_score", "test_score"),
        ("train_sizes", "train_scores_mean", "test_scores_mean"),
        ("train_sizes_abs", "mean_train_score", "mean_test_score"),
        ("training_examples", "train_mean", "val_mean"),
        ("Train Size", "Train Score", "CV Score"),
    ],
)
def test_spellings(tmp_path: Path, size: str, train: str, test: str) -> None:
    read = load(tmp_path, f"{size},{train},{test}\n10,1.0,0.5\n20,0.95,0.6\n40,0.9,0.7\n")
    assert read.points(train) == [(10, 1.0), (20, 0.95), (40, 0.9)]
    assert read.points(test) == [(10, 0.5), (20, 0.6), (40, 0.7)]


def test_a_standard_deviation_is_the_band_of_its_mean(tmp_path: Path) -> None:
    head = "train_size,train_score_mean,train_score_std,test_score_mean,test_score_std"
    read = load(tmp_path, f"{head}\n10,1.0,0.0,0.5,0.25\n20,0.75,0.25,0.625,0.125\n")
    assert band(read, "train_score_mean") == [(1.0, 1.0), (0.5, 1.0)]
    assert band(read, "test_score_mean") == [(0.25, 0.75), (0.5, 0.75)]
    assert band(read, "test_score_std") == [(None, None), (None, None)]


def test_folds_get_a_mean_with_its_band(tmp_path: Path) -> None:
    read = load(tmp_path, "train_size,test_score_0,test_score_1\n10,0.25,0.75\n20,0.5,1.0\n")
    assert read.points("test_score") == [(10, 0.5), (20, 0.75)]
    assert band(read, "test_score") == [(0.25, 0.75), (0.5, 1.0)]
    assert read.points("test_score_1") == [(10, 0.75), (20, 1.0)]
    assert "computed from folds: test_score" in read.notes


def test_the_arrays_of_the_function_as_json(tmp_path: Path) -> None:
    value: dict[str, Any] = {
        "estimator": "SVC",
        "train_sizes": [10, 20],
        "train_scores": [[1.0, 0.5], [0.5, 0.5]],
        "test_scores": [[0.25, 0.75], [float("nan"), 0.5]],
    }
    for indent in (None, 2):
        read = load(tmp_path, json.dumps(value, indent=indent), "curve.json")
        assert read.points("train_scores") == [(10, 0.75), (20, 0.5)]
        assert read.points("train_scores[1]") == [(10, 0.5), (20, 0.5)]
        assert [str(v) for v in read.values("test_scores")] == ["0.5", "nan"]


def test_an_epoch_or_other_scores_make_it_something_else(tmp_path: Path) -> None:
    assert (
        claimed(write(tmp_path, "epoch,train_size,train_score\n1,10,0.5\n2,10,0.6\n"))
        != "sklearn-learning-curve"
    )
    assert claimed(write(tmp_path, "train_size,price\n10,0.5\n20,0.6\n")) is None
    assert claimed(write(tmp_path, "mean_test_score,param_C\n0.5,1\n0.6,2\n")) != "sklearn-learning-curve"


def test_damage(tmp_path: Path) -> None:
    read = load(
        tmp_path, "train_size,train_score,test_score\n10,1.0,0.5\n20,oops,0.6\n30,0.9,0.7,0.8\n40,0.9,0.75\n"
    )
    assert read.points("train_score") == [(10, 1.0), (40, 0.9)]
    assert read.points("test_score") == [(10, 0.5), (20, 0.6), (40, 0.75)]
    assert read.damaged == 2
    write(tmp_path, '{"train_sizes": [1, 2], "test_scores": [[0.5', "cut/curve.json")
    (run,) = inventory(collect([tmp_path / "cut"]))["runs"]
    assert [(s["status"], s["note"]) for s in run["sources"]] == [
        ("unreadable", "curve.json: the JSON is damaged")
    ]
