"""Events to columns, block by block; what concerns the file as a whole is decided at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from afterrun.loaders.traces.arguments import decoded, whole_numbers
from afterrun.loaders.traces.events import Event
from afterrun.loaders.traces.kineto.arguments import CallArgs, DeviceArgs, group_label, moved_bytes
from afterrun.loaders.traces.kineto.buckets import Buckets
from afterrun.loaders.traces.kineto.kinds import Side
from afterrun.loaders.traces.lanes import EPOCH_FLOOR_NS
from afterrun.loaders.traces.microseconds import to_ns
from afterrun.loaders.traces.repair import without_negative

_TEXT = pl.Categorical()

Columns = dict[str, pl.Series]


@dataclass(slots=True)
class Rows:
    """Frames of the three sides, in the order of blocks, and what was lost on the way.

    ``host``: operators, annotations, Python frames. ``calls``: CUDA and HIP calls, synchronisation. ``device``: what runs
    on a device, and projections of annotations onto it.
    """

    groups: Mapping[str, str] = field(default_factory=dict)
    host: list[pl.DataFrame] = field(default_factory=list)
    calls: list[pl.DataFrame] = field(default_factory=list)
    device: list[pl.DataFrame] = field(default_factory=list)
    processes: set[int] = field(default_factory=set)
    timeless: int = 0
    placeless: int = 0
    negative: int = 0
    anchored: int = 0
    """Rows whose start counts from 1970."""
    rows: int = 0

    def add(self, buckets: Buckets) -> None:
        """Take over one block of events."""
        sides = [_Side.of(buckets, side) for side in ("host", "call", "device")]
        events = [event for side in sides for event in side.events]
        if not events:
            return
        times = to_ns([e.ts for e in events] + [e.dur for e in events])
        start, length = times[: len(events)], times[len(events) :]
        names = pl.Series([e.name for e in events], dtype=_TEXT)
        lanes = pl.Series([lane for side in sides for lane in side.lanes], dtype=_TEXT)
        shared = {"lane": lanes, "name": names, "start_ns": start, "dur_ns": length}
        at = 0
        columns: tuple[Callable[[_Side], Columns], ...] = (
            _host,
            _call,
            lambda side: _device(side, self.groups),
        )
        for frames, side, own in zip((self.host, self.calls, self.device), sides, columns, strict=True):
            if side.events:
                mine = {name: column.slice(at, len(side.events)) for name, column in shared.items()}
                self._keep(frames, pl.DataFrame(mine | own(side)))
                at += len(side.events)

    def taken(self) -> tuple[list[pl.DataFrame], list[pl.DataFrame], list[pl.DataFrame]]:
        """The frames of host, calls and device, handed over."""
        frames = self.host, self.calls, self.device
        self.host, self.calls, self.device = [], [], []
        return frames

    def _keep(self, frames: list[pl.DataFrame], frame: pl.DataFrame) -> None:
        """Rows without a start, a length or a device are counted instead."""
        if frame["start_ns"].null_count() or frame["dur_ns"].null_count():
            whole = frame.drop_nulls(["start_ns", "dur_ns"])
            self.timeless += len(frame) - len(whole)
            frame = whole
        frame, negative = without_negative(frame)
        self.negative += negative
        if "device" in frame.columns and frame["device"].null_count():
            placed = frame.drop_nulls("device")
            self.placeless += len(frame) - len(placed)
            frame = placed
        if "process" in frame.columns:
            self.processes.update(p for p in frame["process"].unique().to_list() if p is not None)
        self.anchored += int((frame["start_ns"] >= EPOCH_FLOOR_NS).sum())
        self.rows += len(frame)
        frames.append(frame)


@dataclass(frozen=True, slots=True)
class _Side:
    """Events of one side, those of one kind together, with what their kinds say."""

    events: list[Event]
    lanes: list[str]
    steps: list[int | None]

    @staticmethod
    def of(buckets: Buckets, side: Side) -> _Side:
        found = _Side([], [], [])
        for kind, bucket in buckets.of_side(side):
            found.events.extend(bucket)
            found.lanes.extend([kind.lane] * len(bucket))
            found.steps.extend([kind.step] * len(bucket))
        return found


def _host(side: _Side) -> Columns:
    return {
        "process": whole_numbers([e.pid for e in side.events]),
        "track": _or_zero(whole_numbers([e.tid for e in side.events])),
        "step": _or_nulls(side.steps, pl.Int64()),
    }


def _call(side: _Side) -> Columns:
    """A synchronisation record stands in the row of its device: it says neither process nor thread."""
    calls = [(e, lane == "runtime") for e, lane in zip(side.events, side.lanes, strict=True)]
    args = decoded(CallArgs, [e.args for e in side.events])
    return {
        "process": whole_numbers([e.pid if call else None for e, call in calls]),
        "track": _or_zero(whole_numbers([e.tid if call else 0 for e, call in calls])),
        "corr": whole_numbers([a.correlation for a in args]),
    }


def _device(side: _Side, groups: Mapping[str, str]) -> Columns:
    args = decoded(DeviceArgs, [e.args for e in side.events])
    both = list(zip(side.events, args, strict=True))
    device = whole_numbers([e.pid if a.device is None else a.device for e, a in both])
    return {
        "device": device.cast(pl.Int32, strict=False),
        "track": _or_zero(whole_numbers([e.tid if a.stream is None else a.stream for e, a in both])),
        "corr": whole_numbers([a.correlation for a in args]),
        "bytes": whole_numbers([a.bytes if a.elements is None else moved_bytes(a) for a in args]),
        "group": _or_nulls([group_label(a, groups) if a.group or a.ranks else None for a in args], _TEXT),
    }


def _or_nulls(values: Sequence[object], dtype: pl.DataType) -> pl.Series:
    """A column that is mostly null; one without any value is not looked at one by one."""
    if any(value is not None for value in set(values)):
        return pl.Series(values, dtype=dtype)
    return pl.Series([None], dtype=dtype).new_from_index(0, len(values))


def _or_zero(track: pl.Series) -> pl.Series:
    return track.fill_null(0) if track.null_count() else track


def joined(frames: list[pl.DataFrame]) -> pl.DataFrame | None:
    """All frames as one, without copying; null where there are none."""
    return pl.concat(frames, rechunk=False) if frames else None
