"""What W&B leaves in the ``files`` folder of a run: summary, configuration, metadata; and how a run is put together."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.curves.wandb_files import WandbConfig, WandbMetadata, WandbSummary
from afterrun.loaders.settings.tree import MAX_VALUE_CHARACTERS, Settings
from tests.support import wandb
from tests.support.loading import Read, claimed, read, write

SUMMARY, CONFIG, METADATA = "wandb-summary.json", "config.yaml", "wandb-metadata.json"


def summary(tmp_path: Path, text: str) -> Read:
    return read(WandbSummary(), write(tmp_path, text, SUMMARY))


# -- summary ------------------------------------------------------------------------------------------


def test_bare_nan_in_a_summary(tmp_path: Path) -> None:
    result = summary(
        tmp_path,
        '{"train/loss":NaN,"_step":7400,"_wandb":{"runtime":695},"best":{"acc":0.5},'
        '"img":{"_type":"image-file","path":"a.png"}}',
    )
    assert math.isnan(result.params.pop("summary.train/loss"))
    assert result.params == {"summary._step": 7400, "summary.best.acc": 0.5}
    assert result.notes == ("1 value of type image-file skipped: img",)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"a": 1.5, "b": "x", "c": 0.12', {"summary.a": 1.5, "summary.b": "x"}),
        ('{"a": 1.5, "b": {"c": 2}, "d', {"summary.a": 1.5, "summary.b.c": 2}),
        ('{"a": 1.5, "b": !, "c": 2}', {"summary.a": 1.5}),
        ("{", {}),
    ],
)
def test_a_cut_summary_keeps_what_is_before(tmp_path: Path, text: str, kept: dict[str, object]) -> None:
    result = summary(tmp_path, text)
    assert result.params == kept
    assert result.damaged == 1
    assert result.notes == (f"the JSON is cut or damaged: {len(kept)} members before that were read",)


@pytest.mark.parametrize("text", ["", "{}", "\n", '{"_wandb": {"runtime": 1}}'])
def test_an_empty_summary(tmp_path: Path, text: str) -> None:
    result = summary(tmp_path, text)
    assert (result.params, result.damaged, result.notes) == ({}, 0, ())


def test_a_summary_that_is_no_object(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        summary(tmp_path, "[1]")


# -- configuration ------------------------------------------------------------------------------------

OLD_CLIENT = """\
wandb_version: 1

_wandb:
  desc: null
  value:
    cli_version: 0.13.10
    t:
      1:
      - 1
      - 41
lr:
  desc: null
  value: 1e-05
model:
  desc: null
  value:
    depth: 12
    name: vit
betas:
  desc: null
  value:
  - 0.9
  - 0.999
data:
  desc: null
  value: /ho{me}/ann/sets/coco
api_key:
  desc: null
  value: abc
"""

NEW_CLIENT = """\
_wandb:
    value:
        cli_version: 0.18.3
        m: []
bias:
    value: false
learning_rate:
    value: 6e-05
name:
    value: "a: b"
nothing:
    value: null
"""


def test_configuration_of_both_clients(tmp_path: Path) -> None:
    old = write(tmp_path, OLD_CLIENT.replace("{me}", "me"), CONFIG)
    assert claimed(old) == "wandb-config"
    result = read(WandbConfig(), old)
    assert result.params == {
        "lr": 1e-05,
        "model.depth": 12,
        "model.name": "vit",
        "betas": [0.9, 0.999],
        "data": "coco",
    }
    assert result.notes == ("1 setting about persons, machines or secrets left out",)
    new = write(tmp_path, NEW_CLIENT, CONFIG)
    assert claimed(new) == "wandb-config"
    result = read(WandbConfig(), new)
    assert result.params == {"bias": False, "learning_rate": 6e-05, "name": "a: b", "nothing": None}
    assert (result.damaged, result.notes) == (0, ())


def test_a_key_in_other_yaml_costs_itself(tmp_path: Path) -> None:
    text = "lr:\n  desc: null\n  value: 0.1\nodd:\n  ? complex\n  : key\nwd:\n  value: 0.2\n"
    result = read(WandbConfig(), write(tmp_path, text, CONFIG))
    assert result.params == {"lr": 0.1, "wd": 0.2}
    assert result.damaged == 1
    assert result.notes == ("1 keys in a form of YAML that is not read: odd",)


def test_configurations_of_others_are_left_alone(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, "model:\n  depth: 12\nlr: 0.1\n", CONFIG)) is None
    assert claimed(write(tmp_path, NEW_CLIENT, "other.yaml")) is None


# -- metadata -----------------------------------------------------------------------------------------


def test_metadata_without_the_person(tmp_path: Path) -> None:
    values = {
        "os": "Linux-5.15",
        "python": "3.11.10",
        "startedAt": "2024-10-12T22:33:25.123456Z",
        "args": ["--data", "/ho" + "me/ann/x"],
        "program": "/ho" + "me/ann/train.py",
        "email": "ann@example.org",
        "root": "/ho" + "me/ann",
        "host": "ann-laptop",
        "username": "ann",
        "executable": "/ho" + "me/ann/bin/python",
        "cpu_count": 8,
        "gpu": "NVIDIA A100",
        "gpu_count": 2,
    }
    path = write(tmp_path, json.dumps(values), METADATA)
    assert claimed(path) == "wandb-metadata"
    result = read(WandbMetadata(), path)
    assert result.params == {
        "env.os": "Linux-5.15",
        "env.python": "3.11.10",
        "env.gpu": "NVIDIA A100",
        "env.gpu_count": 2,
        "env.cpu_count": 8,
        "env.program": "train.py",
    }
    assert result.marks.select("t_ns", "kind").rows() == [(1_728_772_405_123_456_000, "start")]


def test_metadata_of_other_shapes(tmp_path: Path) -> None:
    values = {"gpu_nvidia": [{"name": "H100"}, {"name": "H100"}], "cpu_count": "many", "startedAt": 5}
    result = read(WandbMetadata(), write(tmp_path, json.dumps(values), METADATA))
    assert result.params == {"env.gpu": "H100", "env.gpu_count": 2}
    assert len(result.marks) == 0
    values = {"gpu_devices": [{"name": "T4", "memory_total": 15843721216}], "gpu_count": 10**9, "gpu": ""}
    result = read(WandbMetadata(), write(tmp_path, json.dumps(values), METADATA))
    assert result.params == {"env.gpu": "T4", "env.gpu_count": 1, "env.gpu_memory_bytes": 15843721216}
    values = {
        "gpu": "NVIDIA L4",
        "gpu_count": 8,
        "gpu_nvidia": [{"name": "NVIDIA L4", "memoryTotal": "24152899584"}],
    }
    result = read(WandbMetadata(), write(tmp_path, json.dumps(values), METADATA))
    assert result.params == {"env.gpu": "NVIDIA L4", "env.gpu_count": 8, "env.gpu_memory_bytes": 24152899584}


def test_the_machine_in_the_configuration_of_newer_clients(tmp_path: Path) -> None:
    text = """_wandb:
    value:
        cli_version: 0.20.1
        e:
            w0rp6fvjk5d3m2q1:
                email: ann@example.org
                gpu: NVIDIA L4
                gpu_count: 2
                host: ann-laptop
                os: Linux-5.15
                username: ann
