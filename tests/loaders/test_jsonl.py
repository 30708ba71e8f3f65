"""Generic JSON lines: what is taken and what refused, axes, splits, parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.formats.curves.jsonl import Jsonl
from afterrun.loaders.jsonlog.lines import JsonLines
from tests.support.loading import claimed, load_claimed, read, write


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(r) + "\n" for r in rows)


STEPS = [{"step": i, "loss": 1 / (i + 1)} for i in range(3)]

TAKEN = {
    "step and loss": lines(*STEPS),
    "only rare names beside a step": lines({"step": 1, "foo": 2.0}, {"step": 2, "foo": 2.5}),
    "epochs": lines({"epoch": 1, "train": {"loss": 0.5}}, {"epoch": 2, "train": {"loss": 0.4}}),
    "a vague axis beside a metric": lines({"update": 1, "loss": 1.0}, {"update": 2, "loss": 0.9}),
    "metrics only": lines({"loss": 1.0, "acc": 0.1}, {"loss": 0.9, "acc": 0.2}),
    "sample text beside step and loss": lines(*({**r, "text": "It was a dark night"} for r in STEPS)),
    "messages of a logger with values": lines(
        *({"level": "info", "msg": "train", "ts": 1.7e9 + i, **r} for i, r in enumerate(STEPS))
    ),
    "a first line beyond the head": json.dumps({"step": 1, "loss": 0.5, "per_class": [0.5] * 2000}) + "\n",
    "a damaged first line": '{"step": 0, "lo\n' + lines(*STEPS),
}
REFUSED = {
    "a data set": lines({"id": 1, "text": "a", "label": 0}, {"id": 2, "text": "b", "label": 1}),
    "a conversation": lines({"messages": [{"role": "user", "content": "Hi"}], "score": 0.5}),
    "a trajectory": lines({"step": 1, "prompt": "Go", "reward_model": "x"}, {"step": 2, "prompt": "Stop"}),
    "results by model": lines({"model": "a", "accuracy": 0.5}, {"model": "b", "accuracy": 0.6}),
    "a grid": lines(
        {"lr": 0.1, "batch_size": 8, "test_loss": 0.5}, {"lr": 0.2, "batch_size": 8, "test_loss": 0.4}
    ),
    "a configuration": lines({"epochs": 10, "lr": 0.1, "batch_size": 32}),
    "messages of a logger": lines({"level": "info", "msg": "step 1 loss 0.5", "ts": 1.7e9}),
    "a document": json.dumps({"step": 1, "loss": 2}, indent=1),
    "a list": "[1, 2]\n",
    "tokens": lines({"tokens": [1, 2, 3]}, {"tokens": [4]}),
    "nothing": "",
}


@pytest.mark.parametrize("name", TAKEN)
def test_logs_are_taken(tmp_path: Path, name: str) -> None:
    assert claimed(write(tmp_path, TAKEN[name], "log.jsonl")) == "jsonl"


@pytest.mark.parametrize("name", REFUSED)
def test_other_json_is_refused(tmp_path: Path, name: str) -> None:
    for file in ("x.jsonl", "x.json"):
        assert claimed(write(tmp_path, REFUSED[name], file)) is None


def test_a_settings_file_of_one_line_is_no_log_but_a_row_of_a_log_is(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, lines({"step": 5, "lr": 0.1, "seed": 1}), "config.json")) is None
    assert claimed(write(tmp_path, lines({"step": 5, "loss": 0.1}), "metrics.json")) == "jsonl"


def test_axes_names_and_parameters(tmp_path: Path) -> None:
    rows = [
        {
            "timestamp": f"2024-05-01T10:00:0{i}Z",
            "global_step": 10 * i,
            "epoch": i / 2,
            "train": {"loss": 1.0 / (i + 1)},
        }
        for i in range(3)
    ]
    rows[1]["note"], rows[2]["note"] = "warm-up over", "best"
    result = read(Jsonl(), write(tmp_path, lines(*({"host": "node7", "dataset": "c4", **r} for r in rows))))
    assert result.points("train/loss") == [(0, 1.0), (10, 0.5), (20, 1 / 3)]
    metrics = result.metrics.filter(result.metrics["tag"] == "train/loss")
    assert metrics["epoch"].to_list() == [0.0, 0.5, 1.0]
    assert (metrics["wall_ns"] - 1_714_557_600_000_000_000).to_list() == [0, 10**9, 2 * 10**9]
    assert result.params == {"dataset": "c4"}, "who and where is nobody's business"
    assert "words left out: note" in result.notes


def test_rows_of_several_splits_are_several_curves(tmp_path: Path) -> None:
    rows = [
        {"split": s, "epoch": e, "loss": e + x} for e in range(3) for s, x in (("train", 0.0), ("valid", 0.5))
    ]
    result = read(Jsonl(), write(tmp_path, lines(*rows)))
    assert result.points("train/loss") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert result.points("valid/loss") == [(0, 0.5), (1, 1.5), (2, 2.5)]
    assert result.params == {}


def test_a_column_of_words_that_names_no_split_stays_out(tmp_path: Path) -> None:
    rows = [{"type": t, "step": i, "loss": 1.0} for i, t in enumerate(["log", "train", "log"])]
    result = read(Jsonl(), write(tmp_path, lines(*rows)))
    assert result.steps("loss") == [0, 1, 2]


def test_axes_stay_the_same_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that orders rows better but comes up later changes nothing."""
    monkeypatch.setitem(JsonLines.__init__.__kwdefaults__, "block_bytes", 200)
    rows = [{"iteration": i, "loss": 1.0} for i in range(30)] + [
        {"iteration": i, "global_step": 5 * i, "loss": 1.0} for i in range(30, 60)
    ]
    result = read(Jsonl(), write(tmp_path, lines(*rows)))
    assert result.steps("loss") == list(range(60))


def test_b20_rows_with_different_keys_are_never_joined(tmp_path: Path) -> None:
    rows = [
        {"_step": 0, "loss": 2.0},
        {"_step": 1, "loss": 1.5, "val/acc": 0.2},
        {"_step": 2, "lr": 0.1},
        {"_step": 3, "val/acc": 0.4},
        {"_step": 4, "loss": 1.0},
    ]
    format_name, result = load_claimed(write(tmp_path, lines(*rows), "history.jsonl"))
    assert format_name == "jsonl"
    assert result.points("loss") == [(0, 2.0), (1, 1.5), (4, 1.0)]
    assert result.points("val/acc") == [(1, 0.2), (3, 0.4)]
    assert result.points("lr") == [(2, 0.1)]


def test_b46_a_resumed_log_overlaps_and_ends_in_a_half_line(tmp_path: Path) -> None:
    steps = [*range(1, 121), *range(101, 151)]
    text = lines(*({"global_step": s, "loss": round(1 / s, 6)} for s in steps)) + '{"global_step": 151, "lo'
    write(tmp_path, text, "internal_log.jsonl")
    (run,) = inventory(collect([tmp_path]))["runs"]
    (loss,) = [m for m in run["metrics"] if m["tag"] == "loss"]
    assert (run["attempts"], loss["points"], loss["superseded"], loss["last_step"]) == (2, 150, 20, 150)
    (source,) = run["sources"]
    assert (source["status"], source["damaged"]) == ("partial", 1)
    assert source["note"] == "the file ends in the middle of line 171, which was left out"
