"""Curves downloaded from TensorBoard's page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import claimed, write

TABLE = "Wall time,Step,Value\n1700000000.5,0,2.0\n1700000001.5,10,NaN\n1700000002.5,20,1.5\n"


def runs(root: Path) -> dict[str, dict[str, Any]]:
    return {r["run"]: r for r in inventory(collect([root]))["runs"]}


def test_files_of_one_run_are_one_run(tmp_path: Path) -> None:
    for name in ("run-vit_train-tag-epoch_loss", "run-vit_train-tag-lr", "run-vit_val-tag-epoch_loss (1)"):
        write(tmp_path, TABLE, f"dl/{name}.csv")
    found = runs(tmp_path)
    assert {n: [m["tag"] for m in r["metrics"]] for n, r in found.items()} == {
        "dl/vit_train": ["epoch_loss", "lr"],
        "dl/vit_val": ["epoch_loss"],
    }
    loss = found["dl/vit_train"]["metrics"][0]
    assert (loss["points"], loss["nan"], loss["first_step"], loss["last_step"], loss["last"]) == (
        3,
        1,
        0,
        20,
        1.5,
    )
    assert found["dl/vit_train"]["grouped_by"] == "named inside the file"
    assert collect([tmp_path]).tables.metrics["wall_ns"][0] == 1_700_000_000_500_000_000


def test_a_file_alone(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE, "run-vit-tag-loss_train.csv")
    assert {n: [m["tag"] for m in r["metrics"]] for n, r in runs(path).items()} == {"vit": ["loss_train"]}


def test_renamed_files_are_tags_of_their_folder_or_runs(tmp_path: Path) -> None:
    for name in ("val_loss.csv", "train_loss.csv", "run-.-tag-acc.csv", "resnet.csv", "vit.csv"):
        write(tmp_path, TABLE, f"curves/{name}")
    assert {n: sorted(m["tag"] for m in r["metrics"]) for n, r in runs(tmp_path).items()} == {
        "curves": ["acc", "train_loss", "val_loss"],
        "curves/resnet": ["resnet"],
        "curves/vit": ["vit"],
    }


def test_damage_is_counted(tmp_path: Path) -> None:
    write(tmp_path, TABLE + "1700000003.5,30,oops\n1700000004.5,40,1.25\n", "run-a-tag-loss.csv")
    (run,) = runs(tmp_path).values()
    assert (run["metrics"][0]["points"], run["sources"][0]["damaged"]) == (4, 1)


def test_other_tables_are_left_alone(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, "Wall time,Step,Loss\n1.5,0,2.0\n")) != "tensorboard-csv"
