"""Which columns become axes, by name and by content; what is refused as one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from afterrun.loaders.formats.curves.csv_log import CsvLog
from afterrun.loaders.tables.axes import AxisColumns
from afterrun.loaders.tables.reader import TableReader
from afterrun.loaders.tables.wide import WideTable, melt
from tests.support.loading import Read, claimed, read, write

T0_NS = 1_700_000_000_000_000_000


def log(tmp_path: Path, *lines: str) -> Read:
    return read(CsvLog(), write(tmp_path, "\n".join([*lines, ""])))


@pytest.mark.parametrize(
    "name",
    [
        "step",
        "Step",
        "global_step",
        "Global Step",
        "trainer/global_step",
        "iteration",
        "iter",
        "_step",
        "total timesteps",
        "time/total_timesteps",
        "episode",
        "batch",
    ],
)
def test_step_by_name(tmp_path: Path, name: str) -> None:
    result = log(tmp_path, f"{name},loss", "10,3.0", "20,2.0")
    assert result.points("loss") == [(10, 3.0), (20, 2.0)]
    assert result.points(name) == [(10, 10.0), (20, 20.0)], "an axis stays a row of its own"


def test_the_most_telling_name_wins_in_any_order(tmp_path: Path) -> None:
    one = log(tmp_path, "_step,trainer/global_step,loss", "0,50,3.0", "1,100,2.0")
    other = log(tmp_path, "loss,trainer/global_step,_step", "3.0,50,0", "2.0,100,1")
    assert one.points("loss") == other.points("loss") == [(50, 3.0), (100, 2.0)]


def test_fractions_are_no_steps(tmp_path: Path) -> None:
    result = log(tmp_path, "step,loss", "0.25,3.0", "0.5,2.0")
    assert result.points("loss") == [(None, 3.0), (None, 2.0)]
    assert result.values("step") == [0.25, 0.5]


def test_a_measure_called_steps_is_no_axis(tmp_path: Path) -> None:
    """Episode lengths go up and down; a counter does not."""
    result = log(tmp_path, "steps,reward", "200,1", "50,2", "180,3", "20,4", "90,5")
    assert result.steps("reward") == [None] * 5
    assert result.values("steps") == [200.0, 50.0, 180.0, 20.0, 90.0]


def test_epoch_alone_counts_the_steps(tmp_path: Path) -> None:
    result = log(tmp_path, "epoch,loss,val_loss", "-1,3.0,", "0,2.0,2.5", "1,1.0,2.0")
    assert result.points("loss") == [(-1, 3.0), (0, 2.0), (1, 1.0)]
    assert result.points("val_loss") == [(0, 2.5), (1, 2.0)]
    assert result.metrics.filter(pl.col("tag") == "loss")["epoch"].to_list() == [-1.0, 0.0, 1.0]


def test_fractional_epochs_fill_the_epoch_only(tmp_path: Path) -> None:
    result = log(tmp_path, "epoch,loss", "0.5,3.0", "1.0,2.0")
    assert result.points("loss") == [(None, 3.0), (None, 2.0)]
    assert result.metrics.filter(pl.col("tag") == "loss")["epoch"].to_list() == [0.5, 1.0]


def test_many_rows_an_epoch_have_no_step(tmp_path: Path) -> None:
    """With step = epoch, nine of ten rows would pass for overwritten ones."""
    rows = [f"{i // 10},{5 - i / 10}" for i in range(30)]
    result = log(tmp_path, "epoch,loss", *rows)
    assert result.steps("loss") == [None] * 30
    assert any("stays the same over rows" in n for n in result.notes)


def test_train_and_validation_rows_of_one_epoch_keep_their_step(tmp_path: Path) -> None:
    result = log(tmp_path, "epoch,train_loss,val_loss", "0,3.0,", "0,,3.5", "1,2.0,", "1,,2.5")
    assert result.points("train_loss") == [(0, 3.0), (1, 2.0)]
    assert result.points("val_loss") == [(0, 3.5), (1, 2.5)]


def test_a_counter_within_the_epoch_is_no_step(tmp_path: Path) -> None:
    rows = [f"{e},{b},{1 / (1 + e + b / 4)}" for e in range(3) for b in range(4)]
    result = log(tmp_path, "epoch,iter,loss", *rows)
    assert result.steps("loss") == [None] * 12
    assert result.metrics.filter(pl.col("tag") == "loss")["epoch"].to_list() == [
        float(e) for e in range(3) for _ in range(4)
    ]
    assert any("starts again in every epoch" in n for n in result.notes)


def test_a_restart_does_not_make_it_one(tmp_path: Path) -> None:
    """Step and epoch fall back together: an appended run, whose steps count."""
    rows = [f"{i // 2},{i},{9 - i}" for i in range(6)]
    result = log(tmp_path, "epoch,step,loss", *rows, *rows)
    assert result.steps("loss") == [0, 1, 2, 3, 4, 5] * 2


def test_no_axis_at_all(tmp_path: Path) -> None:
    result = log(tmp_path, "loss,reward", "3,0.5", "2,0.75")
    assert result.points("loss") == [(None, 3.0), (None, 2.0)]
    assert result.metrics["seq"].to_list() == [0, 1, 2, 3]
    assert result.notes == ("no column counts steps or epochs; rows keep their order",)


def test_the_index_of_a_data_frame(tmp_path: Path) -> None:
    result = log(tmp_path, ",loss,val_loss", "0,3,4", "1,2,3", "2,1,2")
    assert result.tags() == ["loss", "val_loss"]
    assert result.steps("val_loss") == [0, 1, 2]
    assert result.notes == ("steps are those of the unnamed index column",)
    result = log(tmp_path, "Unnamed: 0,epoch,loss", "0,10,3", "1,20,2")
    assert result.tags() == ["epoch", "loss"]
    assert result.steps("loss") == [10, 20]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("timestamp", ("1700000000", "1700000001.5")),
        ("wall_time", ("1700000000000", "1700000001500")),
        ("_timestamp", ("1.7e9", "1700000001.5")),
        ("time", ("1700000000.0", "1700000001.5")),
        ("time", ("2023-11-14T22:13:20Z", "2023-11-14T22:13:21.5Z")),
        ("datetime", ("2023-11-14 22:13:20", "2023-11-14 22:13:21.500")),
        ("start time", ("2023/11/14 22:13:20", "2023/11/14 22:13:21.5")),
    ],
)
def test_wall_clock(tmp_path: Path, name: str, cells: tuple[str, str]) -> None:
    assert datetime.fromtimestamp(T0_NS // 10**9, UTC).isoformat() == "2023-11-14T22:13:20+00:00"
    result = log(tmp_path, f"step,{name},loss", f"0,{cells[0]},3", f"1,{cells[1]},2")
    wall = result.metrics.filter(pl.col("tag") == "loss")["wall_ns"].to_list()
    assert wall == [T0_NS, T0_NS + 1_500_000_000]


@pytest.mark.parametrize("name", ["time", "wall", "elapsed_time", "time/time_elapsed", "timestamp"])
def test_relative_times_are_metrics(tmp_path: Path, name: str) -> None:
    result = log(tmp_path, f"step,{name},loss", "0,0.5,3", "1,61,2")
    assert result.metrics["wall_ns"].null_count() == len(result.metrics)
    assert result.values(name) == [0.5, 61.0]


def test_tokens(tmp_path: Path) -> None:
    result = log(tmp_path, "step,tokens,loss", "0,1024,3", "1,2048,2")
    assert result.metrics.filter(pl.col("tag") == "loss")["tokens"].to_list() == [1024, 2048]


def test_an_unreadable_step_costs_the_step_only(tmp_path: Path) -> None:
    result = log(tmp_path, "step,loss", "0,4", "1,3", "x2,2", "3,1")
    assert result.points("loss") == [(0, 4.0), (1, 3.0), (None, 2.0), (3, 1.0)]
    assert result.damaged == 1
    assert result.notes == ("'step': 1 cell without a number left out: line 4",)


# -- columns of words that tell curves apart -----------------------------------------------------


@pytest.mark.parametrize("name", ["split", "phase", "mode", "set", "Subset"])
@pytest.mark.parametrize(
    "words", [("train", "val"), ("TRAIN", "Valid"), ("training", "test"), ("train", "dev"), ("train", "eval")]
)
def test_rows_of_a_split_are_curves_of_their_own(tmp_path: Path, name: str, words: tuple[str, str]) -> None:
    a, b = words
    result = log(
        tmp_path, f"epoch,{name},loss,acc", f"0,{a},3,0.1", f"0,{b},4,0.2", f"1,{a},2,0.3", f"1,{b},3.5,0.4"
    )
    assert result.points(f"{a}/loss") == [(0, 3.0), (1, 2.0)]
    assert result.points(f"{b}/loss") == [(0, 4.0), (1, 3.5)]
    assert result.points(f"{b}/acc") == [(0, 0.2), (1, 0.4)]
    assert result.values("epoch") == [0, 0, 1, 1], "an axis is that of all"
    assert result.tags() == ["epoch", f"{a}/loss", f"{a}/acc", f"{b}/loss", f"{b}/acc"]
    assert result.notes == ()


def test_a_split_in_the_name_of_a_column_is_not_told_twice(tmp_path: Path) -> None:
    result = log(
        tmp_path, "step,split,loss,val_acc", "0,train,3,", "0,val,4,0.5", "1,train,2,", "1,val,3,0.6"
    )
    assert result.tags() == ["step", "train/loss", "val/loss", "val_acc"]
    assert result.points("val_acc") == [(0, 0.5), (1, 0.6)]


def test_one_split_after_the_other(tmp_path: Path) -> None:
    rows = [f"{e},{s},{e + add}" for s, add in (("train", 1), ("val", 2)) for e in range(4)]
    result = log(tmp_path, "epoch,split,loss", *rows)
    assert result.points("train/loss") == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert result.points("val/loss") == [(0, 2), (1, 3), (2, 4), (3, 5)]


def test_other_words_and_empty_cells_are_no_split(tmp_path: Path) -> None:
    result = log(tmp_path, "step,phase,loss", "0,warmup,3", "1,main,2")
    assert result.points("loss") == [(0, 3.0), (1, 2.0)]
    assert result.notes == ("columns of words left out: phase",)
    result = log(tmp_path, "step,phase,loss", "0,train,3", "0,,9", "1,val,2")
    assert result.points("loss") == [(0, 9.0)], "of no split"


@pytest.mark.parametrize("name", ["metric", "tag", "name", "key", "variable"])
def test_long_tables(tmp_path: Path, name: str) -> None:
    """One row a measurement, in any order of columns; as data frames are melted."""
    rows = [("train/loss", 3.0, 0), ("val/loss", 4.0, 0), ("train/loss", 2.0, 10), ("val/loss", 3.5, 10)]
    path = write(tmp_path, f"{name},value,step\n" + "".join(f"{n},{v},{s}\n" for n, v, s in rows))
    assert claimed(path) == "csv"
    result = read(CsvLog(), path)
    assert result.points("train/loss") == [(0, 3.0), (10, 2.0)]
    assert result.points("val/loss") == [(0, 4.0), (10, 3.5)]
    assert set(result.tags()) == {"train/loss", "val/loss", "step"}
    assert result.notes == ()


def test_a_long_table_of_epochs_with_a_split_an_index_and_a_second_value(tmp_path: Path) -> None:
    names = ["loss", "acc", "extra"]
    cells = [(e, s, m) for m in names for s in ("train", "val") for e in range(3)]
    path = write(
        tmp_path,
        ",epoch,split,metric,value,std\n"
        + "".join(f"{i},{e},{s},{m},{i},0.5\n" for i, (e, s, m) in enumerate(cells)),
    )
    assert claimed(path) == "csv"
    result = read(CsvLog(), path)
    assert result.points("train/loss") == [(0, 0), (1, 1), (2, 2)]
    assert result.points("val/acc") == [(0, 9), (1, 10), (2, 11)]
    assert result.points("val/acc/std") == [(0, 0.5), (1, 0.5), (2, 0.5)]
    assert "Unnamed: 0" not in result.tags()


def test_labels_do_not_depend_on_the_block_size(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "step,split,metric,value\n"
        + "".join(f"{i},{'train' if i % 3 else 'val'},m{i % 5},{i}\n" for i in range(300)),
    )
    whole, small = (
        pl.concat(
            [
                b.frames["metrics"]
                for b in WideTable(TableReader(path, block_bytes=n)).batches()
                if "metrics" in b.frames
            ]
        )
        for n in (10**6, 500)
    )
    assert whole.equals(small)
    assert whole.filter(pl.col("tag") == "val/m0")["value"].to_list() == list(range(0, 300, 15))


def test_axes_do_not_depend_on_the_block_size(tmp_path: Path) -> None:
    """What a column is, is decided once; later blocks follow."""
    path = write(tmp_path, "step,loss,run\n" + "".join(f"{i},{i / 7!r},r1\n" for i in range(300)))
    whole, small = (
        pl.concat(
            [
                b.frames["metrics"]
                for b in WideTable(TableReader(path, block_bytes=n)).batches()
                if "metrics" in b.frames
            ]
        )
        for n in (10**6, 500)
    )
    assert whole.equals(small)
    assert whole["seq"].to_list() == list(range(600))


def test_melt_is_row_major_and_leaves_nothing_out() -> None:
    values = {"a": pl.Series([1.0, None, 3.0]), "b": pl.Series([4.0, 5.0, float("nan")])}
    axes = AxisColumns(step=pl.Series([10, 20, None], dtype=pl.Int64))
    frame = melt(values, axes, np.array([True, True, True]), 7)
    assert frame["tag"].to_list() == ["a", "b", "b", "a", "b"]
    assert frame["seq"].to_list() == [7, 8, 9, 10, 11]
    assert frame["value"].fill_nan(-1.0).to_list() == [1.0, 4.0, 5.0, 3.0, -1.0]
    assert frame["step"].to_list() == [10, 10, 20, None, None]
    assert melt(values, axes, np.array([False, True, False]), 0)["value"].to_list() == [5.0]
    assert melt({}, AxisColumns(), np.array([True]), 0).is_empty()