lr:
    value: 0.1
"""
    result = read(WandbConfig(), write(tmp_path, text, CONFIG))
    assert result.params == {
        "lr": 0.1,
        "env.os": "Linux-5.15",
        "env.gpu": "NVIDIA L4",
        "env.gpu_count": 2,
    }


# -- a run of several files ---------------------------------------------------------------------------


def run_folder(root: Path, name: str = "run-20241012_153325-jnyhr7aj") -> Path:
    """A run folder as the client leaves it, with its ``latest-run`` link beside it."""
    folder = root / name
    rows = [wandb.history({"_step": i, "loss": 1.0 / (i + 1)}, i + 2) for i in range(5)]
    wandb.write(folder / "run-jnyhr7aj.wandb", [wandb.run(number=1), *rows, wandb.exit_record(number=7)])
    write(folder / "files", NEW_CLIENT, CONFIG)
    write(folder / "files", '{"loss": 0.2}', SUMMARY)
    write(folder / "files", '{"python": "3.11"}', METADATA)
    (root / "latest-run").symlink_to(name)
    return folder


def test_a_run_folder_is_one_run_read_once(tmp_path: Path) -> None:
    run_folder(tmp_path / "wandb")
    tables = collect([tmp_path]).tables
    assert tables.run_names() == ["wandb/run-20241012_153325-jnyhr7aj"]
    assert sorted(tables.sources["format"].to_list()) == [
        "wandb",
        "wandb-config",
        "wandb-metadata",
        "wandb-summary",
    ]
    assert tables.metrics.height == 10
    assert tables.runs["outcome"].to_list() == ["finished"]


def test_a_run_folder_named_itself_is_one_run(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    assert collect([folder]).tables.run_names() == [folder.name]


def test_devices_of_a_run(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    write(folder / "files", '{"gpu": "NVIDIA A100", "gpu_count": 4, "username": "ann"}', METADATA)
    tables = collect([folder]).tables
    assert tables.runs.select("device_name", "devices").rows() == [("NVIDIA A100", 4)]
    assert "ann" not in tables.params["value"].str.join("").item()


def test_devices_that_nothing_says_are_not_recorded(tmp_path: Path) -> None:
    tables = collect([run_folder(tmp_path)]).tables
    assert tables.runs.select("device_name", "devices").rows() == [(None, None)]


def test_what_the_log_and_the_sidecars_both_say_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "run-20241012_153325-jnyhr7aj"
    settings = {"lr": 0.1, "layers": 2, "name": "a", "seed": 3}
    records = [wandb.run(settings), wandb.history({"_step": 0, "loss": 1.0}), wandb.summary({"loss": 1.0})]
    wandb.write(folder / "run-jnyhr7aj.wandb", records)
    text = "".join(f"{k}:\n    value: {v}\n" for k, v in {**settings, "layers": 2.0, "seed": 4}.items())
    write(folder / "files", text, CONFIG)
    write(folder / "files", '{"loss": 1.0}', SUMMARY)
    params = collect([folder]).tables.params.with_columns(pl.col("key", "source").cast(pl.String))
    told = dict(params.group_by("key").len().iter_rows())
    assert told == {"lr": 1, "layers": 1, "name": 1, "seed": 2, "summary.loss": 1, "wandb.run_id": 1}
    seeds = params.filter(pl.col("key") == "seed").select("source", "value").rows()
    assert seeds == [("files/config.yaml", "4"), ("run-jnyhr7aj.wandb", "3")]


# -- settings -----------------------------------------------------------------------------------------


def test_settings_that_are_data_are_cut() -> None:
    settings = Settings()
    settings.add("names", ["x" * 20] * 1000)
    value = json.loads(settings.frames()["params"]["value"][0])
    assert MAX_VALUE_CHARACTERS < len(value) < MAX_VALUE_CHARACTERS + 50
    assert value.endswith("… (24000 characters)")


def test_settings_nested_without_end_do_not_hurt() -> None:
    tree: dict[str, object] = {}
    for _ in range(5000):
        tree = {"a": tree}
    settings = Settings()
    settings.add("deep", tree)
    settings.add("list", [[[1]]])
    assert len(settings) == 2
