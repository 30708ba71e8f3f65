"""PyTorch profiler traces: lanes, exact times, devices, memory, facts of the capture."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.traces.kineto import Kineto
from afterrun.loaders.registry import HEAD_BYTES
from afterrun.loaders.traces.microseconds import to_ns
from tests.support.kinetotrace import (
    BASE_NS,
    PID,
    Event,
    TraceRead,
    activity,
    copy,
    host,
    kernel,
    launch,
    read_trace,
    trace,
    write_trace,
)
from tests.support.loading import CORPUS, claimed, corpus_records, needs_corpus


def load(folder: Path, events: list[Event], name: str = "t.pt.trace.json", **top: Any) -> TraceRead:
    return read_trace(Kineto(), write_trace(folder / name, trace(events, **top)))


def lanes(read: TraceRead) -> dict[str, str]:
    return dict(read.rows("name", "lane"))


# -- times -------------------------------------------------------------------------------------------


def test_times_are_exact_where_floats_are_not(tmp_path: Path) -> None:
    text = trace([kernel("a", 1, 2), kernel("b", 3, 4)])
    text = text.replace('"ts": 1,', '"ts": 1712195495519790.465,').replace('"dur": 2,', '"dur": 0.001,')
    text = text.replace('"ts": 3,', '"ts": 1712195495519790.466,').replace('"dur": 4,', '"dur": 12,')
    read = read_trace(Kineto(), write_trace(tmp_path / "t.json", text))
    assert read.rows("start_ns", "dur_ns") == [(1712195495519790465, 1), (1712195495519790466, 12_000)]


@given(st.lists(st.integers(-(10**18), 10**18), min_size=1))
def test_every_nanosecond_survives(values: list[int]) -> None:
    texts = [str(Decimal(v).scaleb(-3)).encode() for v in values]
    assert to_ns(texts).to_list() == values
    assert to_ns([b'"' + t + b'"' for t in texts]).to_list() == values, "as strings, too"


def test_what_is_no_time_is_null() -> None:
    texts = [b"null", b'"x"', b"[1]", b'{"a":\n1}', b"9e30", b"-", b"5e15", b"7"]
    assert to_ns(texts).to_list() == [None] * 7 + [7000], "5e15 us lie beyond the year 2096"
    assert to_ns([]).to_list() == []


def test_base_time_anchors_relative_times(tmp_path: Path) -> None:
    read = load(tmp_path, [kernel("k", 1209600000000.25, 3)], baseTimeNanoseconds=BASE_NS)
    assert read.rows("start_ns") == [(BASE_NS + 1_209_600_000_000_250,)]


def test_base_time_is_not_added_to_times_since_1970(tmp_path: Path) -> None:
    read = load(tmp_path, [kernel("k", 1_700_000_000_000_000, 3)], baseTimeNanoseconds=BASE_NS)
    assert read.rows("start_ns") == [(BASE_NS,)]


def test_without_base_time_the_clock_stays_its_own(tmp_path: Path) -> None:
    assert load(tmp_path, [kernel("k", 1000.5, 3)]).rows("start_ns") == [(1_000_500,)]


def test_an_event_on_another_clock_is_left_out(tmp_path: Path) -> None:
    at = 1_700_000_000_000_000
    read = load(tmp_path, [kernel("a", at, 3), kernel("zero", 0, 3), kernel("b", at + 9, 3)])
    assert [n for (n,) in read.rows("name")] == ["a", "b"]
    assert read.damaged == 1
    assert "another clock" in read.notes


# -- lanes -------------------------------------------------------------------------------------------


def test_lanes_of_today(tmp_path: Path) -> None:
    read = load(
        tmp_path,
        [
            kernel("gemm", 10, 5, correlation=1),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 5),
            copy("Memcpy HtoD (Pinned -> Device)", 30, 5, bytes=4096),
            kernel("Memset (Device)", 40, 5) | {"cat": "gpu_memset"},
            kernel("ProfilerStep#3", 50, 5) | {"cat": "gpu_user_annotation", "args": {"External id": 1}},
            launch(1, 1),
            host("cuda_driver", "cuLaunchKernel", 2, 1, correlation=2),
            host("cuda_sync", "Stream Sync", 3, 1, stream=7, device=0, correlation=3),
            host("cpu_op", "aten::mm", 4, 1),
            host("cpu_op", "autograd::engine::evaluate_function: CheckpointFunctionBackward", 5, 1),
            host("cpu_op", "record_param_comms", 6, 1),
            host("user_annotation", "ProfilerStep#3", 7, 9),
            host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 8, 1),
            host("user_annotation", "save_checkpoint", 9, 1),
            host("user_annotation", "## forward ##", 10, 1),
            host("python_function", "torch/nn/modules/module.py(1130): _call_impl", 11, 1),
            host("overhead", "CUPTI overhead", 12, 1),
            host("Trace", "PyTorch Profiler (0)", 0, 1000) | {"pid": "Spans", "tid": "PyTorch Profiler"},
        ],
    )
    assert read.rows("name", "lane", device=0) == [
        ("gemm", "kernel"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "comm"),
        ("Memcpy HtoD (Pinned -> Device)", "memcpy"),
        ("Memset (Device)", "memset"),
        ("ProfilerStep#3", "annotation"),
    ]
    assert read.rows("lane", "step", device=None) == [
        ("runtime", None),
        ("runtime", None),
        ("sync", None),
        ("cpu_op", None),
        ("cpu_op", None),
        ("comm", None),
        ("annotation", 3),
        ("data", None),
        ("checkpoint", None),
        ("annotation", None),
        ("python", None),
    ]
    assert read.params["trace.step_first"] == read.params["trace.step_last"] == 3
    assert read.params["trace.with_stack"] is True
    assert read.damaged == 0


def test_lanes_of_2021(tmp_path: Path) -> None:
    read = load(
        tmp_path,
        [
            kernel("sgemm", 10, 5) | {"cat": "Kernel", "tid": "stream 7"},
            kernel("Memcpy HtoD (Pageable -> Device)", 20, 5, bytes=256) | {"cat": "Memcpy"},
            kernel("Memset (Device)", 30, 5) | {"cat": "Memset"},
            host("Runtime", "cudaMemcpyAsync", 1, 1, correlation=11) | {"tid": "1441273664"},
            host("Operator", "ProfilerStep#5", 2, 9),
            host("Operator", "aten::zero_", 3, 1),
            host("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 4, 1),
        ],
    )
    assert lanes(read) == {
        "sgemm": "kernel",
        "Memcpy HtoD (Pageable -> Device)": "memcpy",
        "Memset (Device)": "memset",
        "cudaMemcpyAsync": "runtime",
        "ProfilerStep#5": "annotation",
        "aten::zero_": "cpu_op",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "data",
    }
    assert read.rows("track", lane="runtime") == [(1441273664,)]


def test_device_stream_and_process(tmp_path: Path) -> None:
    bare = kernel("k", 10, 5) | {"pid": 2, "tid": "stream 13", "args": {}}
    amd = kernel("Cijk", 20, 5, device=2, stream=0, correlation=121)
    call = host("cuda_runtime", "hipLaunchKernel", 1, 1, correlation=121)
    read = load(tmp_path, [bare, amd, call])
    assert read.rows("device", "track", "process", "corr", lane="kernel") == [
        (2, 13, PID, None),
        (2, 0, PID, 121),
    ]


def test_devices_of_two_processes_are_told_by_who_launched(tmp_path: Path) -> None:
    events = [launch(1, 1), launch(2, 2) | {"pid": 100}, launch(3, 3) | {"pid": 100}]
    events += [kernel("a", 10, 1, correlation=1), kernel("b", 10, 1, device=1, correlation=2)]
    events += [kernel("c", 20, 1, device=1)]
    assert load(tmp_path, events).rows("name", "process", lane="kernel") == [
        ("a", PID),
        ("b", 100),
        ("c", 100),
    ]


def test_collectives_have_bytes_and_group(tmp_path: Path) -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    said: Event = {"Process Group Name": "0", "In msg nelems": 1000, "dtype": "BFloat16"}
    listed = said | {"Process Group Ranks": "[0, 2, 4]", "dtype": "Float"}
    cut = said | {"Process Group Ranks": "[0, 1, ..., 7]", "Process Group Name": "pp", "dtype": "Unknown"}
    job = {"rank": 3, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}
    events = [kernel(name, 10 * i, 5, **args) for i, args in enumerate((said, listed, cut))]
    read = load(tmp_path, events, distributedInfo=job)
    assert read.rows("bytes", "group", "rank") == [
        (2000, "ranks 0,1", 3),
        (4000, "ranks 0,2,4", 3),
        (None, "pp", 3),
    ]


# -- what is not activity ----------------------------------------------------------------------------


def test_flows_metadata_and_instants_are_counted(tmp_path: Path) -> None:
    flow = {"ph": "s", "id": 1, "pid": PID, "tid": PID, "ts": 1, "cat": "ac2g", "name": "ac2g"}
    meta = {"name": "process_name", "ph": "M", "ts": 1, "pid": PID, "tid": 0, "args": {"name": "python"}}
    end = {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 9}
    read = load(tmp_path, [kernel("k", 1, 2), flow, flow | {"ph": "f"}, meta, end])
    assert (len(read.spans), read.damaged, read.status) == (1, 0, None)
    assert "4 flow, metadata and instant events" in read.notes


def test_allocations_become_samples(tmp_path: Path) -> None:
    def memory(ts: float, **args: Any) -> Event:
        return {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": ts,
            "args": args,
        }

    gpu = {"Device Type": 1, "Device Id": 0}
    read = load(
        tmp_path,
        [
            memory(1, **gpu, **{"Bytes": 512, "Total Allocated": 512, "Total Reserved": 2048}),
            memory(2.5, **gpu, **{"Bytes": -512, "Total Allocated": 0, "Total Reserved": 2048}),
            memory(
                3,
                **{"Device Type": 0, "Device Id": -1, "Bytes": 4, "Total Allocated": 4, "Total Reserved": 0},
            ),
            memory(4, **{"Device Type": 0, "Device Id": -1, "Bytes": 4}),
        ],
        baseTimeNanoseconds=BASE_NS,
    )
    frame = read.samples.with_columns(pl.col("counter").cast(pl.String)).sort("counter", "t_ns")
    assert frame.select("counter", "device", "t_ns", "value").rows() == [
        ("host_alloc_bytes", None, BASE_NS + 3000, 4.0),
        ("mem_alloc_bytes", 0, BASE_NS + 1000, 512.0),
        ("mem_alloc_bytes", 0, BASE_NS + 2500, 0.0),
        ("mem_reserved_bytes", 0, BASE_NS + 1000, 2048.0),
        ("mem_reserved_bytes", 0, BASE_NS + 2500, 2048.0),
    ]
    assert "1 allocations say no total" in read.notes


def test_counter_tracks_and_ranges(tmp_path: Path) -> None:
    track = {"ph": "C", "name": "queue", "pid": 0, "ts": 5, "args": {"depth": 3, "label": "x"}}
    ranged = kernel("range 1", 10, 5) | {"cat": "cuda_profiler_range", "args": {"sm__cycles.sum": 7.5}}
    read = load(tmp_path, [kernel("k", 1, 2), track, ranged])
    assert read.samples.select("counter", "t_ns", "value").rows() == [("queue depth", 5000, 3.0)]
    columns = ("device", "name", "launch", "metric", "value")
    assert read.kernels.select(columns).rows() == [(0, "range 1", 0, "sm__cycles.sum", 7.5)]


def test_facts_of_the_capture(tmp_path: Path) -> None:
    device = {
        "id": 0,
        "name": "H100",
        "totalGlobalMem": 80,
        "computeMajor": 9,
        "computeMinor": 0,
        "numSms": 132,
    }
    read = load(
        tmp_path,
        [kernel("k", 1, 2)],
        deviceProperties=[device],
        distributedInfo={"backend": "nccl", "rank": 1, "world_size": 8},
        record_shapes=1,
        username="someone",
        host_name="node7.example",
        cuda_runtime_version=12040,
        WARNING=[
            "WARNING:2024-07-15 10:52:38 1074:1074 CuptiActivityProfiler.cpp:914] buffers at /home/someone/x full"
        ],
        INFO=[
            "INFO:2024-07-15 10:52:38 1:1 A.cpp:1] CUPTI stopped early? = 1",
            "INFO:2024-07-15 10:52:38 1:1 A.cpp:1] fine",
        ],
    )
    assert read.params == {
        "trace.profiler": "kineto",
        "trace.record_shapes": True,
        "trace.cuda_runtime_version": 12040,
        "trace.backend": "nccl",
        "trace.world_size": 8,
        "trace.devices": 1,
        "trace.device.0.name": "H100",
        "trace.device.0.total_memory_bytes": 80,
        "trace.device.0.sm_count": 132,
        "trace.device.0.compute_capability": "9.0",
    }
    assert read.marks.select("kind", "text", "rank").rows() == [
        ("diagnostic", "warning: buffers at ~/x full", 1),
        ("diagnostic", "warning: CUPTI stopped early? = 1", 1),
    ]
    assert "someone" not in json.dumps(read.params) + read.notes + str(read.marks["text"].to_list())


def test_a_trace_of_the_host_alone_says_so(tmp_path: Path) -> None:
    read = load(tmp_path, [host("cpu_op", "aten::mm", 1, 2)])
    assert "no activity of a device was recorded" in read.notes


# -- files -------------------------------------------------------------------------------------------


def test_pieces_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [kernel(f"k{i % 7}", 100 * i, 50 + i % 3, correlation=i) for i in range(400)]
    events += [launch(100 * i - 20, i) for i in range(400)]
    whole = load(tmp_path, events, baseTimeNanoseconds=BASE_NS).rows(
        "name", "start_ns", "dur_ns", "corr", "lane"
    )
    for size in (300, 1000, 4097):
        monkeypatch.setattr("afterrun.loaders.traces.kineto.capture.PIECE_BYTES", size)
        for name in ("a.json", "a.json.gz"):
            read = load(tmp_path, events, name, baseTimeNanoseconds=BASE_NS)
            assert read.rows("name", "start_ns", "dur_ns", "corr", "lane") == whole
            assert (read.damaged, read.status) == (0, None)


def test_layouts(tmp_path: Path) -> None:
    events = [kernel("a", 1, 2), kernel("b", 5, 2)]
    texts = {
        "compact": json.dumps({"traceEvents": events, "schemaVersion": 1}, separators=(",", ":")),
        "indented": json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "x"}, indent=2),
        "bare": json.dumps(events),
        "marked": "\ufeff" + trace(events),
        "lists behind": json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "A"}]}),
    }
    for name, text in texts.items():
        path = write_trace(tmp_path / f"{name}.json", text)
        assert claimed(path) == "kineto", name
        read = read_trace(Kineto(), path)
        assert [n for (n,) in read.rows("name")] == ["a", "b"], name
        assert (read.damaged, read.status) == (0, None), (name, read.notes)


def test_sniffing(tmp_path: Path) -> None:
    packed = write_trace(tmp_path / "t.pt.trace.json.gz", trace([kernel("k", 1, 2)] * 500))
    assert claimed(packed) == "kineto"
    other = {"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [{"ph": "M", "name": "process_name"}]}
    for text in (json.dumps(other), "{}", "[1, 2]", "", '{"loss": 1}'):
        assert not Kineto().sniff(Path("x.json"), text.encode()[:HEAD_BYTES])


def test_no_events_at_all(tmp_path: Path) -> None:
    read = load(tmp_path, [])
    assert (len(read.spans), read.damaged) == (0, 0)
    with pytest.raises(UnreadableError):
        read_trace(Kineto(), write_trace(tmp_path / "x.json", "not a trace at all"))


def test_a_gzip_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afterrun.loaders.limits.INFLATE_GRACE_BYTES", 100_000)
    text = trace([kernel("k", 1, 2)]) + " " * 3_000_000
    path = write_trace(tmp_path / "bomb.json.gz", text)
    read = read_trace(Kineto(), path)
    assert "to 1; reading was stopped" in read.notes
    assert (len(read.spans), read.status) == (1, "partial")


# -- defects that other tools stumbled over ----------------------------------------------------------


def test_b65_windows_paths(tmp_path: Path) -> None:
    events = [kernel("k0", 1000, 10), kernel("k1", 1020, 10)]
    frame = host("python_function", "PATH", 1000, 5)
    text = trace([*events, frame]).replace("PATH", r"torch\cuda\nn\__init__.py(219): _lazy_init")
    read = read_trace(Kineto(), write_trace(tmp_path / "win.pt.trace.json", text))
    assert [n for (n,) in read.rows("name", lane="python")] == [r"torch\cuda\nn\__init__.py(219): _lazy_init"]
    assert (len(read.spans), read.damaged) == (3, 0)
    assert "1 places that are no JSON" in read.notes


def test_b67_cut_inside_an_event(tmp_path: Path) -> None:
    text = trace([kernel(f"k{i}", 1000 + 20 * i, 10) for i in range(50)])
    cut = text.index('"k23"') + 40
    read = read_trace(Kineto(), write_trace(tmp_path / "cut.pt.trace.json", text[:cut]))
    assert [n for (n,) in read.rows("name")] == [f"k{i}" for i in range(23)]
    assert (read.status, read.damaged) == ("partial", 1)
    assert "cut" in read.notes


def test_b68_negative_length(tmp_path: Path) -> None:
    read = load(tmp_path, [kernel("a", 1000, 10), kernel("b", 1020, -5), kernel("c", 1040, 10)])
    assert activity(read.spans) == {0: (2, 20_000, 30_000, 50_000)}
    assert read.damaged == 1


def test_b69_overrun(tmp_path: Path) -> None:
    events = [kernel("gemm", ts, 100) for ts in (0, 400, 600, 800)]
    read = load(tmp_path, [*events, kernel("fmha", 200, 1_600_000)])
    assert activity(read.spans) == {0: (5, 600_000, 300_000, 900_000)}
    assert "1 kernels claim to run on" in read.notes


@pytest.mark.parametrize("base_ns", [None, BASE_NS])
def test_b72_kernels_long_before_their_launch(tmp_path: Path, base_ns: int | None) -> None:
    at = 10_000_000_000 if base_ns else 1_700_000_000_000_000
    events = [launch(at + 100 * i, i) for i in range(10)]
    events += [kernel("k", at + 100 * i + 10 - 1e11 * (i < 2), 50, correlation=i) for i in range(10)]
    read = load(tmp_path, events, **({"baseTimeNanoseconds": base_ns} if base_ns else {}))
    assert activity(read.spans) == {0: (8, 400_000, 350_000, 750_000)}
    assert read.damaged == 2


def test_b73_neither_steps_nor_rank(tmp_path: Path) -> None:
    read = load(tmp_path, [kernel("k", 100 * i, 60) for i in range(10)])
    assert activity(read.spans) == {0: (10, 600_000, 360_000, 960_000)}
    assert read.spans["rank"].null_count() == 10
    assert "trace.step_first" not in read.params


def test_b74_all_three_steps(tmp_path: Path) -> None:
    events = [host("user_annotation", f"ProfilerStep#{i}", 1000 * i, 990) for i in range(3)]
    read = load(tmp_path, events + [kernel("k", 1000 * i + 10, 900) for i in range(3)])
    assert read.rows("step", lane="annotation") == [(0,), (1,), (2,)]
    assert (read.params["trace.step_first"], read.params["trace.step_last"]) == (0, 2)


# -- real files --------------------------------------------------------------------------------------


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("record", list(corpus_records("kineto")), ids=lambda r: r["id"])
def test_corpus(record: dict[str, Any]) -> None:
    """Numbers of kernels as an independent sweep counted them; its sums went through floats of 0.25 us."""
    path = CORPUS / record["path"]
    read = read_trace(Kineto(), path)
    truth = record["truth"].get("full", record["truth"])["raw"]
    no_activity = {"Trace", "cuda_profiler_range"}
    assert len(read.spans) == sum(n for cat, n in truth["cats"].items() if cat not in no_activity)
    assert read.damaged == 0
    devices = activity(read.spans)
    assert {str(d): k for d, (k, *_) in devices.items()} == {d: v["n"] for d, v in truth["kernels"].items()}
    for device, kernels in truth["kernels"].items():
        lane = pl.col("lane").cast(pl.String).is_in(["kernel", "comm"])
        mine = read.spans.filter((pl.col("device") == int(device)) & lane)
        assert mine["dur_ns"].sum() == pytest.approx(1000 * kernels["sum_us"], abs=10 + 250 * kernels["n"])


# -- ranks ---------------------------------------------------------------------------------------------


def write_rank(path: Path, rank: int | None, of: int = 2, length: int = 10) -> None:
    job = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": of}}
    write_trace(path, trace([launch(0, 1), kernel("k", 10, length, correlation=1)], **job))


def ranks(root: Path) -> dict[str, list[int | None]]:
    """Run -> rank of each of its devices."""
    runs = inventory(collect([root]))["runs"]
    return {run["run"]: [device["rank"] for device in run["devices"]] for run in runs}


def test_ranks_of_one_job_are_one_run_whatever_their_files_are_called(tmp_path: Path) -> None:
    for rank, name in enumerate(("node1_17.1700000000123456789", "node1_18.1700000001123456789")):
        write_rank(tmp_path / "ddp" / f"{name}.pt.trace.json", rank)
    assert ranks(tmp_path) == {"ddp": [0, 1]}


def test_the_file_says_its_rank_before_its_name(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_rank(
            tmp_path / "ddp" / f"worker{1 - rank}.1700000000123.pt.trace.json.gz", rank, length=10 + rank
        )
    run = inventory(collect([tmp_path]))["runs"][0]
    assert {d["rank"]: d["busy_ns"] for d in run["devices"]} == {0: 10_000, 1: 11_000}


def test_captures_of_one_job_one_after_the_other(tmp_path: Path) -> None:
    for pid, rank in ((17, 0), (18, 1)):
        for capture in (1, 2):
            write_rank(tmp_path / f"node1_{pid}.170000000{capture}.pt.trace.json", rank)
    assert ranks(tmp_path) == {"node1_17.1700000001": [0, 1], "node1_17.1700000002": [0, 1]}


def test_a_capture_that_one_rank_missed(tmp_path: Path) -> None:
    """Rank 1 left no file of the first of two captures, an hour apart; clocks of the nodes differ by a second."""
    for pid, rank, second in ((17, 0, 1_700_000_000), (17, 0, 1_700_003_600), (18, 1, 1_700_003_599)):
        write_rank(tmp_path / f"node1_{pid}.{second}123456789.pt.trace.json", rank)
    assert ranks(tmp_path) == {
        "node1_17.1700000000123456789": [0],
        "node1_17.1700003600123456789": [0, 1],
    }


def test_captures_that_cannot_be_told_apart_stay_apart(tmp_path: Path) -> None:
    for name, rank in (("a", 0), ("b", 0), ("c", 1)):
        write_rank(tmp_path / f"{name}.pt.trace.json", rank)
    assert ranks(tmp_path) == {"a": [0], "b": [0], "c": [1]}


def test_a_worker_alone_is_no_rank_of_many(tmp_path: Path) -> None:
    write_rank(tmp_path / "one" / "worker0.1700000000123.pt.trace.json", None)
    write_rank(tmp_path / "part" / "worker0.1700000000123.pt.trace.json", 3, of=8)
    for worker in (0, 1):
        write_rank(tmp_path / "named" / f"worker{worker}.pt.trace.json", None)
    assert ranks(tmp_path) == {"named": [0, 1], "one": [None], "part": [3]}
