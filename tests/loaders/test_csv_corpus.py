"""Real files against values computed by other readers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from afterrun.loaders.registry import HEAD_BYTES, loaders
from tests.support.loading import CORPUS, claimed, corpus_records, load_claimed, needs_corpus

pytestmark = [pytest.mark.corpus, needs_corpus]

NO_TABLE = ("/not-a-csv/", "/lfs-pointer/", "log.txt", ".json")
OURS = {"csv", "chainer-csv", "keras-csv", "lightning-csv", "sb3-monitor", "sb3-progress", "ultralytics-csv"}


def _records() -> list[Any]:
    return [pytest.param(r, id=r["path"][-60:]) for r in corpus_records("csv") if "dvclive" not in r["path"]]


@pytest.mark.parametrize("record", _records())
def test_every_value_of_a_real_log(record: dict[str, Any]) -> None:
    path, truth = CORPUS / record["path"], record["truth"]
    if any(x in record["path"] for x in NO_TABLE):
        assert claimed(path) not in OURS
        return
    format_name, result = load_claimed(path)
    assert format_name in OURS
    assert result.damaged == 0
    for column in truth["columns"]:
        assert column.strip() in result.tags() or truth["empty_cells"]
    if format_name != "chainer-csv":  # its blank cells count as text there
        assert len(result.metrics) == truth["rows"] * truth["cols"] - truth["empty_cells"]
    for column, last in truth["last"].items():
        assert result.values(column.strip())[-1] == pytest.approx(last, rel=1e-12)
    best = truth.get("best_val")
    if best:
        values = result.values(best["col"].strip())
        assert len(values) == best["n"]
        assert min(values) == pytest.approx(best["min"], rel=1e-12)
        assert values[-1] == pytest.approx(best["final"], rel=1e-12)
    if "step_first_last" in truth:
        steps = result.values("step")
        assert [steps[0], steps[-1]] == truth["step_first_last"]
        assert sum(b < a for a, b in pairwise(steps)) == truth["step_decreases"]


def test_sb3_steps_are_sums_of_lengths() -> None:
    path = CORPUS / "curves/csv/sb3-monitor/a2c/Acrobot-v1_1/0.monitor.csv"
    lengths = [int(line.split(",")[1]) for line in path.read_text().splitlines()[2:]]
    _, result = load_claimed(path)
    assert result.steps("r")[-1] == sum(lengths)
    assert result.params["env_id"] == "Acrobot-v1"


def test_no_other_file_is_taken() -> None:
    """Counters, traces, texts and exports of the corpus are left to their own loaders."""
    ours = [x for x in loaders() if x.format in OURS]
    known = {r["path"] for r in corpus_records("csv")}
    may = {"curves/wandb/api-history-csv/wandb_export.csv", "curves/wandb/api-history-csv/wandb_results.csv"}
    taken = []
    for path in sorted(CORPUS.rglob("*")):
        name = path.relative_to(CORPUS).as_posix()
        if path.is_file() and name not in known | may:
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
            taken += [name for x in ours if x.sniff(path, head)]
    assert taken == []
