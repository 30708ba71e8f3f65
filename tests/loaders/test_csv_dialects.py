"""Lightning, Keras, Ultralytics, Stable-Baselines3, Chainer: each sniffer and the shape of each file."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.formats.curves.chainer import ChainerCsv
from afterrun.loaders.formats.curves.csv_log import CsvLog
from afterrun.loaders.formats.curves.keras import KerasCsv
from afterrun.loaders.formats.curves.lightning import LightningCsv, LightningHparams
from afterrun.loaders.formats.curves.stable_baselines3 import Sb3Monitor, Sb3Progress
from afterrun.loaders.formats.curves.ultralytics import UltralyticsCsv
from afterrun.loaders.registry import Loader
from tests.support.loading import claimed, read, write

DIALECTS: tuple[Loader, ...] = (
    ChainerCsv(),
    KerasCsv(),
    LightningCsv(),
    Sb3Monitor(),
    Sb3Progress(),
    UltralyticsCsv(),
)

PADDED = ["epoch", "train/box_loss", "train/cls_loss", "metrics/mAP50(B)", "val/box_loss"]

FILES = {
    "lightning-csv": ("lightning_logs/version_0/metrics.csv", "epoch,step,loss\n0,9,3\n"),
    "lightning-csv by sparse rows": ("m.csv", "train_loss,step,epoch,val_loss\n3,9,0,\n,9,0,4\n"),
    "lightning-csv by suffixes": ("m.csv", "epoch,step,loss_step,loss_epoch\n0,9,3,2\n"),
    "keras-csv": ("training.log", "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,3,0.25,4\n"),
    "keras-csv of Keras 3": (
        "a.csv",
        "epoch,accuracy,loss,top,val_accuracy,val_loss,val_top\n0,0.5,3,1,0.25,4,1\n",
    ),
    "ultralytics-csv": (
        "results.csv",
        ",".join(n.rjust(22) for n in PADDED) + "\n" + ",".join(["1".rjust(22)] * 5) + "\n",
    ),
    "sb3-monitor": (
        "0.monitor.csv",
        '#{"t_start": 1614619328.5, "env_id": "A"}\nr,l,t\r\n-500.0,500,4.5\r\n',
    ),
    "sb3-progress": ("progress.csv", "time/fps,rollout/ep_rew_mean,time/total_timesteps\n100,-20.5,2048\n"),
    "sb3-progress of Baselines": ("progress.csv", "discriminator loss,loss,num episodes\n0.5,3,4\n"),
    "chainer-csv": ("log.csv", "epoch,iteration,elapsed_time,main/loss\n0,1,4.5,3\n"),
}


@pytest.mark.parametrize("case", FILES)
def test_each_file_is_taken_by_its_dialect_alone(tmp_path: Path, case: str) -> None:
    name, text = FILES[case]
    path = write(tmp_path, text, name)
    takers = [x.format for x in DIALECTS if x.sniff(path, path.read_bytes()[:4096])]
    assert takers == [case.split(maxsplit=1)[0]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", "epoch,train_loss,val_loss\n0,3,4\n"),
        ("log.csv", "step,loss\n0,3\n"),
        ("progress.csv", "trial_id,training_iteration,num episodes\nab,1,3\n"),
        ("x.csv", "epoch,loss,acc,val_loss\n0,1,2,3\n"),
        ("x.csv", "epoch,step,loss\n0,9,3\n"),
        ("x.csv", ""),
        ("x.csv", b"\0\1\2" * 500),
        ("monitor.csv", '#{"t_start": 3}\nwords\n'),
    ],
)
def test_no_dialect_takes_what_is_not_its_own(tmp_path: Path, name: str, text: str | bytes) -> None:
    path = write(tmp_path, text, name)
    assert [x.format for x in DIALECTS if x.sniff(path, path.read_bytes()[:4096])] == []


# --- Lightning


def test_lightning_rows_of_training_and_validation(tmp_path: Path) -> None:
    text = (
        "epoch,lr-SGD,step,train_loss,val_loss\r\n,0.1,0,,\r\n0,,49,2.0,\r\n0,,49,,2.2\r\n,0.1,50,,\r\n"
        "0,,99,1.5,\r\n0,,99,,1.8\r\n1,,149,1.2,\r\n1,,149,,1.9\r\n"
    )
    result = read(LightningCsv(), write(tmp_path, text))
    assert result.points("train_loss") == [(49, 2.0), (99, 1.5), (149, 1.2)]
    assert result.points("val_loss") == [(49, 2.2), (99, 1.8), (149, 1.9)]
    assert result.points("lr-SGD") == [(0, 0.1), (50, 0.1)]
    assert result.damaged == 0


def test_lightning_hyperparameters_beside_a_log(tmp_path: Path) -> None:
    lone = write(tmp_path, "lr: 0.1\n", "alone/hparams.yaml")
    assert claimed(lone) is None, "without a log there is no run"
    text = "lr: 0.1\nmodel:\n  depth: 3\nlayers:\n- 1\n- 2\nuser: ann\n? odd\n"
    path = write(tmp_path, text, "version_0/hparams.yaml")
    write(tmp_path, "epoch,step,loss\n0,9,3\n", "version_0/metrics.csv")
    assert claimed(path) == "lightning-hparams"
    result = read(LightningHparams(), path)
    assert result.params == {"lr": 0.1, "model.depth": 3, "layers": [1, 2]}
    assert result.damaged == 1, "a key that is no plain one"
    assert any("about persons" in note for note in result.notes)


def test_lightning_keeps_the_order_of_each_tag(tmp_path: Path) -> None:
    text = "epoch,step,train_loss,train_acc_epoch\n0,0,2.3,\n0,1,2.2,\n0,11,,0.31\n1,2,2.1,\n1,3,2.0,\n1,23,,0.44\n"
    result = read(LightningCsv(), write(tmp_path, text))
    assert result.steps("train_loss") == [0, 1, 2, 3]
    assert result.steps("train_acc_epoch") == [11, 23]


def test_lightning_forked_names_and_blank_lines(tmp_path: Path) -> None:
    result = read(
        LightningCsv(),
        write(tmp_path, "epoch,step,loss_step,loss_epoch\n0,9,0.9,\n\n0,19,0.8,\n\n0,19,,0.85\n"),
    )
    assert result.points("loss_step") == [(9, 0.9), (19, 0.8)]
    assert result.points("loss_epoch") == [(19, 0.85)]


def test_lightning_history_that_begins_late(tmp_path: Path) -> None:
    rows = [f"{e},{e * 100},{2 - e / 100:.3f},{e / 100:.3f}" for e in range(35, 60)]
    result = read(LightningCsv(), write(tmp_path, "\n".join(["epoch,step,train/loss,val/map", *rows, ""])))
    assert len(result.points("train/loss")) == 25
    assert result.steps("val/map")[0] == 3500


# --- Keras


def test_keras_counts_epochs_from_zero(tmp_path: Path) -> None:
    text = "epoch,accuracy,loss,lr,val_loss\r\n0,0.5,3,0.001,4\r\n1,0.75,2,0.001,3\r\n"
    result = read(KerasCsv(), write(tmp_path, text, "training.log"))
    assert result.points("val_loss") == [(0, 4.0), (1, 3.0)]
    assert result.metrics.filter(pl.col("tag") == "lr")["epoch"].to_list() == [0.0, 1.0]


def test_keras_validation_that_never_ran(tmp_path: Path) -> None:
    """All NaN: the rows are what the file says; what they mean is for the passes."""
    rows = [f"{e},{2 - e / 10},nan" for e in range(10)]
    result = read(KerasCsv(), write(tmp_path, "\n".join(["epoch,loss,val_loss", *rows, ""])))
    assert len(result.values("val_loss")) == 10
    assert all(math.isnan(v) for v in result.values("val_loss"))
    assert result.damaged == 0


# --- Ultralytics


def test_ultralytics_padded_names_and_values(tmp_path: Path) -> None:
    rows = [PADDED, ["1", "2.5", "3.5", "0.125", "1.5"], ["2", "2.25", "3.25", "0.25", "1.25"]]
    text = "\n".join(",".join(c.rjust(23) for c in row) for row in rows) + "\n"
    result = read(UltralyticsCsv(), write(tmp_path, text, "results.csv"))
    assert result.tags() == PADDED
    assert result.points("metrics/mAP50(B)") == [(1, 0.125), (2, 0.25)]


def test_ultralytics_second_training_in_one_file(tmp_path: Path) -> None:
    rows = [
        f"{e},{24 + 2 * e},{loss - e / 20:.3f},{loss - e / 10:.3f}"
        for loss in (1.3, 1.0)
        for e in range(1, 6)
    ]
    result = read(
        UltralyticsCsv(), write(tmp_path, "\n".join(["epoch,time,train/box_loss,val/box_loss", *rows, ""]))
    )
    assert result.steps("val/box_loss") == [1, 2, 3, 4, 5] * 2
    assert result.values("train/box_loss")[5] == 0.95
    assert result.values("time") == [26.0, 28.0, 30.0, 32.0, 34.0] * 2
    assert result.metrics["wall_ns"].null_count() == len(result.metrics)


def test_ultralytics_second_training_with_more_columns(tmp_path: Path) -> None:
    text = (
        "                  epoch,         train/box_loss,           val/cls_loss\n"
        "                      1,                 2.8546,                    inf\n"
        "                      2,                 1.7537,                    inf\n"
        "                      1,                 2.8546,                    inf,   0.07,   0.0033\n"
        "                      2,                 1.7537,                    inf,   0.03,   0.0033\n"
    )
    result = read(UltralyticsCsv(), write(tmp_path, text, "results.csv"))
    assert result.points("val/cls_loss") == [(1, math.inf), (2, math.inf)]
    assert result.points("train/box_loss") == [(1, 2.8546), (2, 1.7537)]
    assert result.damaged == 2
    assert result.notes == ("2 rows with more cells (5) than the header has names (3) left out: lines 4, 5",)


# --- Stable-Baselines3


def monitor(tmp_path: Path, *rows: str, start: str = '{"t_start": 1700000000.5, "env_id": "A-v1"}') -> Path:
    return write(tmp_path, f"#{start}\nr,l,t\r\n" + "".join(f"{r}\r\n" for r in rows), "0.monitor.csv")


def test_monitor_counts_steps_and_time(tmp_path: Path) -> None:
    result = read(Sb3Monitor(), monitor(tmp_path, "-500.0,500,4.5", "-255.0,256,9.75", "-100.0,101,12"))
    assert result.points("r") == [(500, -500.0), (756, -255.0), (857, -100.0)]
    assert result.values("l") == [500.0, 256.0, 101.0]
    wall = result.metrics.filter(pl.col("tag") == "t")["wall_ns"].to_list()
    assert wall == [1_700_000_005_000_000_000, 1_700_000_010_250_000_000, 1_700_000_012_500_000_000]
    assert result.params == {"t_start": 1700000000.5, "env_id": "A-v1"}
    assert result.notes == ()


def test_monitor_does_not_guess_after_a_missing_length(tmp_path: Path) -> None:
    result = read(Sb3Monitor(), monitor(tmp_path, "1,10,1", "2,,2", "3,10,3"))
    assert result.steps("r") == [10, None, None]
    assert result.values("r") == [1.0, 2.0, 3.0]


def test_monitor_clock_ends_where_time_goes_back(tmp_path: Path) -> None:
    result = read(Sb3Monitor(), monitor(tmp_path, "1,10,1", "2,10,2", "3,10,0.5", "4,10,3"))
    wall = result.metrics.filter(pl.col("tag") == "r")["wall_ns"].to_list()
    assert wall == [1_700_000_001_500_000_000, 1_700_000_002_500_000_000, None, None]
    assert result.steps("r") == [10, 20, 30, 40]


@pytest.mark.parametrize("start", ["{", '{"t_start": "soon"}', '{"t_start": 12.5}', '["t_start"]'])
def test_monitor_without_a_usable_start_has_no_clock(tmp_path: Path, start: str) -> None:
    result = read(Sb3Monitor(), monitor(tmp_path, "1,10,1", start=start))
    assert result.metrics["wall_ns"].to_list() == [None] * 3
    assert result.steps("r") == [10]


def test_progress_of_sb3(tmp_path: Path) -> None:
    text = (
        "time/iterations,rollout/ep_rew_mean,time/fps,time/total_timesteps,train/loss\n"
        "1,-20.5,2848,2048,\n2,-19.25,1704,4096,0.5\n"
    )
    result = read(Sb3Progress(), write(tmp_path, text, "progress.csv"))
    assert result.points("rollout/ep_rew_mean") == [(2048, -20.5), (4096, -19.25)]
    assert result.points("train/loss") == [(4096, 0.5)]


def test_progress_of_baselines(tmp_path: Path) -> None:
    result = read(
        Sb3Progress(), write(tmp_path, "eprewmean,loss,total timesteps\n1,3,128\n2,2,256\n", "progress.csv")
    )
    assert result.points("loss") == [(128, 3.0), (256, 2.0)]
    result = read(Sb3Progress(), write(tmp_path, "loss,num episodes\n3,4\n2,8\n", "none.csv"))
    assert result.points("loss") == [(None, 3.0), (None, 2.0)]
    assert result.values("num episodes") == [4.0, 8.0]


# --- Chainer


def test_chainer_blank_is_nothing(tmp_path: Path) -> None:
    text = "epoch,iteration,elapsed_time,main/loss,validation/main/loss\n0,0,4.5, ,18.5\n0,1,5.0,29.5, \n0,2,5.5,28.5, \n1,3,6.0,27.5,17.5\n"
    result = read(ChainerCsv(), write(tmp_path, text))
    assert result.points("main/loss") == [(1, 29.5), (2, 28.5), (3, 27.5)]
    assert result.points("validation/main/loss") == [(0, 18.5), (3, 17.5)]
    assert result.metrics.filter(pl.col("tag") == "main/loss")["epoch"].to_list() == [0.0, 0.0, 1.0]
    assert result.values("elapsed_time") == [4.5, 5.0, 5.5, 6.0]
    assert result.damaged == 0


@pytest.mark.parametrize("loader", [*DIALECTS, CsvLog()], ids=lambda x: x.format)
def test_formats_declare_themselves(loader: Loader) -> None:
    assert loader.family == "curves"
    assert loader.generic is (loader.format == "csv")
    assert not loader.snapshot
