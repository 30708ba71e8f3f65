"""Histories as one JSON document."""

from __future__ import annotations

import json
import math
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from afterrun.loaders.errors import AfterrunError
from afterrun.loaders.formats.curves.json_history import JsonHistory
from tests.support.loading import Read, claimed, load_claimed, read, write


def load(folder: Path, value: Any, **how: Any) -> Read:
    text = value if isinstance(value, str) else json.dumps(value, **how)
    found, result = load_claimed(write(folder, text, "history.json"))
    assert found == "json-history"
    return result


def test_lists_by_name_count_epochs(tmp_path: Path) -> None:
    value = {"loss": [2.0, 1.5, math.nan], "val_loss": [2.5, 2.0, 1.5], "lr": [0.1, 0.1, 0.01]}
    for indent in (None, 2):
        result = load(tmp_path, value, indent=indent)
        assert result.points("val_loss") == [(0, 2.5), (1, 2.0), (2, 1.5)]
        assert str(result.points("loss")[2]) == "(2, nan)"
        assert result.metrics["epoch"].max() == 2.0


def test_a_metric_that_began_late_or_stopped_early_is_short(tmp_path: Path) -> None:
    assert load(tmp_path, {"loss": [2.0, 1.5, 1.0], "val_loss": [2.5, 2.0]}).steps("val_loss") == [0, 1]


def test_rows_in_a_list(tmp_path: Path) -> None:
    rows = [{"epoch": e, "train": {"loss": 2.0 - e / 4}, "note": "x"} for e in range(1, 4)]
    result = load(tmp_path, rows, indent=1)
    assert result.points("train/loss") == [(1, 1.75), (2, 1.5), (3, 1.25)]
    assert result.params == {"note": "x"}


def test_an_axis_among_the_lists_is_the_axis(tmp_path: Path) -> None:
    assert load(tmp_path, {"loss": [2.0, 1.5], "step": [100, 200]}).steps("loss") == [100, 200]


@pytest.mark.parametrize(
    "value",
    [
        {"lr": 0.1, "layers": [64, 64]},
        {"loss": {"a": [1.0]}},
        {"config": {"x": 1}, "loss": [1.0]},
        [{"text": "a", "label": 1}],
        [{"question": "a", "score": 0.5}],
        [1.0, 2.0],
        {"weights": [0.5, 0.25]},
        {},
        [],
    ],
)
def test_other_documents_are_refused(tmp_path: Path, value: Any) -> None:
    assert claimed(write(tmp_path, json.dumps(value, indent=1), "x.json")) is None


def test_a_cut_document_keeps_what_stands_before_the_cut(tmp_path: Path) -> None:
    result = load(tmp_path, '{"loss": [2.0, 1.5, 1.25], "val_loss": [2.5, 2.0, 1.')
    assert result.values("loss") == [2.0, 1.5, 1.25]
    assert result.values("val_loss") == [2.5, 2.0]
    assert (result.damaged, result.notes) == (
        1,
        ("the JSON is damaged: every list was read up to where it is whole",),
    )
    result = load(tmp_path, '[{"epoch": 0, "loss": 2.0},\n {"epoch": 1, "loss": 1.5},\n {"epoch": 2, "lo')
    assert (result.points("loss"), result.damaged) == ([(0, 2.0), (1, 1.5)], 1)


def test_a_damaged_row_costs_itself(tmp_path: Path) -> None:
    rows = [json.dumps({"epoch": e, "loss": 1.0 + e}) for e in range(5)]
    rows[2] = rows[2].replace(":", "", 1)
    result = load(tmp_path, "[\n" + ",\n".join(rows) + "\n]\n")
    assert (result.steps("loss"), result.damaged) == ([0, 1, 3, 4], 1)


def survive(folder: Path, mutants: int) -> tuple[int, int]:
    rng = random.Random(2)
    whole = kept = 0
    for _ in range(mutants):
        rows = [json.dumps({"epoch": e, "loss": rng.random()}) for e in range(40)]
        data = bytearray(("[\n" + ",\n".join(rows) + "\n]\n").encode())
        at = rng.randrange(2, len(data) - 40)
        data[at : at + rng.randint(0, 30)] = rng.randbytes(rng.randint(1, 30))
        standing = [r for r in rows if (r.encode() + b",\n") in data]
        path = write(folder, bytes(data), "history.json")
        found = {v for _, v in read(JsonHistory(), path).points("loss")}
        whole += len(standing)
        kept += sum(json.loads(r)["loss"] in found for r in standing)
    return whole, kept


def test_mutants_keep_their_intact_rows(tmp_path: Path) -> None:
    whole, kept = survive(tmp_path, 150)
    assert whole > 150 * 30
    assert kept >= 0.99 * whole


@pytest.mark.slow
def test_a_thousand_mutants_keep_their_intact_rows(tmp_path: Path) -> None:
    whole, kept = survive(tmp_path, 1000)
    assert kept >= 0.99 * whole


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[{", b'{"loss": [1', b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe{"]
)
def test_hostile_bytes_are_refused_in_words(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data, "history.json")
    JsonHistory().sniff(path, data[:4096])
    with suppress(AfterrunError):
        assert len(read(JsonHistory(), path).metrics) <= 1
