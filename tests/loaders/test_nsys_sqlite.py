"""Nsight Systems exports: every schema gives the same rows, and every row its right name, lane and time."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.schema import Tables
from afterrun.loaders.traces.nsys import metrics, sqlite_store, store
from tests.support.loading import CORPUS, claimed, corpus_records, needs_corpus, write
from tests.support.nsys import MEMORY, PID, SCHEMAS, UTC_NS, Export, packed, steady

SPAN = ("process", "device", "lane", "track", "name", "start_ns", "dur_ns", "corr", "bytes")


def tables(path: Path) -> Tables:
    return collect([path]).tables


def run(path: Path) -> dict[str, Any]:
    (found,) = inventory(collect([path]))["runs"]
    return dict(found)


def spans(path: Path, *lanes: str) -> list[dict[str, Any]]:
    """Rows of some lanes by time, without columns that say nothing."""
    rows = tables(path).spans
    rows = rows.filter(pl.col("lane").is_in(lanes)) if lanes else rows
    texts = [pl.col(c).cast(pl.String) for c in ("lane", "name")]
    found = rows.with_columns(texts).select(SPAN).sort("start_ns", maintain_order=True).to_dicts()
    return [{k: v for k, v in row.items() if v is not None} for row in found]


def busy_ns(starts: np.ndarray, ends: np.ndarray) -> int:
    """Length of the union of intervals, by an own way: the number of open intervals between sorted ends."""
    times = np.concatenate([starts, ends])
    step = np.concatenate([np.ones(len(starts)), -np.ones(len(ends))])
    order = np.lexsort((-step, times))
    times, open_ = times[order], np.cumsum(step[order])
    return int(np.diff(times)[open_[:-1] > 0].sum())


# -- schemas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_gives_the_same_kernels(tmp_path: Path, schema: str) -> None:
    export = Export(schema)
    export.kernel(1000, 1080, name="void gemm<float>(int)", corr=export.launch(at=970))
    export.kernel(1100, 1150, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", streamId=20)
    path = export.write(tmp_path / "report1.sqlite")
    clock = 0 if schema == "2020" else UTC_NS
    assert claimed(path) == "nsys-sqlite"
    assert spans(path, "kernel", "comm") == [
        {
            "process": PID, "device": 0, "lane": "kernel", "track": 7, "name": "void gemm<float>(int)",
            "start_ns": clock + 1000, "dur_ns": 80, "corr": 101,
        },
        {
            "process": PID, "device": 0, "lane": "comm", "track": 20,
            "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "start_ns": clock + 1100, "dur_ns": 50,
        },
    ]  # fmt: skip
    assert spans(path, "runtime") == [
        {
            "process": PID, "lane": "runtime", "track": PID, "name": "cudaLaunchKernel",
            "start_ns": clock + 970, "dur_ns": 5, "corr": 101,
        }
    ]  # fmt: skip
    assert run(path)["params"].get("trace.schema") == (None if schema == "2020" else schema)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_waits_are_named_by_the_call_that_caused_them(tmp_path: Path, schema: str) -> None:
    export = Export(schema)
    for i, (kind, call) in enumerate(
        [
            ("stream", "cudaStreamSynchronize_v3020"),
            ("device", "cudaDeviceSynchronize_v3020"),
            ("event", "cudaEventSynchronize_v3020"),
            ("wait", "cudaStreamWaitEvent_v3020"),
        ]
    ):
        export.wait(i * 100 + 1, i * 100 + 50, kind, export.launch(call, at=i * 100, dur=60, tid=PID + 3))
    export.wait(900, 950, "device", 77)
    path = export.write(tmp_path / "report1.sqlite")
    found = [(row["name"], row["track"]) for row in spans(path, "sync")]
    own = PID + 3
    assert found == [
        ("Stream Sync", own), ("Context Sync", own), ("Event Sync", own), ("Stream Wait Event", own), ("Sync", 0)
    ]  # fmt: skip


def test_a_table_with_a_version_in_its_name_is_read(tmp_path: Path) -> None:
    export = steady(5)
    export.suffix = "_V2"
    assert run(export.write(tmp_path / "a.sqlite"))["devices"][0]["kernels"] == 5


def test_a_table_without_rows_or_without_columns_is_no_failure(tmp_path: Path) -> None:
    path = Export().write(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (foo INTEGER)")
        db.execute('CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER)')
    assert run(path)["devices"] == []


def test_nvprof_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "prof.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE StringTable (_id_ INTEGER, value TEXT)")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (_id_ INTEGER, start INT, end INT)")
    assert claimed(path) is None


def test_a_git_lfs_pointer_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "report1.sqlite"
    )
    (source,) = run(path)["sources"]
    assert (source["status"], source["rows"]) == ("unreadable", {})
    assert "git lfs pull" in source["note"]


# -- copies, sets, graphs --------------------------------------------------------------------------------


def test_copies_and_sets_are_called_as_elsewhere(tmp_path: Path) -> None:
    export = Export()
    export.copy(0, 10).copy(20, 30, kind=2, ends=(2, 1), size=8).copy(40, 50, kind=8, ends=(2, 2))
    export.copy(60, 70, kind=10, ends=(2, 2)).copy(80, 90, kind=11, ends=(None, None)).copy(
        100, 110, ends=(None, 5)
    )
    export.set_(120, 130, size=32).set_(140, 150, memKind=4)
    path = export.write(tmp_path / "a.sqlite")
    assert [(row["lane"], row["name"], row["bytes"]) for row in spans(path)] == [
        ("memcpy", "Memcpy HtoD (Pageable -> Device)", 4096),
        ("memcpy", "Memcpy DtoH (Device -> Pinned)", 8),
        ("memcpy", "Memcpy DtoD (Device -> Device)", 4096),
        ("memcpy", "Memcpy PtoP (Device -> Device)", 4096),
        ("memcpy", "Memcpy HtoD (Managed -> Managed)", 4096),
        ("memcpy", "Memcpy HtoD (Unknown -> Device)", 4096),
        ("memset", "Memset (Device)", 32),
        ("memset", "Memset (Managed)", 64),
    ]


def test_kinds_of_memory_are_those_of_the_file(tmp_path: Path) -> None:
    export = Export()
    for row, label in zip(export.rows["ENUM_CUDA_MEM_KIND"], ("Unknown", *MEMORY), strict=False):
        row["label"] = label
    path = export.copy(0, 10, ends=(1, 3)).write(tmp_path / "a.sqlite")
    assert spans(path)[0]["name"] == "Memcpy HtoD (Pageable -> Device)"


def test_a_graph_is_busy_where_its_kernels_are_not_recorded(tmp_path: Path) -> None:
    export = Export().kernel(0, 100).graph(200, 1200, corr=33).kernel(1300, 1400)
    (device,) = run(export.write(tmp_path / "a.sqlite"))["devices"]
    wanted = {"kernels": 2, "kernel_busy_ns": 200, "busy_ns": 1200, "idle_ns": 200, "span_ns": 1400}
    assert {key: device[key] for key in wanted} == wanted


def test_a_graph_is_not_counted_beside_its_kernels(tmp_path: Path) -> None:
    export = Export().graph(200, 1200, corr=33).graph(2000, 2100, corr=34)
    export.kernel(200, 300, corr=33, graphNodeId=1).kernel(900, 1200, corr=33, graphNodeId=2)
    path = export.write(tmp_path / "a.sqlite")
    assert [row["start_ns"] - UTC_NS for row in spans(path, "graph")] == [2000]
    assert run(path)["devices"][0]["busy_ns"] == 100 + 300 + 100
    assert "1 graph launches counted by their kernels" in run(path)["sources"][0]["note"]


def test_processes_that_number_their_devices_alike_stay_apart(tmp_path: Path) -> None:
    export = Export().kernel(0, 100)
    for pid in (5001, 5002):
        export.kernel(0, 60, globalPid=packed(pid)).kernel(100, 200, globalPid=packed(pid), deviceId=1)
    devices = run(export.write(tmp_path / "a.sqlite"))["devices"]
    assert [(d["process"], d["device"], d["busy_ns"]) for d in devices] == [
        (PID, 0, 100), (5001, 0, 60), (5001, 1, 100), (5002, 0, 60), (5002, 1, 100)
    ]  # fmt: skip


# -- ranges and marks ------------------------------------------------------------------------------------


def ranges(path: Path) -> list[tuple[str, str, int | None]]:
    rows = tables(path).spans.filter(pl.col("device").is_null()).sort("start_ns", maintain_order=True)
    return list(rows.select(pl.col("lane", "name").cast(pl.String), "step").iter_rows())


def test_ranges_by_text_and_by_number(tmp_path: Path) -> None:
    export = Export().range(0, 10, "forward").range(20, 30, "step_7", registered=True, event=60)
    export.range(40, 50, "DataLoader.next_batch").range(60, 70, "save_checkpoint", registered=True)
    assert ranges(export.write(tmp_path / "a.sqlite")) == [
        ("annotation", "forward", None),
        ("annotation", "step_7", 7),
        ("data", "DataLoader.next_batch", None),
        ("checkpoint", "save_checkpoint", None),
    ]


def test_operators_lose_their_number(tmp_path: Path) -> None:
    export = Export().range(0, 10, "aten::mm, op_id = 314290").range(20, 30, "aten::mm, seq = 12, op_id = 5")
    assert ranges(export.write(tmp_path / "a.sqlite")) == [("cpu_op", "aten::mm", None)] * 2


def test_a_range_that_says_nothing_is_what_its_domain_is(tmp_path: Path) -> None:
    export = Export().range(5, 10, "ncclAllReduce", domain=3).range(5, 10, "layer1", domain=4)
    export.range(-100, None, "NCCL", event=75, domain=3, registered=True)
    export.range(-100, None, "TensorRT", event=75, domain=4, registered=True)
    assert ranges(export.write(tmp_path / "a.sqlite")) == [
        ("comm", "ncclAllReduce", None), ("annotation", "layer1", None)
    ]  # fmt: skip


def test_marks_open_ranges_and_other_events(tmp_path: Path) -> None:
    export = (
        Export()
        .range(500, None, "epoch 3", event=34)
        .range(600, None, "never closed")
        .range(1, None, "cat", event=33)
    )
    path = export.kernel(0, 10).write(tmp_path / "a.sqlite")
    marks = tables(path).marks
    assert marks.select("t_ns", pl.col("kind").cast(pl.String), "text").rows() == [
        (UTC_NS + 500, "nvtx", "epoch 3")
    ]
    assert ranges(path) == []
    assert "1 ranges were open" in run(path)["sources"][0]["note"]


def test_os_calls_are_on_their_thread(tmp_path: Path) -> None:
    path = Export().os_call(5, 25, "read", tid=PID + 9).write(tmp_path / "a.sqlite")
    assert spans(path) == [
        {"process": PID, "lane": "os", "track": PID + 9, "name": "read", "start_ns": UTC_NS + 5, "dur_ns": 20}
    ]


# -- facts -----------------------------------------------------------------------------------------------


def test_the_environment_is_never_read(tmp_path: Path) -> None:
    export = steady(3).add("META_DATA_CAPTURE", name="ENV_HF_TOKEN", value="hunter2-secret")
    path = export.write(tmp_path / "a.sqlite")
    everything = json.dumps(inventory(collect([path]))) + "".join(
        str(f.rows()) for _, f in tables(path).items()
    )
    assert "hunter2" not in everything
    assert "HF_TOKEN" not in everything


def test_devices_that_worked_are_described(tmp_path: Path) -> None:
    export = Export().kernel(0, 10, deviceId=1)
    for i, name in enumerate(("Microsoft Basic Render Driver", "NVIDIA A100", "NVIDIA H100")):
        export.add(
            "TARGET_INFO_GPU", id=i, name=name, totalMemory=80 * 2**30, smCount=108, cuDevice=i - 1,
            computeMajor=8, computeMinor=0,
        )  # fmt: skip
    params = run(export.write(tmp_path / "a.sqlite"))["params"]
    assert {k: v for k, v in params.items() if k.startswith("trace.device")} == {
        "trace.device.1.name": "NVIDIA H100",
        "trace.device.1.total_memory_bytes": 80 * 2**30,
        "trace.device.1.sm_count": 108,
        "trace.device.1.compute_capability": "8.0",
    }


def test_devices_are_numbered_as_cuda_does(tmp_path: Path) -> None:
    export = Export("3.25.0").kernel(0, 10)
    for i, name in enumerate(("NVIDIA T4", "NVIDIA H100")):
        export.add("TARGET_INFO_GPU", id=i, name=name, cuDevice=i)
        export.add("TARGET_INFO_CUDA_DEVICE", gpuId=i, cudaId=1 - i, pid=PID)
    params = run(export.write(tmp_path / "a.sqlite"))["params"]
    assert params["trace.device.0.name"] == "NVIDIA H100"


def test_memory_of_2021_is_in_mebibytes(tmp_path: Path) -> None:
    export = Export("2020").kernel(0, 10)
    export.add("TARGET_INFO_CUDA_GPU", deviceId=0, name="Tesla V100", globalMemorySize=32510)
    params = run(export.write(tmp_path / "a.sqlite"))["params"]
    assert params["trace.device.0.total_memory_bytes"] == 32510 * 2**20


def test_complaints_of_the_profiler_are_marks(tmp_path: Path) -> None:
    export = steady(2)
    for severity, clock, text in (
        (1, 1, "started"),
        (2, 1, "Buffers full in /home/ann/x"),
        (2, 2, "lost"),
        (3, 1, "bad"),
    ):
        export.add("DIAGNOSTIC_EVENT", timestamp=50, timestampType=clock, severity=severity, text=text)
    export.add("DIAGNOSTIC_EVENT", timestamp=99, timestampType=1, severity=3, text="bad")
    marks = tables(export.write(tmp_path / "a.sqlite")).marks
    assert marks.select("t_ns", "text").rows() == [
        (UTC_NS + 50, "warning: Buffers full in ~/x"), (None, "warning: lost"), (UTC_NS + 50, "error: bad")
    ]  # fmt: skip


def test_an_incredible_start_of_the_session_is_not_used(tmp_path: Path) -> None:
    export = Export(anchored=False).kernel(10, 20).add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=-5)
    path = export.write(tmp_path / "a.sqlite")
    assert spans(path)[0]["start_ns"] == 10
    assert "times count from the start of the capture" in run(path)["sources"][0]["note"]


def test_negative_times_are_times(tmp_path: Path) -> None:
    path = Export("2020").kernel(-500, -400).kernel(100, 200).write(tmp_path / "a.sqlite")
    assert run(path)["devices"][0]["span_ns"] == 700


def test_sched_events_are_named_as_not_read(tmp_path: Path) -> None:
    path = steady(2).add("SCHED_EVENTS", start=0, cpu=1, isSchedIn=1).write(tmp_path / "a.sqlite")
    assert run(path)["sources"][0]["note"] == "not read: SCHED_EVENTS"


# -- GPU metrics -----------------------------------------------------------------------------------------

METRICS = ("GR Active [Throughput %]", "GPC Clock Frequency [MHz]", "SMs Active [Throughput %]")


def metered(samples: int) -> Export:
    """Two GPUs, three metrics, one sample a ms."""
    export = steady(2)
    for gpu in (0, 1):
        for i, name in enumerate(METRICS):
            export.add(
                "TARGET_INFO_GPU_METRICS", typeId=(7 << 8) + gpu, typeName="x", metricId=i, metricName=name
            )
            for at in range(samples):
                export.add(
                    "GPU_METRICS",
                    timestamp=at * 10**6,
                    typeId=(7 << 8) + gpu,
                    metricId=i,
                    value=10 * gpu + at,
                )
    return export


def test_gpu_metrics_are_samples(tmp_path: Path) -> None:
    rows = tables(metered(3).write(tmp_path / "a.sqlite")).samples
    assert len(rows) == 2 * 3 * 3
    of = rows.filter((pl.col("counter") == "gr_active_pct") & (pl.col("device") == 1)).sort("t_ns")
    assert of["value"].to_list() == [10, 11, 12]
    assert of["t_ns"].to_list() == [UTC_NS, UTC_NS + 10**6, UTC_NS + 2 * 10**6]
    assert set(rows["counter"].cast(pl.String)) >= {"gr_active_pct", "sm_active_pct"}


def test_too_many_gpu_metrics_are_averaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_VALUES", 100)
    path = metered(20).write(tmp_path / "a.sqlite")
    of = (
        tables(path)
        .samples.filter((pl.col("counter") == "gr_active_pct") & (pl.col("device") == 0))
        .sort("t_ns")
    )
    assert of["value"].to_list() == [4.5, 14.5]
    assert "averaged over windows of 10 ms" in run(path)["sources"][0]["note"]


# -- no activity is a state ------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", SCHEMAS)
def test_no_activity_is_said(tmp_path: Path, schema: str) -> None:
    export = Export(schema)
    export.launch()
    found = run(export.write(tmp_path / "a.sqlite"))
    assert found["devices"] == []
    assert "no GPU activity recorded" in found["sources"][0]["note"]


def test_copies_alone_are_activity(tmp_path: Path) -> None:
    found = run(Export().copy(0, 10).write(tmp_path / "a.sqlite"))
    assert found["devices"][0]["kernels"] == 0
    assert "no kernels recorded" in found["sources"][0]["note"]


# -- large tables ----------------------------------------------------------------------------------------


def test_a_table_in_many_stretches_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = steady(1003).write(tmp_path / "a.sqlite")
    whole = tables(path).spans
    monkeypatch.setattr(sqlite_store, "CHUNK_ROWS", 100)
    assert tables(path).spans.equals(whole)
    assert len(whole) == 2006


def test_rows_far_apart_are_all_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = steady(10).write(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = rowid * 900000000000000000 WHERE rowid > 1")
    monkeypatch.setattr(sqlite_store, "CHUNK_ROWS", 4)
    assert run(path)["devices"][0]["kernels"] == 10


def test_small_tables_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_FEW_ROWS", 3)
    export = steady(1)
    for i in range(9):
        export.add("DIAGNOSTIC_EVENT", timestamp=i, timestampType=1, severity=2, text=f"warning {i}")
    assert len(tables(export.write(tmp_path / "a.sqlite")).marks) == 3


# -- the corpus ------------------------------------------------------------------------------------------


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("record", [*corpus_records("nsys_sqlite")], ids=lambda r: Path(r["path"]).stem)
def test_corpus(record: dict[str, Any]) -> None:
    truth = record["truth"]
    if "nsys" not in truth:
        return
    found = tables(CORPUS / record["path"]).spans.filter(pl.col("device").is_not_null())
    per_device = truth["nsys"].get("per_device") or []
    kernels = found.filter(pl.col("lane").is_in(["kernel", "comm"]))
    for wanted in per_device:
        mine = kernels.filter(pl.col("device") == wanted["dev"])
        start = mine["start_ns"].to_numpy()
        union = busy_ns(start, start + mine["dur_ns"].to_numpy())
        assert (len(mine), int(mine["dur_ns"].sum()), union) == (
            wanted["n"],
            wanted["sum_ns"],
            wanted["union_busy_ns"],
        )
    for number, wanted in (truth.get("nsys_gpuactivity") or {}).items():
        mine = found.filter(pl.col("device") == int(number))
        start = mine["start_ns"].to_numpy()
        assert busy_ns(start, start + mine["dur_ns"].to_numpy()) == wanted["busy_ns"]
    if not per_device:
        assert kernels.is_empty()
