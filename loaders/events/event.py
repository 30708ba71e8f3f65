"""``Event`` protobufs one at a time: the slow, complete way to read what the fast one does not.

Only the limits of each part are found; images, graphs and other blobs are passed over uncopied.
Field numbers: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from afterrun.loaders.protowire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Field,
    WireError,
    fields,
    float64,
    signed,
)

SIMPLE, OLD_HISTOGRAM, IMAGE, HISTO, AUDIO, TENSOR = 2, 3, 4, 5, 6, 8
"""Numbers of ``Summary.Value``: what kind of payload a value has."""

_PAYLOADS = frozenset({SIMPLE, OLD_HISTOGRAM, IMAGE, HISTO, AUDIO, TENSOR})

_WIRES = {1: FIXED64, 2: VARINT, **dict.fromkeys(range(3, 11), BYTES)}
"""Wire types of the fields of ``Event``."""

_BLOBS = {4: "graph", 6: "log message", 8: "run-metadata record", 9: "graph"}
"""Fields of ``Event`` that are counted and skipped."""


@dataclass(slots=True)
class Value:
    """One value of a summary. ``kind`` is 0 where it has metadata only; payload and content are limits."""

    tag: bytes = b""
    kind: int = 0
    at: int = 0
    end: int = 0
    plugin: bytes | None = None
    content: tuple[int, int] | None = None


@dataclass(slots=True)
class Event:
    """One event. ``wall_at`` and ``step_at`` are the places of these numbers, None where left out."""

    wall_at: int | None = None
    wall_s: float | None = None
    step_at: int | None = None
    step: int = 0
    values: list[Value] = field(default_factory=list)
    session: Field | None = None
    blobs: list[str] = field(default_factory=list)
    is_version: bool = False


def parse(view: memoryview, at: int, end: int) -> Event:
    """Find the parts of the event ``view[at:end]``; fields may stand in any order. Raises ``WireError``."""
    event = Event()
    for part in fields(view, at, end):
        number = part.number
        if part.wire != _WIRES.get(number, part.wire):
            raise WireError(f"field {number} of an event has the wrong type")
        if number == 1:
            event.wall_at, event.wall_s = part.at, float64(view, part.at)
        elif number == 2:
            event.step_at, event.step = part.at, signed(part.value)
        elif number == 5:
            event.values += [
                _value(view, item)
                for item in fields(view, part.at, part.end)
                if item.number == 1 and item.wire == BYTES
            ]
        elif number == 7:
            event.session = part
        elif number == 3:
            event.is_version = True
        elif number in _BLOBS:
            event.blobs.append(_BLOBS[number])
    return event


def _value(view: memoryview, item: Field) -> Value:
    value = Value()
    for part in fields(view, item.at, item.end):
        if part.number == 1:
            value.tag = bytes(view[part.at : part.end])
        elif part.number in _PAYLOADS:
            if part.wire != (FIXED32 if part.number == SIMPLE else BYTES):
                raise WireError(f"field {part.number} of a value has the wrong type")
            value.kind, value.at, value.end = part.number, part.at, part.end
        elif part.number == 9:
            value.plugin, value.content = _plugin(view, part)
    return value


def _plugin(view: memoryview, metadata: Field) -> tuple[bytes | None, tuple[int, int] | None]:
    """Name of the plugin that shows a value, and the limits of what it keeps in the metadata."""
    name, content = None, None
    for data in fields(view, metadata.at, metadata.end):
        if data.number != 1 or data.wire != BYTES:
            continue
        for part in fields(view, data.at, data.end):
            if part.number == 1:
                name = bytes(view[part.at : part.end])
            elif part.number == 2:
                content = (part.at, part.end)
    return name, content
