"""What ``nsys stats`` prints: old and new names of reports and columns, console and CSV, units, cut files."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.tables.textblocks import BLOCK_BYTES
from afterrun.loaders.traces.nsys import printed
from tests.support.loading import CORPUS, claimed, needs_corpus, write
from tests.support.nsys import steady

KERNELS = (("53.2", "1,581,300", "89", "17,767.4", "10012.0", "546", "1001103", "25466.2", "void gemm<float, 4>(int, int)"),
           ("46.8", "1391000", "1", "1391000.0", "1391000.0", "1391000", "1391000", "0.0", "relu"))  # fmt: skip
NEW = (
    "Time (%)",
    "Total Time (ns)",
    "Instances",
    "Avg (ns)",
    "Med (ns)",
    "Min (ns)",
    "Max (ns)",
    "StdDev (ns)",
    "Name",
)
OLD = ("Time(%)", "Total Time (ns)", "Instances", "Average", "Minimum", "Maximum", "Name")
TRACE = (
    "Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)",
    "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "Strm", "Name",
)  # fmt: skip
GPU = "NVIDIA A100 (1)"
ACTIVITY = (
    (
        "1000",
        "80",
        "11",
        "1",
        "1",
        "1",
        "32",
        "1",
        "1",
        "16",
        "0.0",
        "0.0",
        "",
        "",
        "",
        "",
        GPU,
        "1",
        "7",
        "gemm<float, 4>",
    ),
    (
        "1100",
        "50",
        "12",
        *[""] * 9,
        "0.038",
        "10594.5",
        "Pageable",
        "Device",
        GPU,
        "1",
        "7",
        "[CUDA memcpy Host-to-Device]",
    ),
    ("1200", "20", "13", *[""] * 9, "0.002", "1.0", "Device", "", GPU, "1", "9", "[CUDA memset]"),
)


def console(
    name: str, header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "CUDA GPU Kernel Summary"
) -> str:
    """A report as printed on a console: columns under a ruler, numbers to the right, names to the left."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    lines = [header, ["-" * w for w in widths], *rows]
    text = "".join(
        " " + "  ".join(c.rjust(w) if i + 1 < len(widths) else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))) + "\n"
        for line in lines
    )  # fmt: skip
    return (
        f"Processing [a.sqlite] with [/opt/nsys/reports/{name}.py]... \n\n ** {title} ({name}):\n\n{text}\n"
    )


