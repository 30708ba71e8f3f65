"""Small traces for tests, made event by event, and what a loader made of a file, as plain Python values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from afterrun.loaders.registry import Loader
from afterrun.loaders.schema import LOADER_COLUMNS, conform
from tests.support.loading import source

Event = dict[str, Any]

PID = 99
BASE_NS = 1_700_000_000_000_000_000


def kernel(name: str, ts: float, dur: float, *, stream: int = 7, device: int = 0, **args: Any) -> Event:
    """A kernel; times in microseconds."""
    return _on_device("kernel", name, (ts, dur), {"device": device, "stream": stream} | args)


def copy(name: str, ts: float, dur: float, *, stream: int = 7, device: int = 0, **args: Any) -> Event:
    """A copy."""
    return _on_device("gpu_memcpy", name, (ts, dur), {"device": device, "stream": stream} | args)


def _on_device(cat: str, name: str, time: tuple[float, float], args: dict[str, Any]) -> Event:
    place = {"pid": args["device"], "tid": args["stream"]}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": time[0], "dur": time[1], "args": args}


def host(cat: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    """An event of the host's main thread."""
    return {"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": PID, "ts": ts, "dur": dur, "args": args}


def launch(ts: float, correlation: int, dur: float = 5) -> Event:
    """The call that launches a kernel."""
    return host("cuda_runtime", "cudaLaunchKernel", ts, dur, correlation=correlation)


def trace(events: Sequence[Event], **top: Any) -> str:
    """A trace as Kineto lays it out: the base time behind the events."""
    tail = {key: top.pop(key) for key in ("baseTimeNanoseconds", "WARNING", "INFO") if key in top}
    head = json.dumps({"schemaVersion": 1, **top})[:-1]
    body = ",\n  ".join(map(json.dumps, events))
    return f'{head}, "traceEvents": [\n  {body}\n  ]{"," + json.dumps(tail)[1:] if tail else "}"}'


def write_trace(path: Path, text: str | bytes) -> Path:
    """The text as a file, packed where the name says so."""
    data = text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


@dataclass(frozen=True)
class TraceRead:
    """All batches of one file put together."""

    spans: pl.DataFrame
    samples: pl.DataFrame
    kernels: pl.DataFrame
    marks: pl.DataFrame
    params: dict[str, Any]
    damaged: int
    notes: str
    status: str | None

    def rows(self, *columns: str, **where: Any) -> list[tuple[Any, ...]]:
        """Some columns of the spans that have these values, by start."""
        frame = self.spans.with_columns(pl.col(pl.Categorical).cast(pl.String))
        for column, value in where.items():
            frame = frame.filter(pl.col(column).is_null() if value is None else pl.col(column) == value)
        return frame.sort("start_ns", maintain_order=True).select(columns).rows()


def read_trace(loader: Loader, path: Path) -> TraceRead:
    """Load one file; every frame is held against the schema."""
    batches = list(loader.load(source(path)))
    tables = {}
    for name in ("spans", "samples", "kernels", "marks", "params"):
        frames = [conform(name, b.frames[name]) for b in batches if name in b.frames]
        tables[name] = pl.concat(frames) if frames else pl.DataFrame(schema=LOADER_COLUMNS[name])
    params = tables.pop("params").select("key", "value").iter_rows()
    return TraceRead(
        **tables,
        params={str(k): json.loads(v) for k, v in params},
        damaged=sum(b.damaged for b in batches),
        notes="; ".join(n for b in batches for n in b.notes),
        status=next((b.status for b in batches if b.status), None),
    )


def activity(spans: pl.DataFrame) -> dict[int, tuple[int, int, int, int]]:
    """device -> (kernels, busy, idle, span in ns), busy as a union; counted here by a plain sweep."""
    found = {}
    rows = spans.with_columns(pl.col("lane").cast(pl.String))
    rows = rows.filter(
        pl.col("lane").is_in(["kernel", "comm", "memcpy", "memset"]) & pl.col("device").is_not_null()
    )
    for (device,), mine in rows.partition_by("device", as_dict=True).items():
        times = sorted((s, s + d) for s, d in mine.select("start_ns", "dur_ns").rows())
        low, end, busy = times[0][0], times[0][0], 0
        for start, stop in times:
            busy += max(0, stop - max(start, end))
            end = max(end, stop)
        kernels = sum(mine["lane"].is_in(["kernel", "comm"]))
        found[device] = (kernels, busy, end - low - busy, end - low)
    return found
