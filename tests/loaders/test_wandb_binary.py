"""``.wandb`` files: what each kind of record becomes. Damage is in ``test_wandb_damage``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.formats.curves.wandb_binary import Wandb
from afterrun.loaders.wandb import history as wandbhistory
from tests.support import wandb
from tests.support.events import integer, nested
from tests.support.loading import Read, claimed, read

WALL = wandb.WALL_S


def load(tmp_path: Path, *payloads: bytes) -> Read:
    return read(Wandb(), wandb.write(tmp_path / "run-abc123.wandb", payloads))


def row(step: int, **values: Any) -> bytes:
    return wandb.history({"_step": step, "_timestamp": float(WALL + step), **values})


# -- history ---------------------------------------------------------------------------------------


def test_b24_offline_run(tmp_path: Path) -> None:
    rows = [
        wandb.history(
            {"_step": i, "loss": 3.2 / (i + 1), "_timestamp": WALL + i, ("val", "acc"): i / 100}, i + 2
        )
        for i in range(40)
    ]
    result = load(tmp_path, wandb.run({"lr": 0.1}, name="calm-river-1"), *rows, wandb.exit_record(number=42))
    assert result.points("loss") == [(i, 3.2 / (i + 1)) for i in range(40)]
    assert result.points("val.acc") == [(i, i / 100) for i in range(40)]
    assert result.tags() == ["_step", "loss", "_timestamp", "val.acc"]
    assert result.metrics["seq"].to_list() == list(range(160))
    assert result.metrics["wall_ns"].unique(maintain_order=True).to_list() == [
        (WALL + i) * 10**9 for i in range(40)
    ]
    assert result.params == {"wandb.run_id": "abc123", "wandb.name": "calm-river-1", "lr": 0.1}
    assert result.marks.select("t_ns", "kind").rows() == [
        (WALL * 10**9, "start"),
        ((WALL + 60) * 10**9, "finish"),
    ]
    assert (result.damaged, result.notes) == (0, ())


def test_keys_are_read_where_they_are_and_never_joined(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        row(0, loss=2.0),
        row(1, loss=1.5, **{"val/acc": 0.2}),
        row(2, lr=0.1),
        row(3, **{"val/acc": 0.4}),
        row(4, loss=1.0),
    )
    assert result.points("loss") == [(0, 2.0), (1, 1.5), (4, 1.0)]
    assert result.points("val/acc") == [(1, 0.2), (3, 0.4)]
    assert result.points("lr") == [(2, 0.1)]


def test_key_and_nested_key_of_one_name_are_one_tag(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        wandb.history({"_step": 0, "loss": 3.0}),
        wandb.history({("_step",): 1, ("loss",): 2.0}),
        wandb.history({("_step",): 2, "a.b": 1.0, ("a", "b"): 2.0}),
    )
    assert result.points("loss") == [(0, 3.0), (1, 2.0)]
    assert result.points("a.b") == [(2, 1.0), (2, 2.0)]


def test_values_that_are_no_plain_numbers(tmp_path: Path) -> None:
    values = {
        "nan": math.nan,
        "inf": -math.inf,
        "nan_text": "NaN",
        "inf_text": "Infinity",
        "minus_text": "-Infinity",
        "truth": True,
        "nothing": None,
        "tree": {"a": 0.25, "deep": {"b": 3}},
        "words": "NVIDIA A100",
        "list": [1, 2],
        "big": 10**25,
    }
    result = load(tmp_path, wandb.history({"_step": 7, **values}))
    assert {t: result.values(t)[0] for t in result.tags() if not t.startswith("nan")} == {
        "_step": 7.0,
        "inf": -math.inf,
        "inf_text": math.inf,
        "minus_text": -math.inf,
        "truth": 1.0,
        "tree.a": 0.25,
        "tree.deep.b": 3.0,
        "big": 1e25,
    }
    assert math.isnan(result.values("nan")[0])
    assert math.isnan(result.values("nan_text")[0])
    assert result.notes[-1] == "2 values without a number skipped: words, list"
    assert result.damaged == 0


def test_media_are_named_and_skipped(tmp_path: Path) -> None:
    image = {"_type": "image-file", "path": "media/images/a.png", "width": 4}
    shown = {"_type": "table-file", "path": "media/table/t.table.json", "nrows": 1}
    result = load(tmp_path, row(0, fake=image, real=image), row(1, fake=image, Result=shown, loss=1.0))
    assert result.tags() == ["_step", "_timestamp", "loss"]
    assert result.notes[-2:] == (
        "3 values of type image-file skipped: fake, real",
        "1 value of type table-file skipped: Result",
    )


def test_histograms(tmp_path: Path) -> None:
    explicit = {"_type": "histogram", "values": [1, 2], "bins": [0.0, 0.5, 1.0]}
    packed = {"_type": "histogram", "values": [3, 4, 5], "packedBins": {"min": -1, "size": 2, "count": 3}}
    broken = {"_type": "histogram", "values": [1, 2], "bins": [0.0, 1.0]}
    path = wandb.write(tmp_path / "a.wandb", [row(0, g=explicit), row(1, g=packed), row(2, g=broken)])
    found = wandb.table(Wandb(), path, "histograms").select("tag", "step", "wall_ns", "edges", "counts")
    assert found.rows() == [
        ("g", 0, WALL * 10**9, [0.0, 0.5, 1.0], [1.0, 2.0]),
        ("g", 1, (WALL + 1) * 10**9, [-1.0, 1.0, 3.0, 5.0], [3.0, 4.0, 5.0]),
    ]
    assert "1 value of type histogram skipped: g" in read(Wandb(), path).notes


def test_trees_with_a_type_that_were_written_leaf_by_leaf(tmp_path: Path) -> None:
    """Newer clients write every leaf as an item with a nested key."""
    leaves = {
        "loss": 0.5,
        ("h", "_type"): "histogram",
        ("h", "bins"): [0.0, 0.5, 1.0],
        ("h", "values"): [1, 2],
        ("val", "image", "width"): 2,
        ("val", "image", "_type"): "image-file",
        ("val", "image", "boxes", "_type"): "boxes",
        ("val", "acc"): 0.75,
        ("hh", "bins"): 3.0,
        "_step": 7,
    }
    path = wandb.write(tmp_path / "run-a.wandb", [wandb.history(leaves), wandb.summary(leaves)])
    found = wandb.table(Wandb(), path, "histograms").select("tag", "step", "edges", "counts")
    assert found.rows() == [("h", 7, [0.0, 0.5, 1.0], [1.0, 2.0])]
    result = read(Wandb(), path)
    assert result.tags() == ["loss", "val.acc", "hh.bins", "_step"]
    assert result.steps("val.acc") == [7]
    assert "1 value of type image-file skipped: val.image" in result.notes
    assert result.params == {f"summary.{tag}": result.values(tag)[0] for tag in result.tags()}
    assert result.damaged == 0


def test_step_is_told_by_the_row_or_by_the_record(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        wandb.history({"loss": 1.0, "_step": 5}, step=4),
        wandb.history({"loss": 2.0}, step=6),
        wandb.history({"loss": 3.0}, step=0),
        wandb.history({"loss": 4.0}),
        wandb.history({"loss": 5.0, "_step": 1.5}),
    )
    assert result.steps("loss") == [5, 6, 0, None, None]


def test_wall_clock_from_the_running_time_where_nothing_better_is_told(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        wandb.run(),
        wandb.history({"loss": 1.0, "_runtime": 2.5, "_timestamp": WALL + 9}),
        wandb.history({"loss": 2.0, "_runtime": 2.5}),
        wandb.history({"loss": 3.0}),
        wandb.history({"loss": 4.0, "_timestamp": 12.0}),  # no moment
    )
    walls = result.metrics.filter(pl.col("tag") == "loss")["wall_ns"].to_list()
    assert walls == [(WALL + 9) * 10**9, WALL * 10**9 + 2_500_000_000, None, None]


def test_trainer_axes_stay_rows(tmp_path: Path) -> None:
    result = load(tmp_path, row(0, **{"trainer/global_step": 50, "loss": 1.0}))
    assert result.points("trainer/global_step") == [(50, 50.0)]
    assert result.points("_step") == [(0, 0.0)]


def test_long_names_and_values_take_the_slow_way(tmp_path: Path) -> None:
    long = "layer." * 40 + "weight"
    swapped = nested(16, "0.5") + nested(1, "late")  # value before key
    result = load(
        tmp_path, row(3, **{long: 1.5, "note": "x" * 300}), wandb.record(None, 2, nested(1, swapped))
    )
    assert result.points(long) == [(3, 1.5)]
    assert result.points("late") == [(None, 0.5)]


def test_a_file_in_several_batches_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wandb.write(tmp_path / "a.wandb", [row(i, loss=float(i)) for i in range(1000)])
    whole = read(Wandb(), path)
    monkeypatch.setattr(wandbhistory, "FLUSH_VALUES", 100)
    parts = read(Wandb(), path)
    assert len(whole.metrics) == 3000
    assert parts.metrics.equals(whole.metrics)


# -- parameters, marks, system metrics ----------------------------------------------------------------


def test_configuration_is_flattened_and_the_last_value_counts(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        wandb.run({"lr": 0.1, "model": {"type": "vit", "depth": 12}, "_wandb": {"t": 1}, "gpus": [0, 1]}),
        wandb.config({"lr": 0.2, ("_wandb", "code"): 1}),
    )
    del result.params["wandb.run_id"]
    assert result.params == {"lr": 0.2, "model.type": "vit", "model.depth": 12, "gpus": [0, 1]}


def test_summary_has_a_prefix_and_forgets_what_was_removed(tmp_path: Path) -> None:
    result = load(
        tmp_path,
        wandb.summary({"loss": 2.0, "old": 1, "_wandb": {"runtime": 3}, "img": {"_type": "image-file"}}),
        wandb.summary({"loss": math.nan, ("val", "acc"): 0.5}, removed=["old"]),
    )
    assert math.isnan(result.params.pop("summary.loss"))
    assert result.params == {"summary.val.acc": 0.5}


def test_nothing_personal_in_any_table(tmp_path: Path) -> None:
    settings = {
        "data": "/ho" + "me/ann/sets/coco.yaml",
        "user": "ann",
        "wandb_entity": "ann-lab",
        "api_key": "abc",
        "contact": "write to ann@example.org",
        "paths": ["/ho" + "me/ann/a.bin", "relative/b.bin"],
    }
    path = wandb.write(
        tmp_path / "run-20240101_000000-x" / "run-x.wandb",
        [
            wandb.run(settings, entity="ann-lab", host="ann-laptop"),
            row(0, loss=1.0),
            wandb.output("python train.py by ann\n"),
        ],
    )
    tables = collect([tmp_path]).tables
    assert tables.params.select("key", "value").cast(pl.String).rows() == [
        ("wandb.run_id", '"abc123"'),
        ("data", '"coco.yaml"'),
        ("contact", '"write to …"'),
        ("paths", '["a.bin", "relative/b.bin"]'),
    ]
    text = "".join(frame.write_json() for _, frame in tables.items())
    assert "ann" not in text.replace("channel", "")
    assert "3 settings about persons, machines or secrets left out" in read(Wandb(), path).notes


@pytest.mark.parametrize(
    ("records", "outcome", "kinds"),
    [
        ([wandb.exit_record(0)], "finished", ["start", "finish"]),
        ([wandb.exit_record(1)], "crashed", ["start", "crash"]),
        ([wandb.exit_record(255)], "stopped", ["start", "stop"]),
        ([], "unknown", ["start"]),
    ],
)
def test_how_a_run_ended(tmp_path: Path, records: list[bytes], outcome: str, kinds: list[str]) -> None:
    path = tmp_path / "run-20240101_000000-x" / "run-x.wandb"
    wandb.write(path, [wandb.run(), row(0, loss=1.0), row(900, loss=0.5), *records])
    newer = tmp_path / "run-20240102_000000-y" / "run-y.wandb"
    wandb.write(newer, [wandb.history({"loss": 1.0, "_timestamp": WALL + 100_000})])
    tables = collect([tmp_path]).tables.of_run("run-20240101_000000-x")
    assert tables.runs["outcome"].to_list() == [outcome]
    assert tables.marks["kind"].to_list() == kinds
    if not records:
        assert "no exit record: the run was killed or is still going on" in tables.sources["note"][0]


def test_a_resumed_run_says_so(tmp_path: Path) -> None:
    result = load(tmp_path, wandb.run(resumed_at=500), row(500, loss=1.0))
    assert result.marks["text"].to_list() == ["W&B run started, resumed at step 500"]


def test_system_metrics_in_units_of_the_schema(tmp_path: Path) -> None:
    sampled = {
        "gpu.0.gpu": 97,
        "gpu.1.memoryAllocatedBytes": 2**30,
        "gpu.1.smClock": 1605,
        "gpu.process.0.gpu": 96,
        "gpu.0.pcieLinkGen": 4,
        "cpu": 5.5,
        "cpu.12.cpu_percent": 80.0,
        "proc.memory.rssMB": 2.0,
        "disk./.usageGB": 1.5,
        "network": {"sent": 10, "recv": 20},
        "memory": "n/a",
        "brand.new": 1,
    }
    path = wandb.write(tmp_path / "a.wandb", [wandb.stats(sampled, WALL + 0.5)])
    found = wandb.table(Wandb(), path, "samples")
    assert found["t_ns"].unique().to_list() == [WALL * 10**9 + 500_000_000]
    assert found.select("device", "series", "counter", "value").rows() == [
        (0, "", "gpu_util_pct", 97.0),
        (1, "", "mem_used_bytes", float(2**30)),
        (1, "", "sm_clock_hz", 1.605e9),
        (0, "", "process_gpu_util_pct", 96.0),
        (0, "", "gpu.pcieLinkGen", 4.0),
        (None, "", "cpu_pct", 5.5),
        (None, 'core="12"', "cpu_core_pct", 80.0),
        (None, "", "rss_bytes", float(2**21)),
        (None, 'mount="/"', "disk_used_bytes", 1.5 * 2**30),
        (None, "", "net_sent_bytes", 10.0),
        (None, "", "net_received_bytes", 20.0),
        (None, "", "brand.new", 1.0),
    ]


def test_console_lines_are_counted(tmp_path: Path) -> None:
    result = load(tmp_path, row(0, loss=1.0), wandb.output("a\nb"), wandb.output("\nc\n"))
    assert "3 lines of console output, which stand in output.log too, not read here" in result.notes


def test_a_run_without_history_says_so(tmp_path: Path) -> None:
    result = load(tmp_path, wandb.run(), wandb.exit_record(1))
    assert len(result.metrics) == 0
    assert "no history: the run logged no metrics" in result.notes


# -- the file itself ----------------------------------------------------------------------------------


def test_sniffing(tmp_path: Path) -> None:
    assert claimed(wandb.write(tmp_path / "renamed.bin", [row(0, loss=1.0)])) == "wandb"
    empty = tmp_path / "run-x.wandb"
    empty.touch()
    assert claimed(empty) == "wandb"


def test_records_of_many_blocks_stream_through(tmp_path: Path) -> None:
    padding = "x" * 100_000
    result = load(tmp_path, *(row(i, loss=float(i), note=padding) for i in range(20)))
    assert result.points("loss") == [(i, float(i)) for i in range(20)]
    assert result.damaged == 0


def test_a_record_that_cannot_be_decoded_costs_itself(tmp_path: Path) -> None:
    broken = integer(1, 2) + nested(2, b"\x0a\x7fxx")
    not_json = wandb.record(3, 2, nested(1, wandb.raw_item("loss", "0.5.5")))
    result = load(tmp_path, row(0, loss=1.0), broken, not_json, row(1, loss=0.5))
    assert result.points("loss") == [(0, 1.0), (1, 0.5)]
    assert result.damaged == 2
    assert "2 records or values could not be decoded" in result.notes


def test_kinds_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    result = load(tmp_path, wandb.record(1, 999, b"?"), wandb.record(2, 8, b"\xff\xff"), row(0, loss=1.0))
    assert (result.points("loss"), result.damaged) == ([(0, 1.0)], 0)