def as_csv(header: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def run(path: Path) -> dict[str, Any]:
    (found,) = inventory(collect([path]))["runs"]
    return dict(found)


def kernels(path: Path) -> dict[tuple[str, str], float]:
    rows = collect([path]).tables.kernels
    return {
        (name, metric): value
        for name, metric, value in rows.select(pl.col("name", "metric").cast(pl.String), "value").iter_rows()
    }


def spans(path: Path) -> list[tuple[Any, ...]]:
    rows = collect([path]).tables.spans.sort("start_ns")
    texts = [pl.col(c).cast(pl.String) for c in ("lane", "name")]
    return rows.select(*texts, "process", "device", "track", "start_ns", "dur_ns", "corr", "bytes").rows()


# -- summaries -------------------------------------------------------------------------------------------


def test_a_console_summary(tmp_path: Path) -> None:
    text = console(
        "osrt_sum",
        ("Time (%)", "Total Time (ns)", "Num Calls", "Name"),
        [("9.0", "5", "2", "poll")],
        "OS Runtime Summary",
    )
    text += (
        console("cuda_gpu_kern_sum", NEW, KERNELS)
        + "SKIPPED: a.sqlite does not contain OpenMP event data.\n\n"
    )
    path = write(tmp_path, text, "stats.txt")
    assert claimed(path) == "nsys-stats"
    name = "void gemm<float, 4>(int, int)"
    assert {metric: value for (kernel, metric), value in kernels(path).items() if kernel == name} == {
        "time_total_ns": 1_581_300, "instances": 89, "time_avg_ns": 17_767.4, "time_med_ns": 10_012,
        "time_min_ns": 546, "time_max_ns": 1_001_103, "time_std_ns": 25_466.2,
    }  # fmt: skip
    found = run(path)
    assert found["kernels"] == {"launches": 2, "rows": 14}
    assert found["sources"][0]["note"] == "not taken: osrt_sum; the profiler had no data for 1 of its reports"


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_summary_as_csv(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path, as_csv(NEW, KERNELS, delimiter), "a_cuda_gpu_kern_sum.csv")
    assert claimed(path) == "nsys-stats"
    assert kernels(path)["relu", "time_total_ns"] == 1_391_000
    assert len(kernels(path)) == 14


def test_old_names(tmp_path: Path) -> None:
    rows = [(r[0], r[1].replace(",", ""), r[2], r[3], r[5], r[6], r[8]) for r in KERNELS]
    text = "Running [/opt/nsys/reports/gpukernsum.py a.sqlite]... \n\n"
    text += console("gpukernsum", OLD, rows).partition(":\n\n")[2]
    found = kernels(write(tmp_path, text, "old.txt"))
    assert found["relu", "time_avg_ns"] == 1_391_000
    assert found["void gemm<float, 4>(int, int)", "time_min_ns"] == 546


def test_the_oldest_have_their_unit_in_the_title(tmp_path: Path) -> None:
    text = """\
CUDA API Statistics (nanoseconds)

Time(%)      Total Time       Calls         Average  Name
-------  --------------  ----------  --------------  ----------
   99.0             500           1           500.0  cudaMalloc


CUDA Kernel Statistics (microseconds)

Time(%)      Total Time   Instances         Average  Name
-------  --------------  ----------  --------------  ----------
  100.0             1.5           2            0.75  relu

"""
    path = write(tmp_path, text, "stdout.txt")
    assert claimed(path) == "nsys-stats"
    assert kernels(path) == {
        ("relu", "time_total_ns"): 1500, ("relu", "instances"): 2, ("relu", "time_avg_ns"): 750
    }  # fmt: skip


def test_units_stand_in_the_header(tmp_path: Path) -> None:
    header = [cell.replace("(ns)", "(ms)") for cell in NEW]
    row = ("100.0", "1.5", "2", "0.75", "0.75", "0.5", "1.0", "0.1", "relu")
    assert kernels(write(tmp_path, as_csv(header, [row]), "a.csv"))["relu", "time_total_ns"] == 1_500_000


def test_a_summary_by_grid_does_not_double_the_kernels(tmp_path: Path) -> None:
    header = (*NEW[:-1], "GridXYZ", "BlockXYZ", "Name")
    rows = [(*row[:-1], "1 1 1", "32 1 1", row[-1]) for row in KERNELS]
    text = console("cuda_gpu_kern_sum", NEW, KERNELS) + console("cuda_gpu_kern_gb_sum", header, rows)
    path = write(tmp_path, text, "a.txt")
    assert run(path)["kernels"]["launches"] == 2
    assert "not taken: cuda_gpu_kern_gb_sum" in run(path)["sources"][0]["note"]


@pytest.mark.parametrize(
    "header",
    [
        ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Style", "Range"),
        ("Time (%)", "Total Time (ns)", "Num Calls", "Avg (ns)", "Name"),
        ("Total (MB)", "Count", "Avg (MB)", "Operation"),
    ],
)
def test_other_summaries_are_named_and_not_taken(tmp_path: Path, header: Sequence[str]) -> None:
    path = write(tmp_path, as_csv(header, [["1"] * len(header)]), "a.csv")
    (source,) = run(path)["sources"]
    assert (source["format"], source["status"], source["rows"]) == ("nsys-stats", "empty", {})
    assert "not taken" in source["note"]


def test_cut_names_are_told(tmp_path: Path) -> None:
    rows = [(*KERNELS[0][:-1], "void at::native::vectorized_elem…")]
    path = write(tmp_path, console("cuda_gpu_kern_sum", NEW, rows), "a.txt")
    assert "long names are cut" in run(path)["sources"][0]["note"]


# -- traces ----------------------------------------------------------------------------------------------


def test_a_trace_of_activity(tmp_path: Path) -> None:
    path = write(tmp_path, as_csv(TRACE, ACTIVITY), "a_cuda_gpu_trace.csv")
    assert claimed(path) == "nsys-stats"
    assert spans(path) == [
        ("kernel", "gemm<float, 4>", None, 1, 7, 1000, 80, 11, None),
        ("memcpy", "Memcpy HtoD (Pageable -> Device)", None, 1, 7, 1100, 50, 12, 38_000),
        ("memset", "Memset (Device)", None, 1, 9, 1200, 20, 13, 2000),
    ]
    found = run(path)
    assert found["params"] == {"trace.device.1.name": "NVIDIA A100"}
    assert found["devices"][0]["busy_ns"] == 150


def test_a_trace_in_other_units_and_on_a_console(tmp_path: Path) -> None:
    header = [cell.replace("(ns)", "(us)").replace("Bytes (MB)", "Bytes (B)") for cell in TRACE]
    rows = [
        (str(int(r[0]) / 1000), str(int(r[1]) / 1000), *r[2:12], "37632" if r[12] else "", *r[13:])
        for r in ACTIVITY
    ]
    rows = [tuple(cell or " " for cell in row) for row in rows]
    path = write(tmp_path, console("gputrace", header, rows, "CUDA GPU Trace"), "a.txt")
    assert [(row[5], row[6], row[8]) for row in spans(path)] == [
        (1000, 80, None),
        (1100, 50, 37_632),
        (1200, 20, 37_632),
    ]


def test_names_with_commas_that_were_not_quoted(tmp_path: Path) -> None:
    text = as_csv(TRACE, []) + ",".join(ACTIVITY[0][:-1]) + ",void gemm<float, 4>(int, int)\n"
    assert spans(write(tmp_path, text, "a.csv"))[0][1] == "void gemm<float, 4>(int, int)"


def test_calls_and_ranges_join_the_activity_of_one_file(tmp_path: Path) -> None:
    calls = as_csv(
        ("Start (ns)", "Duration (ns)", "Name", "Result", "CorrID", "Pid", "Tid", "T-Pri", "Thread Name"),
        [("970", "5", "cudaLaunchKernel_v7000", "0", "11", "4000", "4001", "20", "python")],
    )
    ranges = as_csv(
        ("Start (ns)", "End (ns)", "Duration (ns)", "DurChild (ns)", "Name", "PID", "TID", "Lvl", "RangeId"),
        [("900", "1900", "1000", "0", ":step 4", "4000", "4001", "0", "1")],
    )
    path = write(tmp_path, f"{as_csv(TRACE, ACTIVITY)}\n{calls}\n{ranges}", "all.csv")
    found = {row[0]: row for row in spans(path)}
    assert found["runtime"] == ("runtime", "cudaLaunchKernel", 4000, None, 4001, 970, 5, 11, None)
    assert found["annotation"] == ("annotation", "step 4", 4000, None, 4001, 900, 1000, None, None)
    assert collect([path]).tables.spans.filter(pl.col("lane") == "annotation")["step"].to_list() == [4]


def test_a_trace_beside_its_export_is_not_read_twice(tmp_path: Path) -> None:
    steady(3).write(tmp_path / "a.sqlite")
    write(tmp_path, as_csv(TRACE, ACTIVITY), "a_cuda_gpu_trace_base.csv")
    found = inventory(collect([tmp_path]))["runs"]
    assert sum(len(r["devices"]) for r in found) == 1
    notes = [s["note"] for r in found for s in r["sources"] if s["format"] == "nsys-stats"]
    assert notes == ["the same events are read from a.sqlite"]


def test_a_long_trace_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(str(i * 100), *ACTIVITY[0][1:]) for i in range(25)]
    path = write(tmp_path, as_csv(TRACE, rows), "a.csv")
    whole = spans(path)
    monkeypatch.setattr(printed, "PART_ROWS", 10)
    assert spans(path) == whole
    assert len(whole) == 25


