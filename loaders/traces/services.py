"""Spans of tracing systems for services (Jaeger, Zipkin): whole documents, times in integer microseconds.

Spans of one request overlap and contain one another; nothing here may be added up. Client and server of one call
may share an identifier and are two spans.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import LENIENT_JSON, MAX_JSON_BYTES, check_size, decode_json
from afterrun.loaders.registry import Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.personal import impersonal
from afterrun.loaders.traces.inflating import Blocks
from afterrun.loaders.traces.lanes import host_lane
from afterrun.loaders.traces.microseconds import MAX_NS
from afterrun.loaders.traces.repair import NEGATIVE, without_negative
from afterrun.loaders.traces.salvage import whole_objects

_BLOCK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Document:
    """The decoded file; of a damaged one the list of whole objects that look like spans, and what is to be said."""

    value: Any
    damaged: int = 0
    notes: tuple[str, ...] = ()


def document(source: Source, is_span: Callable[[dict[str, Any]], bool]) -> Document:
    """One JSON value. Raises ``UnreadableError`` where neither it nor any span of it can be had."""
    check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
    blocks = Blocks(source, _BLOCK_BYTES)
    parts: list[bytes] = []
    held = 0
    for block in blocks:
        parts.append(block)
        held += len(block)
        check_size(source.name, held, MAX_JSON_BYTES)
    text = b"".join(parts).decode("utf-8-sig", "replace")
    try:
        return Document(decode_json(source.name, text))
    except ValueError:
        spans = [value for _, _, value in whole_objects(text, LENIENT_JSON, is_span)]
    reason = blocks.trouble or "the file is damaged or cut"
    if not spans:
        raise UnreadableError(f"{reason}; no whole span in it")
    return Document(spans, 1, (f"{reason}; the spans that are whole were read",))


@dataclass(slots=True)
class ServiceSpans:
    """Collects spans; ``track`` numbers the services in order of appearance."""

    services: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[str, int, str, int, int]] = field(default_factory=list)
    timeless: int = 0
    endless: int = 0

    def add(self, service: object, name: object, start_us: object, dur_us: object) -> None:
        """One span; without a start or a length it is counted only."""
        start, length = _ns(start_us), _ns(dur_us)
        if start is None:
            self.timeless += 1
        elif length is None:
            self.endless += 1
        else:
            told = impersonal(service) if isinstance(service, str) else ""
            track = self.services.setdefault(told, len(self.services))
            called = name if isinstance(name, str) else ""
            self.rows.append((host_lane(called), track, called, start, length))

    def batch(self, profiler: str, read: Document) -> Batch:
        """All of it, with the names of the services."""
        columns = ("lane", "track", "name", "start_ns", "dur_ns")
        types = (pl.Categorical(), pl.Int64(), pl.Categorical(), pl.Int64(), pl.Int64())
        frame, negative = without_negative(
            pl.DataFrame(self.rows, schema=dict(zip(columns, types, strict=True)), orient="row")
        )
        facts = {"trace.profiler": profiler} | {
            f"trace.service.{n}": s for s, n in self.services.items() if s
        }
        params = pl.DataFrame({"key": list(facts), "value": [json.dumps(v) for v in facts.values()]})
        told = (
            (self.timeless, f"{self.timeless} spans have no start and were left out"),
            (
                self.endless,
                f"{self.endless} spans say no duration and were left out: how long they took is not recorded",
            ),
            (negative, NEGATIVE.format(negative)),
        )
        return Batch(
            frames={"spans": frame, "params": params},
            damaged=read.damaged + self.timeless + self.endless + negative,
            notes=(*read.notes, *(note for count, note in told if count)),
            status=None if self.rows else "empty" if not read.damaged else None,
        )


def mappings(value: object) -> Iterable[dict[str, Any]]:
    """The objects of a list; of anything else none."""
    return (x for x in value if isinstance(x, dict)) if isinstance(value, list) else ()


def _ns(value: object) -> int | None:
    """Nanoseconds of a number of microseconds; null where it is none or out of range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > MAX_NS // 1000:
        return None
    return round(value * 1000)
