"""The generic CSV loader: what it takes, what it leaves to others, what becomes of each kind of column."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.curves.csv_log import CsvLog
from tests.support.loading import claimed, load_claimed, read, write

CURVES = {
    "epoch and metrics": ("log.csv", "epoch,avg_reward,skill_acc\n-1,1.5,0.5\n0,1.75,0.625\n"),
    "any numbers along a step": ("a.csv", "step,alpha\n0,1\n1,2\n"),
    "two axes": ("epoch.tsv", "step\tepoch\n49\t0\n99\t0\n"),
    "metrics without an axis": ("a.csv", "train_loss,val_loss\n3,4\n2,3\n"),
    "one metric column": ("losses.txt", "loss\n3.5\n2.5\n"),
    "semicolons and decimal commas": ("a.csv", "epoch;loss\n0;2,5\n1;1,5\n"),
    "a text column beside": ("a.csv", "epoch,phase,loss\n0,warmup,3\n1,main,2\n"),
    "header only": ("a.csv", "epoch,loss,val_loss\n"),
    "per cent names": ("a.csv", "epoch,val acc (%)\n0,50\n1,60\n"),
    "utf-16": ("a.csv", "epoch,loss\r\n0,3\r\n1,2\r\n".encode("utf-16")),
    "any suffix": ("train.log", "epoch,loss\n0,3\n1,2\n"),
    "dates with times and a metric": ("a.csv", "date,loss\n2024-02-01 00:00:01,3\n2024-02-01 00:00:02,2\n"),
    "cells of several lines": ("a.csv", 'step,loss,note\n0,3,"a\nb"\n1,2,"c\n\nd"\n'),
    "stray quotes": ("a.csv", 'step,loss,note\n0,3,"a\n1,2,"b\n2,1,c\n'),
    "zeros of a crash among the first rows": ("a.csv", b"step,loss\n0,3\n1,2\n" + bytes(600) + b"\n3,1\n"),
    "columns named like the run": ("a.csv", "run,step,loss\nr1,0,3\nr1,1,2\nr1,2,1\n"),
}

OTHERS = {
    "git-lfs pointer": (
        "loss.csv",
        "version https://git-lfs.github.com/spec/v1\noid sha256:00ff\nsize 135780\n",
    ),
    "traceback": (
        "log.csv",
        'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    x, y = step(loss, 1)\nValueError: 3, 4\n',
    ),
    "text log": ("log.txt", "Epoch 1, loss 0.5, acc 0.25\nEpoch 2, loss 0.25, acc 0.5\n"),
    "progress table": ("log.txt", "Logging to logs\n-----\n| loss | 0.75 |\n| step | 3 |\n-----\n"),
    "JSON lines": ("log.txt", '{"step": 1, "loss": 2.5, "lr": 0.1}\n{"step": 2, "loss": 1.5, "lr": 0.1}\n'),
    "nvidia-smi": (
        "gpu.csv",
        "timestamp, index, utilization.gpu [%], memory.used [MiB]\n2024/01/01 00:00:00.000, 0, 5 %, 3 MiB\n",
    ),
    "nvidia-smi by hand": (
        "gpu.csv",
        "timestamp,gpu_utilization,memory_used\n1700000000.5,0,0\n1700000001.5,5,3\n",
    ),
    "dmon": (
        "dmon.txt",
        "# gpu    pwr  gtemp\n# Idx      W      C\n    0     69     41\n    0     70     41\n",
    ),
    "dcgm": ("result.csv", "GPUId,TimeStampUs,Watts\n0,1718369824263312,71.12\n0,1718369824307450,71.12\n"),
    "nsys report": ("x.csv", "Time (%),Total Time (ns),Instances,Avg (ns),Name\n50.0,100,2,50.0,k\n"),
    "nsys trace": ("x.csv", "Start (ns),Duration (ns),CorrId,Name\n10,5,1,k\n20,5,2,k\n"),
    "ncu": (
        "x.csv",
        '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","time","ns","12"\n',
    ),
    "grafana": ("x.csv", "Series;Time;Value\ncpu{host=a};2016-05-19T11:36:27.000Z;8.25\n"),
    "influx": (
        "x.csv",
        "#group,FALSE,FALSE\n#datatype,string,long\n#default,mean,\n,result,table,_time,_value\n,,0,2020-01-01T00:00:00Z,3\n",
    ),
    "sacct": ("x.csv", "JobID|State|Elapsed|step\n1|FAILED|00:01:00|3\n2|DONE|00:02:00|4\n"),
    "W&B panel": (
        "x.csv",
        '"Step","a - loss","a - loss__MIN","a - loss__MAX"\n"0","3","3","3"\n"1","2","2","2"\n',
    ),
    "W&B run table": (
        "x.csv",
        '"Name","State","Runtime","lr","loss"\n"calm-sun-1","finished","12","0.1","2.5"\n"wild-sea-2","crashed","3","0.2","3.5"\n',
    ),
    "one row a run": (
        "x.csv",
        "run_name,seed,max_iters,final_loss\na,1,100,2.5\nb,2,100,2.25\nc,3,100,2.125\n",
    ),
    "a grid of settings": ("x.csv", "learning_rate,batch_size,accuracy\n0.1,32,0.5\n0.01,64,0.75\n"),
    "a data set": ("iris.csv", "sepal_length,sepal_width,species\n5.1,3.5,setosa\n4.9,3.0,setosa\n"),
    "prices": ("x.csv", "time,open,high,low,close\n0,1,2,0.5,1.5\n1,1.5,2,1,1.75\n"),
    "numbers only": ("x.csv", "0,2.5\n1,1.5\n"),
    "words only": ("x.csv", "epoch,loss\na,b\nc,d\n"),
    "empty": ("x.csv", ""),
    "binary": ("x.csv", bytes(range(256)) * 4),
}


@pytest.mark.parametrize("case", CURVES)
def test_taken(tmp_path: Path, case: str) -> None:
    name, text = CURVES[case]
    path = write(tmp_path, text, name)
    assert CsvLog().sniff(path, path.read_bytes()[:4096])


@pytest.mark.parametrize("case", OTHERS)
def test_left_to_others(tmp_path: Path, case: str) -> None:
    name, text = OTHERS[case]
    path = write(tmp_path, text, name)
    assert not CsvLog().sniff(path, path.read_bytes()[:4096])


def test_a_header_longer_than_the_head(tmp_path: Path) -> None:
    names = ["epoch", "loss", *(f"layers.{i}.mlp.weight/grad_norm" for i in range(300))]
    path = write(tmp_path, ",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n", "grads.csv")
    assert claimed(path) == "csv"
    assert load_claimed(path)[1].tags() == names


def test_specific_formats_are_asked_first(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, "epoch,acc,loss\n0,0.5,3\n", "a.csv")) == "keras-csv"
    assert claimed(write(tmp_path, "epoch,train_acc,train_loss\n0,0.5,3\n", "b.csv")) == "csv"


def test_order_of_columns_never_matters(tmp_path: Path) -> None:
    one = read(CsvLog(), write(tmp_path, "epoch,loss,lr\n0,3,0.1\n1,2,0.05\n", "a.csv"))
    other = read(CsvLog(), write(tmp_path, "lr,epoch,loss\n0.1,0,3\n0.05,1,2\n", "b.csv"))
    key = ["tag", "step", "epoch", "value"]
    assert one.metrics.select(key).sort(key).equals(other.metrics.select(key).sort(key))


def test_empty_is_no_row_and_nan_is_one(tmp_path: Path) -> None:
    result = read(CsvLog(), write(tmp_path, "step,loss,val\n0,3,\n1,nan,\n2,1,0.5\n3,inf,0\n"))
    assert [(s, str(v)) for s, v in result.points("loss")] == [(0, "3.0"), (1, "nan"), (2, "1.0"), (3, "inf")]
    assert result.points("val") == [(2, 0.5), (3, 0.0)]
    assert result.damaged == 0


def test_bad_cells_are_counted_with_their_lines(tmp_path: Path) -> None:
    rows = [f"{i},{'oops' if i in (3, 7) else i / 2}" for i in range(20)]
    result = read(CsvLog(), write(tmp_path, "\n".join(["step,loss", *rows, ""])))
    assert len(result.points("loss")) == 18
    assert result.damaged == 2
    assert result.notes == ("'loss': 2 cells without a number left out: lines 5, 9",)


def test_many_bad_cells_are_named_in_short(tmp_path: Path) -> None:
    rows = [f"{i},{'oops' if i < 9 else i}" for i in range(40)]
    result = read(CsvLog(), write(tmp_path, "\n".join(["step,loss", *rows, ""])))
    assert result.notes == ("'loss': 9 cells without a number left out: lines 2, 3, 4, 5, 6 and 4 more",)


def test_columns_of_words(tmp_path: Path) -> None:
    text = "step,run,phase,loss\n0,r1,warmup,3\n1,r1,main,2\n"
    result = read(CsvLog(), write(tmp_path, text))
    assert result.params == {"run": "r1"}
    assert result.tags() == ["step", "loss"]
    assert result.notes == ("columns of words left out: phase",)
    assert result.damaged == 0


def test_other_spellings_of_numbers(tmp_path: Path) -> None:
    text = 'step,tokens,acc,done,loss\n0,"1,024",12.5%,False,tensor(0.5)\n1,"2,048",25%,True,tensor(0.25)\n'
    result = read(CsvLog(), write(tmp_path, text))
    assert result.values("tokens") == [1024.0, 2048.0]
    assert result.values("acc") == [12.5, 25.0]
    assert result.values("done") == [0.0, 1.0]
    assert result.values("loss") == [0.5, 0.25]


def test_decimal_comma_is_noted(tmp_path: Path) -> None:
    result = read(CsvLog(), write(tmp_path, "epoch;loss\n0;2,5\n1;1,5\n"))
    assert result.points("loss") == [(0, 2.5), (1, 1.5)]
    assert result.notes == ("numbers have a decimal comma, cells are separated by ';'",)


def test_a_header_without_rows_is_read_and_empty(tmp_path: Path) -> None:
    result = read(CsvLog(), write(tmp_path, "epoch,loss,val_loss\n"))
    assert result.metrics.is_empty()
    assert result.damaged == 0


def test_nothing_to_read_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no header line"):
        read(CsvLog(), write(tmp_path, "0,1\n1,2\n"))


def test_appended_run_with_its_header(tmp_path: Path) -> None:
    result = read(CsvLog(), write(tmp_path, "step,loss\n0,3\n1,2\nstep,loss\n0,9\n1,8\n"))
    assert result.points("loss") == [(0, 3.0), (1, 2.0), (0, 9.0), (1, 8.0)]
    assert result.notes == ("the header comes again, as after a restart: line 4",)


def test_twin_names_stay_two_tags(tmp_path: Path) -> None:
    result = read(CsvLog(), write(tmp_path, "step,loss,loss\n0,3,4\n1,2,3\n"))
    assert result.tags() == ["step", "loss", "loss.1"]
    assert result.values("loss.1") == [4.0, 3.0]


# --- failures reported of other tools


def test_rows_of_a_longer_second_run_are_not_shifted(tmp_path: Path) -> None:
    """Three columns were added in the middle while the old header stayed."""
    old = [f"r1,{i},{1 / (1 + i):.3f},0,0.1" for i in range(5)]
    new = [f"r1,{i},{1 / (1 + i):.3f},cfgA,224,mean,0,0.1" for i in range(5, 8)]
    result = read(CsvLog(), write(tmp_path, "\n".join(["run,step,loss,seed,lr", *old, *new, ""])))
    assert result.points("loss") == [(0, 1.0), (1, 0.5), (2, 0.333), (3, 0.25), (4, 0.2)]
    assert result.values("lr") == [0.1] * 5
    assert result.damaged == 3
    assert result.notes == (
        "3 rows with more cells (8) than the header has names (5) left out: lines 7, 8, 9",
    )


def test_names_with_blanks_in_front(tmp_path: Path) -> None:
    text = "epoch, wall, training_loss, validation_loss\n1, 10.0, 2.0, 2.1\n2, 20.0, 1.0, 1.3\n"
    result = load_claimed(write(tmp_path, text, "metrics_epoch.csv"))[1]
    assert result.points("training_loss") == [(1, 2.0), (2, 1.0)]
    assert result.points("validation_loss") == [(1, 2.1), (2, 1.3)]


def test_two_points_and_a_long_tail_come_whole(tmp_path: Path) -> None:
    rows = ["0,100.0", *(f"{i},1.0" for i in range(1, 51))]
    result = load_claimed(write(tmp_path, "\n".join(["step,loss", *rows, ""]), "curve.csv"))[1]
    assert len(result.points("loss")) == 51
    assert result.points("loss")[0] == (0, 100.0)
    result = load_claimed(write(tmp_path, "step,loss\n0,3.0\n1000,1.0\n", "two.csv"))[1]
    assert result.points("loss") == [(0, 3.0), (1000, 1.0)]


def test_values_repeated_between_evaluations_are_kept(tmp_path: Path) -> None:
    rows = [f"{e},{2 - e / 20},{0.3 + e // 5 / 10}" for e in range(25)]
    result = load_claimed(write(tmp_path, "\n".join(["epoch,train/loss,eval/val/map", *rows, ""])))[1]
    assert len(result.values("eval/val/map")) == 25
    assert len(set(result.values("eval/val/map"))) == 5


def test_wide_file_of_many_tags(tmp_path: Path) -> None:
    names = [f"g{i}/loss" for i in range(20_000)]
    text = ",".join(["step", *names]) + "\n" + ",".join(["7", *["0.5"] * len(names)]) + "\n"
    result = read(CsvLog(), write(tmp_path, text))
    assert len(result.metrics) == 20_001
    assert result.metrics["step"].unique().to_list() == [7]
    assert result.metrics["value"].sum() == 7 + 0.5 * 20_000
    assert result.metrics.schema["value"] == pl.Float64