def test_a_trace_longer_than_a_block_is_whole(tmp_path: Path) -> None:
    rows = [(str(i * 100), *ACTIVITY[0][1:]) for i in range(40_000)]
    path = write(tmp_path, as_csv(TRACE, rows), "a.csv")
    assert path.stat().st_size > BLOCK_BYTES
    assert run(path)["devices"][0]["kernels"] == 40_000


# -- damage ----------------------------------------------------------------------------------------------


def test_bad_rows_are_counted(tmp_path: Path) -> None:
    bad = [("x", *ACTIVITY[0][1:]), ("5", "-3", *ACTIVITY[0][2:]), ACTIVITY[1]]
    text = as_csv(TRACE, bad) + "1300,20,14"
    (source,) = run(write(tmp_path, text, "a.csv"))["sources"]
    assert (source["rows"]["spans"], source["damaged"], source["status"]) == (1, 3, "partial")


def test_an_empty_file_is_nobodys(tmp_path: Path) -> None:
    document = inventory(collect([write(tmp_path, b"", "nsys_stats.txt")]))
    assert document["unclaimed"] == [{"path": "nsys_stats.txt", "reason": "empty file"}]


@pytest.mark.parametrize(
    "text",
    [
        "start,duration,name\n1,2,x\n",
        "step,Total Time,loss\n1,2,3\n",
        "epoch,count,total\n1,2,3\n",
        "** Results (abc): fine\n1 2\n",
    ],
)
def test_other_tables_are_not_taken(tmp_path: Path, text: str) -> None:
    assert claimed(write(tmp_path, text, "a.csv")) != "nsys-stats"


def test_no_damage_breaks_the_reader(tmp_path: Path) -> None:
    dice = random.Random(5)
    data = (console("cuda_gpu_kern_sum", NEW, KERNELS) + as_csv(TRACE, ACTIVITY)).encode()
    for _ in range(150):
        out = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            at, size = dice.randrange(len(out)), dice.randint(1, 40)
            out[at : at + size] = dice.choice([b"", dice.randbytes(size), b"\n", b'"', b",", b"-----", b"\0"])
        document = inventory(collect([write(tmp_path, bytes(out), "a.txt")]))
        notes = [s["note"] for r in document["runs"] for s in r["sources"]]
        assert not [note for note in notes if "please report" in note], bytes(out)


# -- the corpus ------------------------------------------------------------------------------------------


@needs_corpus
@pytest.mark.corpus
def test_the_corpus_trace_is_that_of_its_export() -> None:
    """The CSV trace and the SQLite export of one run: every kernel, copy and set at the same time."""
    key = ["start_ns", "dur_ns", "lane", "track", "corr"]
    printed_ = collect(
        [CORPUS / "traces/nsys_stats/flame-gputrace/torch-ex_cuda_gpu_trace_base.csv"]
    ).tables.spans
    exported = collect([CORPUS / "traces/nsys_sqlite/flame-torch/torch-ex.sqlite"]).tables.spans
    exported = exported.filter(pl.col("device").is_not_null())
    clock = int(exported["start_ns"].min()) - int(printed_["start_ns"].min())  # type: ignore[arg-type]  # integers
    ours = exported.with_columns(pl.col("start_ns") - clock).select(key).sort(key)
    assert printed_.select(key).sort(key).equals(ours)
    assert len(ours) == 2685
