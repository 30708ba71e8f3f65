"""Horovod timelines: never closed arrays, nested phases, ranks as they become ready."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.traces.horovod import Horovod
from tests.support.kinetotrace import TraceRead, read_trace, write_trace
from tests.support.loading import CORPUS, claimed, corpus_records, needs_corpus

Line = dict[str, Any]


def begin(name: str, ts: int, pid: int = 1) -> Line:
    return {"ph": "B", "name": name, "ts": ts, "pid": pid}


def end(ts: int, pid: int = 1) -> Line:
    return {"ph": "E", "name": "", "ts": ts, "pid": pid}


def ready(rank: int, ts: int, pid: int = 1) -> Line:
    return {"ph": "X", "name": str(rank), "ts": ts, "pid": pid, "dur": 0}


def tensor(pid: int, name: str) -> Line:
    return {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}


def load(folder: Path, lines: list[Line], close: str = ",\n") -> TraceRead:
    path = folder / "timeline.json"
    write_trace(path, "[\n" + ",\n".join(map(json.dumps, lines)) + close)
    assert claimed(path) == "horovod"
    return read_trace(Horovod(), path)


def test_b77_pairs_in_an_array_without_end(tmp_path: Path) -> None:
    pairs = [x for i in range(5) for x in (begin("NEGOTIATE_ALLREDUCE", 1000 + 100 * i), end(1050 + 100 * i))]
    for close in (",\n", "\n]", "\n", ""):
        read = load(tmp_path, pairs, close)
        assert read.rows("name", "dur_ns") == [("NEGOTIATE_ALLREDUCE", 50_000)] * 5
        assert (read.damaged, read.status, read.notes) == (0, None, "")


def test_b77_one_bracket(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "timeline.json", "[")
    assert claimed(path) == "horovod"
    read = read_trace(Horovod(), path)
    assert (len(read.spans), read.status) == (0, "empty")
    assert "empty timeline" in read.notes
    assert claimed(write_trace(tmp_path / "other.json", "[")) is None


def test_phases_nest_by_tensor(tmp_path: Path) -> None:
    read = load(
        tmp_path,
        [
            tensor(1, "grad.0"),
            tensor(2, "grad.1"),
            begin("ALLREDUCE", 100),
            begin("NEGOTIATE_ALLREDUCE", 105, pid=2),
            begin("NCCL_ALLREDUCE", 110),
            end(140),
            end(150, pid=2),
            end(160),
        ],
    )
    assert read.rows("name", "track", "start_ns", "dur_ns") == [
        ("ALLREDUCE", 1, 100_000, 60_000),
        ("NEGOTIATE_ALLREDUCE", 2, 105_000, 45_000),
        ("NCCL_ALLREDUCE", 1, 110_000, 30_000),
    ]
    assert read.rows("lane", "device", "process") == [("comm", None, None)] * 3
    assert read.params == {
        "trace.profiler": "horovod",
        "trace.tensor.1": "grad.0",
        "trace.tensor.2": "grad.1",
    }


def test_the_last_rank_can_be_told(tmp_path: Path) -> None:
    lines = [begin("NEGOTIATE_ALLREDUCE", 100), ready(1, 100), ready(0, 103), ready(2, 190), end(191)]
    read = load(tmp_path, lines)
    assert read.rows("name", "start_ns", dur_ns=0) == [
        ("RANK_READY 1", 100_000),
        ("RANK_READY 0", 103_000),
        ("RANK_READY 2", 190_000),
    ]


def test_cycles_are_counted(tmp_path: Path) -> None:
    cycle = {"ph": "i", "name": "CYCLE_START", "ts": 5, "s": "g"}
    read = load(tmp_path, [cycle, begin("ALLREDUCE", 10), cycle, end(20)])
    assert (len(read.spans), read.damaged) == (1, 0)
    assert "2 marks of cycles" in read.notes


def test_start_of_the_clock(tmp_path: Path) -> None:
    first = {"name": "process_name", "ph": "M", "pid": 0}
    first |= {"args": {"start_time_since_epoch_in_micros": 1_700_000_000_000_000}}
    read = load(tmp_path, [first, begin("NEGOTIATE_ALLREDUCE", 10), end(20)])
    assert read.rows("start_ns") == [(1_700_000_000_000_010_000,)]


def test_what_is_half_is_counted(tmp_path: Path) -> None:
    lines = [
        end(5),
        begin("NEGOTIATE_ALLREDUCE", 10),
        end(20),
        begin("ALLREDUCE", 30),
        begin("X", 50, 3),
        end(40, 3),
    ]
    read = load(tmp_path, lines)
    assert len(read.spans) == 1
    assert read.damaged == 3
    for said in ("1 phases never ended", "1 ends without a beginning", "1 events end before they start"):
        assert said in read.notes
    with pytest.raises(UnreadableError, match="never ended"):
        load(tmp_path, [begin("NEGOTIATE_ALLREDUCE", 10)])


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("record", list(corpus_records("horovod")), ids=lambda r: r["id"])
def test_corpus(record: dict[str, Any]) -> None:
    read = read_trace(Horovod(), CORPUS / record["path"])
    counts = record["truth"]["ph"]
    assert len(read.spans) == counts["('B', '')"] + counts["('X', '')"]
    assert read.damaged == 0
    ends = read.spans["start_ns"] + read.spans["dur_ns"]
    assert ends.max() - read.spans["start_ns"].min() <= 1000 * record["truth"]["span_us"]
