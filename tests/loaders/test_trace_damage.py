"""Traces that are damaged in any way: nothing is raised, and what lies outside the damage is kept."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from pathlib import Path

import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.traces.horovod import Horovod
from afterrun.loaders.formats.traces.jaeger import Jaeger
from afterrun.loaders.formats.traces.kineto import Kineto
from afterrun.loaders.formats.traces.zipkin import Zipkin
from afterrun.loaders.registry import Loader
from tests.support.kinetotrace import BASE_NS, host, kernel, launch, read_trace, trace, write_trace
from tests.support.tracedamage import DAMAGES, Text, text_of

QUICK = 300
MANY = {("kineto", 500): 600, ("kineto", 2**21): 2500}
"""Files a case; the small pieces of text have more seams and take longer."""
MANY_OTHERS = 500
EVENTS = 60


def kineto() -> Text:
    """Kernels, calls and frames by turns, each with a name of its own."""
    makers = (
        lambda i: kernel(f"k{i}", 10 * i, 5, grid=[1, 2, 3]),
        lambda i: launch(10 * i, i) | {"name": f"k{i}"},
        lambda i: host("python_function", f"k{i}", 10 * i, 5, note='say "x": {1}'),
    )
    objects = [json.dumps(makers[i % 3](i)).encode() for i in range(EVENTS)]
    whole = trace([], distributedInfo={"rank": 0}, baseTimeNanoseconds=BASE_NS).encode()
    head, tail = whole.split(b"[\n  ", 1)
    return text_of(objects, head + b"[\n  ", b",\n  ", b"\n " + tail)


def horovod() -> Text:
    """Lines of points in time; a phase has two lines and is not one object."""
    objects = [
        json.dumps({"ph": "X", "name": f"k{i}", "ts": 10 * i, "pid": i % 4, "dur": 1}).encode()
        for i in range(EVENTS)
    ]
    return text_of(objects, b"[\n", b",\n", b",\n")


def jaeger() -> Text:
    """One trace of many spans."""
    objects = [
        json.dumps(
            {"traceID": "a", "spanID": str(i), "operationName": f"k{i}", "startTime": 10 * i, "duration": 5}
        ).encode()
        for i in range(EVENTS)
    ]
    return text_of(objects, b'{"data": [{"traceID": "a", "spans": [', b", ", b"]}]}")


def zipkin() -> Text:
    """An array of spans."""
    objects = [
        json.dumps(
            {"traceId": "a", "id": str(i), "name": f"k{i}", "timestamp": 10 * i, "duration": 5}
        ).encode()
        for i in range(EVENTS)
    ]
    return text_of(objects, b"[", b", ", b"]")


CASES: dict[str, tuple[Loader, Text]] = {
    "kineto": (Kineto(), kineto()),
    "horovod": (Horovod(), horovod()),
    "jaeger": (Jaeger(), jaeger()),
    "zipkin": (Zipkin(), zipkin()),
}


def held_against(folder: Path, loader: Loader, text: Text, seeds: range) -> None:
    """Every event that the damage does not touch is there."""
    path = folder / "t.json"
    for seed in seeds:
        dice = random.Random(seed)
        damage = DAMAGES[seed % len(DAMAGES)]
        data, intact = damage(text, dice)
        path.write_bytes(data)
        try:
            read = read_trace(loader, path)
        except UnreadableError:
            assert not intact, (damage.__name__, seed)
            continue
        names = {name for (name,) in read.rows("name")}
        missing = {f"k{i}" for i in intact} - names
        assert not missing, (damage.__name__, seed, missing, read.notes)


def set_piece(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in ("traces.kineto.capture", "formats.traces.horovod"):
        monkeypatch.setattr(f"afterrun.loaders.{module}.PIECE_BYTES", size)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("piece", [500, 2**21])
def test_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, piece: int) -> None:
    set_piece(monkeypatch, piece)
    held_against(tmp_path, *CASES[name], range(QUICK // 4))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("piece", [500, 2**21])
def test_many_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, piece: int) -> None:
    set_piece(monkeypatch, piece)
    held_against(tmp_path, *CASES[name], range(10_000, 10_000 + MANY.get((name, piece), MANY_OTHERS)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_gzip_cut_short(tmp_path: Path, share: float) -> None:
    events = [kernel(f"k{i} {random.Random(i).random()}", 10 * i, 5) for i in range(2000)]
    packed = gzip.compress(trace(events).encode(), mtime=0)
    packed = packed[: int(len(packed) * share)]
    had = zlib.decompressobj(31).decompress(packed)
    read = read_trace(Kineto(), write_trace(tmp_path / "t.bin", packed))
    assert len(read.spans) == had.count(b'"kernel"') - (not had.rstrip().endswith(b"}}")), "all whole events"
    assert (read.status, "the gzip ends early" in read.notes) == ("partial", True)


def test_foreign_bytes_in_names(tmp_path: Path) -> None:
    text = trace([kernel("ONE", 1, 2), kernel("TWO", 5, 2), kernel("three", 9, 2)]).encode()
    text = text.replace(b"ONE", b"na\xefve").replace(b"TWO", b"a\x01b\\ud800c")
    read = read_trace(Kineto(), write_trace(tmp_path / "t.json", text))
    assert [n for (n,) in read.rows("name")] == ["na\ufffdve", "a b\ufffdc", "three"]
    assert read.damaged == 0
    assert "were mended" in read.notes


def test_bare_numbers_that_are_none(tmp_path: Path) -> None:
    text = trace([kernel("k", 1, 2, speed="INF"), kernel("b", 5, 2)]).replace('"INF"', "-inf")
    read = read_trace(Kineto(), write_trace(tmp_path / "t.json", text))
    assert (len(read.spans), read.damaged) == (2, 0)


def test_values_of_the_wrong_type_cost_what_they_mean(tmp_path: Path) -> None:
    events = [
        kernel("fine", 1, 2, correlation=7),
        kernel("odd ids", 5, 2, correlation="x") | {"pid": [1], "tid": None},
        kernel("no start", 9, 2) | {"ts": None},
        kernel("no length", 13, 2) | {"dur": {"a": 1}},
        kernel("text times", 17, 2) | {"ts": "17.5", "dur": "2.25"},
        {"ph": 3},
        kernel("nowhere", 21, 2) | {"pid": "GPU", "args": {}},
    ]
    read = read_trace(Kineto(), write_trace(tmp_path / "t.json", trace(events)))
    assert read.rows("name", "start_ns", "dur_ns", "corr") == [
        ("fine", 1000, 2000, 7),
        ("odd ids", 5000, 2000, None),
        ("text times", 17_500, 2250, None),
    ]
    assert read.damaged == 4
