"""Real files of W&B against values that other readers computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.loaders.formats.curves.wandb_binary import Wandb
from tests.support import wandb
from tests.support.loading import CORPUS, claimed, corpus_records, load_claimed, needs_corpus

pytestmark = [pytest.mark.corpus, needs_corpus]

RECORDS = [r for r in corpus_records("wandb", "sidecar") if "/wandb/" in r["path"]]


def of(*suffixes: str) -> list[Any]:
    return [pytest.param(r, id=r["path"][-60:]) for r in RECORDS if r["path"].endswith(suffixes)]


def place(record: dict[str, Any]) -> Path:
    return CORPUS / str(record["path"])


@pytest.mark.parametrize("record", of(".wandb"))
def test_binary(record: dict[str, Any]) -> None:
    truth = record["truth"]
    format_name, result = load_claimed(place(record))
    assert format_name == "wandb"
    assert result.damaged == 0
    types = truth["value_types"]
    numbers = types.get("float", 0) + types.get("int", 0) + types.get("nonfinite", 0)
    assert len(result.metrics) == numbers
    assert max(result.values("_step"), default=None) == truth["last_step"]
    for key, last in truth["final"].items():
        assert result.values(key)[-1] == pytest.approx(last, rel=1e-12)
    if "run_id" in truth:
        assert result.params["wandb.run_id"] == truth["run_id"]
        assert result.params["wandb.project"] == truth["project"]
        assert len(result.params) >= 2
    ended = "exit" in truth["records"]
    assert ended == (result.marks["kind"].cast(pl.String).is_in(["finish", "crash", "stop"])).any()
    samplings = wandb.table(Wandb(), place(record), "samples")
    assert (len(samplings) > 0) == ("stats" in truth["records"])


@pytest.mark.parametrize("record", of("wandb-summary.json"))
def test_summary(record: dict[str, Any]) -> None:
    format_name, result = load_claimed(place(record))
    assert format_name == "wandb-summary"
    told = {k for k in record["truth"]["keys"] if k != "_wandb"}
    skipped = {name for note in result.notes for name in note.rpartition(": ")[2].split(", ")}
    assert told - skipped <= {k.removeprefix("summary.") for k in result.params}
    assert sum(str(v) == "nan" for v in result.params.values()) == record["truth"]["NaN"]
    assert result.damaged == 0


@pytest.mark.parametrize("record", of("config.yaml"))
def test_configuration(record: dict[str, Any]) -> None:
    format_name, result = load_claimed(place(record))
    assert format_name == "wandb-config"
    keys = {x.partition(":")[0] for x in place(record).read_text().splitlines() if x and x[0] not in " -#"}
    assert set(result.params) == keys - {"_wandb", "wandb_version"}
    assert (result.damaged, result.notes) == (0, ())


@pytest.mark.parametrize("record", of("wandb_export.csv", "wandb_results.csv"))
def test_exports(record: dict[str, Any]) -> None:
    format_name, result = load_claimed(place(record))
    truth, case = record["truth"], record["case"]
    assert result.damaged == 0
    if "runs-table" in case:
        assert format_name == "wandb-runs-table"
        assert len(result.metrics) == 0
        assert sum(k.endswith(".State") for k in result.params) == truth["rows"]
        return
    if "history" in case:
        assert format_name == "wandb-history-csv"
        assert len(result.metrics) == truth["rows"] * truth["cols"] - truth["empty_cells"]
        steps = result.values("_step")
        assert [steps[0], steps[-1]] == truth["_step_first_last"]
        for column, last in truth["last"].items():
            assert result.values(column)[-1] == pytest.approx(last, rel=1e-12)
        return
    assert format_name == "wandb-panel-csv"
    cells = truth["rows"] * (truth["cols"] - 1) - truth["empty_cells"]
    curves = result.metrics.filter(pl.col("low").is_not_null())
    assert 3 * len(curves) == cells
    assert curves.filter(~pl.col("value").is_between("low", "high")).is_empty()


def test_parquet() -> None:
    (record,) = (r for r in RECORDS if r["path"].endswith(".parquet"))
    format_name, result = load_claimed(place(record))
    assert format_name == "wandb-parquet"
    assert len(result.values("Mean budget")) == record["truth"]["rows"]


def test_nothing_else_is_taken() -> None:
    """Of the whole corpus, only what W&B wrote is claimed for it."""
    known = {r["path"] for r in RECORDS}
    taken = [
        path.relative_to(CORPUS).as_posix()
        for path in sorted(CORPUS.rglob("*"))
        if path.is_file() and str(claimed(path)).startswith("wandb")
    ]
    assert set(taken) <= known
    left = {p for p in known if p not in taken}
    assert all(p.endswith(("output.log", "loss_log.txt", "training_records/metrics.csv")) for p in left)
