"""Values that Kineto records beside the spans: the allocator's totals, counter tracks, counters of kernel ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import polars as pl
from msgspec import Raw

from afterrun.loaders.counters.vocabulary import counter_of
from afterrun.loaders.traces.arguments import decoded, whole_numbers
from afterrun.loaders.traces.events import ERRORS, Event
from afterrun.loaders.traces.kineto.arguments import MemoryArgs
from afterrun.loaders.traces.kineto.buckets import Buckets
from afterrun.loaders.traces.microseconds import to_ns

_HOST_TYPE = 0
"""``c10::DeviceType::CPU``."""


@dataclass(slots=True)
class Counters:
    """Frames of ``samples`` and ``kernels``, times in the clock of the file."""

    samples: list[pl.DataFrame] = field(default_factory=list)
    kernels: list[pl.DataFrame] = field(default_factory=list)
    without_totals: int = 0
    timeless: int = 0
    _launches: int = 0

    def add(self, buckets: Buckets) -> None:
        """Take over one block."""
        if buckets.memory:
            self._memory(buckets.memory)
        if buckets.tracks:
            self._tracks(buckets.tracks)
        if ranges := buckets.all_of("range"):
            self._ranges(ranges)

    def _memory(self, events: Sequence[Event]) -> None:
        args = decoded(MemoryArgs, [e.args for e in events])
        host = [a.device_type == _HOST_TYPE or (a.device is not None and a.device < 0) for a in args]
        frame = pl.DataFrame(
            {
                "t_ns": to_ns([e.ts for e in events]),
                "device": whole_numbers(
                    [None if h else a.device for a, h in zip(args, host, strict=True)]
                ).cast(pl.Int32, strict=False),
                "host": pl.Series(host, dtype=pl.Boolean),
                "alloc": whole_numbers([a.allocated for a in args]),
                "reserved": whole_numbers([a.reserved for a in args]),
            }
        )
        totals = frame.filter(pl.col("alloc").is_not_null() | pl.col("reserved").is_not_null())
        self.without_totals += len(frame) - len(totals)
        long = totals.unpivot(
            ["alloc", "reserved"], index=["t_ns", "device", "host"], variable_name="counter"
        )
        long = long.filter(
            pl.col("value").is_not_null() & ~(pl.col("host") & (pl.col("counter") == "reserved"))
        )
        where = pl.when("host").then(pl.lit("host")).otherwise(pl.lit("mem"))
        self._samples(
            long.select(
                "t_ns",
                "device",
                pl.concat_str(where, pl.lit("_"), "counter", pl.lit("_bytes")).alias("counter"),
                pl.col("value").cast(pl.Float64),
            )
        )

    def _tracks(self, events: Sequence[Event]) -> None:
        """Counter tracks: each name in ``args`` is a series of its own."""
        rows = [
            (event.ts, f"{event.name} {key}" if key != event.name else key, value)
            for event in events
            for key, value in _numbers(event.args)
        ]
        if not rows:
            return
        known = {raw: counter_of(raw) for raw in {name for _, name, _ in rows}}
        self._samples(
            pl.DataFrame(
                {
                    "t_ns": to_ns([ts for ts, _, _ in rows]),
                    "device": pl.Series([None] * len(rows), dtype=pl.Int32),
                    "counter": [c.name if (c := known[name]) else name for _, name, _ in rows],
                    "value": [value * (c.factor if (c := known[name]) else 1) for _, name, value in rows],
                }
            )
        )

    def _samples(self, frame: pl.DataFrame) -> None:
        timed = frame.drop_nulls("t_ns")
        self.timeless += len(frame) - len(timed)
        self.samples.append(timed)

    def _ranges(self, events: Sequence[Event]) -> None:
        """Ranges of CUPTI's range profiler: sums over the kernels of one range, one launch each."""
        rows = [
            (whole, event.name, launch, key, value)
            for launch, (whole, event) in enumerate(
                zip(whole_numbers([e.pid for e in events]), events, strict=True), self._launches
            )
            for key, value in _numbers(event.args)
        ]
        self._launches += len(events)
        columns = {
            "device": pl.Int32,
            "name": pl.String,
            "launch": pl.Int64,
            "metric": pl.String,
            "value": pl.Float64,
        }
        self.kernels.append(pl.DataFrame(rows, schema=columns, orient="row", strict=False))


def _numbers(raw: Raw) -> Iterator[tuple[str, float]]:
    """Names and numbers of an object; nothing where it is none."""
    try:
        values = msgspec.json.decode(raw)
    except ERRORS:
        return
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(key), float(value)
