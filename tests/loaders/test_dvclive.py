"""DVCLive: a table a metric below the folder of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import CORPUS, claimed, needs_corpus, write


def runs(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = inventory(collect([root]))["runs"]
    return found


def live(root: Path) -> Path:
    write(root, "step\ttrain/loss\n0\t2.0\n1\t1.5\n2\t1.25\n", "plots/metrics/train/loss.tsv")
    write(root, "step\tacc\n0\t0.1\n2\t0.5\n", "plots/metrics/train/acc.tsv")
    write(root, "step\tepoch\n0\t0\n1\t0\n1\t1\n", "plots/metrics/epoch.tsv")
    write(root, '{"train": {"loss": 1.25}, "best": NaN, "step": 2}', "metrics.json")
    write(root, "lr: 0.1\n", "params.yaml")
    return root


def test_tables_of_one_folder_are_one_run(tmp_path: Path) -> None:
    live(tmp_path / "exp" / "dvclive")
    (run,) = runs(tmp_path)
    assert (run["run"], run["grouped_by"], run["attempts"]) == ("exp/dvclive", "dvclive layout", 1)
    found = {m["tag"]: (m["points"], m["superseded"], m["last_step"], m["last"]) for m in run["metrics"]}
    assert found == {
        "train/loss": (3, 0, 2, 1.25),
        "train/acc": (2, 0, 2, 0.5),
        "epoch": (2, 1, 1, 1.0),
    }
    assert run["params"] == {
        "summary.train.loss": 1.25,
        "summary.best": "NaN",
        "summary.step": 2,
        "lr": 0.1,
    }
    assert {s["path"].rpartition("/")[2]: s["format"] for s in run["sources"]} == {
        "loss.tsv": "dvclive",
        "acc.tsv": "dvclive",
        "epoch.tsv": "dvclive",
        "metrics.json": "dvclive-summary",
        "params.yaml": "dvclive-params",
    }


def test_one_table_alone_is_called_by_its_path(tmp_path: Path) -> None:
    (run,) = runs(live(tmp_path / "dvclive") / "plots" / "metrics" / "train" / "acc.tsv")
    assert [m["tag"] for m in run["metrics"]] == ["train/acc"]


def test_timestamps_are_the_clock(tmp_path: Path) -> None:
    write(
        tmp_path,
        "timestamp\tstep\tloss\n1700000000000\t0\t2.0\n1700000001000\t1\t1.5\n",
        "plots/metrics/loss.tsv",
    )
    metrics = collect([tmp_path]).tables.metrics
    assert metrics.select("tag", "step", "wall_ns").rows() == [
        ("loss", 0, 1_700_000_000 * 10**9),
        ("loss", 1, 1_700_000_001 * 10**9),
    ]


def test_damage_costs_a_row_or_the_summary(tmp_path: Path) -> None:
    write(tmp_path, "step\tloss\n0\t2.0\n1\toops\n2\t1.0\n", "plots/metrics/loss.tsv")
    write(tmp_path, '{"loss": 1.', "metrics.json")
    (run,) = runs(tmp_path)
    told = {s["format"]: (s["status"], s["damaged"]) for s in run["sources"]}
    assert told == {"dvclive": ("partial", 1), "dvclive-summary": ("unreadable", 1)}
    assert run["metrics"][0]["points"] == 2


def test_other_tables_and_summaries_are_left_alone(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, "step\tloss\n0\t2.0\n", "logs/loss.tsv")) == "csv"
    assert claimed(write(tmp_path, '{\n "acc": 0.5\n}', "metrics.json")) is None


@pytest.mark.corpus
@needs_corpus
def test_a_real_folder() -> None:
    (run,) = runs(CORPUS / "curves/csv/dvclive-tsv")
    found = {m["tag"]: (m["points"], m["last_step"], m["last"]) for m in run["metrics"]}
    assert found == {
        "train/loss": (1653, 1652, 1.219946265220642),
        "train/accuracy": (1653, 1652, pytest.approx(0.9658451080322266)),
    }
    assert run["params"]["summary.train.loss"] == 1.219946265220642
