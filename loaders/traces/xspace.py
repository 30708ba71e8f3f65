"""XSpace, the protobuf of JAX's and TensorFlow's profiler, read field by field.

Numbers of fields are those of ``xplane.proto`` in tensorflow/tsl: XSpace.planes 1; XPlane name 2, lines 3, event_metadata 4,
stat_metadata 5; XLine id 1, name 2, timestamp_ns 3, events 4; XEvent metadata_id 1, offset_ps 2, duration_ps 3,
stats 4; XEventMetadata id 1, name 2, display_name 4; XStat metadata_id 1, uint64 3, int64 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from afterrun.loaders.protowire import fields, signed, text


@dataclass(frozen=True, slots=True)
class Event:
    """One event: name, start and length in ns (the file counts picoseconds), correlation id where it has one."""

    name: str
    start_ns: int
    dur_ns: int
    corr: int | None


@dataclass(frozen=True, slots=True)
class Line:
    """A stream of a device or a thread of a host."""

    number: int
    name: str
    events: list[Event]


@dataclass(slots=True)
class Plane:
    """A device or a host. ``lines`` are raw until they are asked for: names of events come behind them."""

    name: str = ""
    _lines: list[memoryview] = field(default_factory=list)
    _events: dict[int, str] = field(default_factory=dict)
    _stats: dict[int, str] = field(default_factory=dict)

    def lines(self) -> Iterator[Line]:
        """The lines with their events."""
        correlation = {i for i, name in self._stats.items() if name == "correlation_id"}
        for view in self._lines:
            yield _line(view, self._events, correlation)


def planes(data: bytes) -> Iterator[Plane]:
    """The planes of a file. Raises ``ValueError`` where it is no such message."""
    view = memoryview(data)
    for f in fields(view, 0, len(view)):
        if f.number == 1 and f.wire == 2:
            yield _plane(view[f.at : f.end])


def _plane(view: memoryview) -> Plane:
    plane = Plane()
    for f in fields(view, 0, len(view)):
        inner = view[f.at : f.end] if f.wire == 2 else None
        if inner is None:
            continue
        if f.number == 2:
            plane.name = text(view, f.at, f.end)
        elif f.number == 3:
            plane._lines.append(inner)
        elif f.number in (4, 5):
            key, name = _entry(inner)
            (plane._events if f.number == 4 else plane._stats)[key] = name
    return plane


def _entry(view: memoryview) -> tuple[int, str]:
    """Key and name of one entry of a map of metadata."""
    key, name, shown = 0, "", ""
    for f in fields(view, 0, len(view)):
        if f.number == 1 and f.wire == 0:
            key = signed(f.value)
        elif f.number == 2 and f.wire == 2:
            value = view[f.at : f.end]
            for g in fields(value, 0, len(value)):
                if g.wire == 2 and g.number == 2:
                    name = text(value, g.at, g.end)
                elif g.wire == 2 and g.number == 4:
                    shown = text(value, g.at, g.end)
    return key, name or shown


def _line(view: memoryview, names: dict[int, str], correlation: set[int]) -> Line:
    number, name, base_ns = 0, "", 0
    raw: list[memoryview] = []
    for f in fields(view, 0, len(view)):
        if f.number == 1 and f.wire == 0:
            number = signed(f.value)
        elif f.number == 2 and f.wire == 2:
            name = text(view, f.at, f.end)
        elif f.number == 3 and f.wire == 0:
            base_ns = signed(f.value)
        elif f.number == 4 and f.wire == 2:
            raw.append(view[f.at : f.end])
    return Line(number, name, [_event(e, base_ns, names, correlation) for e in raw])


def _event(view: memoryview, base_ns: int, names: dict[int, str], correlation: set[int]) -> Event:
    kind = offset_ps = dur_ps = 0
    corr: int | None = None
    for f in fields(view, 0, len(view)):
        if f.wire == 0 and f.number == 1:
            kind = signed(f.value)
        elif f.wire == 0 and f.number == 2:
            offset_ps = signed(f.value)
        elif f.wire == 0 and f.number == 3:
            dur_ps = signed(f.value)
        elif f.wire == 2 and f.number == 4 and correlation and corr is None:
            corr = _stat(view[f.at : f.end], correlation)
    start_ps = offset_ps
    return Event(
        names.get(kind, f"event {kind}"),
        base_ns + start_ps // 1000,
        (start_ps + dur_ps) // 1000 - start_ps // 1000,
        corr,
    )


def _stat(view: memoryview, wanted: set[int]) -> int | None:
    kind, value = 0, None
    for f in fields(view, 0, len(view)):
        if f.wire == 0 and f.number == 1:
            kind = signed(f.value)
        elif f.wire == 0 and f.number in (3, 4):
            value = signed(f.value)
    return value if kind in wanted else None
