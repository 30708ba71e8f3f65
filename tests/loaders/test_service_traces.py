"""Jaeger and Zipkin: spans of services as annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.traces.jaeger import Jaeger
from afterrun.loaders.formats.traces.zipkin import Zipkin
from tests.support.kinetotrace import TraceRead, read_trace, write_trace
from tests.support.loading import CORPUS, claimed, corpus_records, needs_corpus

START_US = 1_660_049_722_779_884
START_NS = START_US * 1000

Span = dict[str, Any]


def jaeger_span(name: str, start: int, dur: int, process: str = "p1") -> Span:
    ids = {"traceID": "84b3", "spanID": name, "processID": process}
    return ids | {"operationName": name, "startTime": START_US + start, "duration": dur, "references": []}


TRACE: dict[str, Any] = {
    "traceID": "84b3",
    "spans": [
        jaeger_span("order", 0, 1000),
        jaeger_span("find", 100, 300, "p2"),
        jaeger_span("next_batch", 150, 20),
    ],
    "processes": {
        "p1": {"serviceName": "front"},
        "p2": {"serviceName": "drivers", "tags": [{"value": "node1"}]},
    },
}
ROWS = [
    ("order", "annotation", 0, START_NS, 1_000_000),
    ("find", "annotation", 1, START_NS + 100_000, 300_000),
    ("next_batch", "data", 0, START_NS + 150_000, 20_000),
]


def load(folder: Path, value: object, expected: str) -> TraceRead:
    path = write_trace(folder / "trace.json", value if isinstance(value, str) else json.dumps(value))
    assert claimed(path) == expected
    return read_trace(Jaeger() if expected == "jaeger" else Zipkin(), path)


@pytest.mark.parametrize("value", [{"data": [TRACE], "errors": None}, {"data": TRACE}, TRACE, [TRACE]])
def test_jaeger_documents(tmp_path: Path, value: object) -> None:
    read = load(tmp_path, value, "jaeger")
    assert read.rows("name", "lane", "track", "start_ns", "dur_ns") == ROWS
    assert read.params == {
        "trace.profiler": "jaeger",
        "trace.service.0": "front",
        "trace.service.1": "drivers",
    }
    assert read.rows("device", "process") == [(None, None)] * 3


def test_jaeger_spans_alone(tmp_path: Path) -> None:
    span = jaeger_span("order", 0, 5) | {"process": {"serviceName": "front"}}
    read = load(tmp_path, [span], "jaeger")
    assert read.rows("name", "track") == [("order", 0)]
    assert read.params["trace.service.0"] == "front"


def test_jaeger_cut_file(tmp_path: Path) -> None:
    text = json.dumps({"data": [TRACE]})
    read = load(tmp_path, text[: text.index('"next_batch"')], "jaeger")
    assert [n for (n,) in read.rows("name")] == ["order", "find"]
    assert read.damaged == 1
    assert "damaged or cut" in read.notes
    with pytest.raises(UnreadableError, match="no whole span"):
        load(tmp_path, text[:90], "jaeger")


def zipkin_span(name: str, service: str, **more: Any) -> Span:
    return {"traceId": "5af", "id": "352b", "name": name, "localEndpoint": {"serviceName": service}} | more


def test_zipkin_spans_of_one_identifier_are_two(tmp_path: Path) -> None:
    client = zipkin_span("get", "front", kind="CLIENT", timestamp=START_US, duration=100)
    server = zipkin_span("get", "back", kind="SERVER", timestamp=START_US + 10, duration=70, shared=True)
    read = load(tmp_path, [client, server], "zipkin")
    assert read.rows("name", "track", "start_ns", "dur_ns") == [
        ("get", 0, START_NS, 100_000),
        ("get", 1, START_NS + 10_000, 70_000),
    ]
    assert read.params == {"trace.profiler": "zipkin", "trace.service.0": "front", "trace.service.1": "back"}


def test_zipkin_without_duration_is_not_zero(tmp_path: Path) -> None:
    spans = [
        zipkin_span("whole", "a", timestamp=START_US, duration=0),
        zipkin_span("open", "a", timestamp=START_US),
        zipkin_span("nowhere", "a", duration=5),
        zipkin_span("wrong", "a", timestamp="soon", duration=5),
        zipkin_span("backwards", "a", timestamp=START_US, duration=-5),
    ]
    read = load(tmp_path, spans, "zipkin")
    assert read.rows("name", "dur_ns") == [("whole", 0)]
    assert read.damaged == 4
    assert "1 spans say no duration" in read.notes
    assert "2 spans have no start" in read.notes


def test_zipkin_lists_of_traces_and_version_1(tmp_path: Path) -> None:
    old = {"traceId": "1", "id": "2", "name": "get", "timestamp": START_US, "duration": 5}
    old["annotations"] = [{"value": "sr", "endpoint": {"serviceName": "back", "ipv4": "10.0.0.1"}}]
    read = load(tmp_path, [[old], [zipkin_span("put", "front", timestamp=START_US, duration=7)]], "zipkin")
    assert read.rows("name", "dur_ns") == [("get", 5000), ("put", 7000)]
    assert read.params["trace.service.0"] == "back"


def test_a_document_without_spans_is_empty(tmp_path: Path) -> None:
    read = load(tmp_path, {"data": [TRACE | {"spans": []}]}, "jaeger")
    assert (len(read.spans), read.status) == (0, "empty")


@needs_corpus
@pytest.mark.corpus
@pytest.mark.parametrize("record", list(corpus_records("jaeger")), ids=lambda r: r["id"])
def test_corpus(record: dict[str, Any]) -> None:
    read = read_trace(Jaeger(), CORPUS / record["path"])
    truth = record["truth"]
    assert len(read.spans) == truth["spans"]
    assert read.spans["dur_ns"].sum() == 1000 * truth["sum_dur_us"]
    assert {v for k, v in read.params.items() if "service" in k} <= set(truth["services"])
