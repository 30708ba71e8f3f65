"""The scores that scikit-learn's ``learning_curve`` returns, saved in the three ways that are read."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from tests.writers.harness import Recorded, write

Scores = dict[str, list[list[float]]]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("sklearn") / "logs"
    write("learning_curve", folder)
    return folder


@pytest.fixture(scope="module")
def arrays(logs: Path) -> Scores:
    read: Scores = json.loads((logs / "arrays" / "curve.json").read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("part", ["train", "test"])
def test_means_with_the_band_of_their_deviation(logs: Path, arrays: Scores, part: str) -> None:
    found = Recorded(logs / "means")
    (run,) = found.runs
    scores = arrays[f"{part}_scores"]
    rows = found.rows(run, f"{part}_score_mean")
    assert rows["step"].to_list() == arrays["train_sizes"]
    assert rows["value"].to_list() == pytest.approx([fmean(s) for s in scores], rel=1e-12)
    assert rows["low"].to_list() == pytest.approx([fmean(s) - pstdev(s) for s in scores], rel=1e-9)
    assert rows["high"].to_list() == pytest.approx([fmean(s) + pstdev(s) for s in scores], rel=1e-9)
    assert found.sound()


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize(("form", "name"), [("folds", "{}_score_{}"), ("arrays", "{}_scores[{}]")])
def test_every_fold(logs: Path, arrays: Scores, part: str, form: str, name: str) -> None:
    found = Recorded(logs / form)
    (run,) = found.runs
    scores = arrays[f"{part}_scores"]
    for fold in range(4):
        expected = zip(arrays["train_sizes"], [s[fold] for s in scores], strict=True)
        assert found.points(run, name.format(part, fold)) == list(expected)
    mean = name.format(part, 0).replace("_0", "").replace("[0]", "")
    assert [v for _, v in found.points(run, mean)] == pytest.approx([fmean(s) for s in scores])
    assert found.sound()
