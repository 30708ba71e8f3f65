"""Activity of devices: busy time as a union over all streams, never a sum of kernels.

A device is a (rank, process, device) of one run: two processes on one GPU are two rows, as each has its own gaps.
Busy is any of kernel, copy, set, collective and graph replay; the span runs from the first start to the last end
of any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from afterrun.analyzer.intervals import Intervals, Times, union
from afterrun.loaders.traces.lanes import DEVICE_LANES, KERNEL_LANES

KEY = ("rank", "process", "device")


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceTrace:
    """All activity of one device of one process. ``rows`` are spans sorted by start, with ``end_ns``."""

    rank: int | None
    process: int | None
    device: int
    rows: pl.DataFrame

    @cached_property
    def start(self) -> Times:
        """Starts of all activity, ascending, ns."""
        return self.rows["start_ns"].to_numpy()

    @cached_property
    def end(self) -> Times:
        """Ends of all activity, in the order of ``start``, ns."""
        return self.rows["end_ns"].to_numpy()

    @cached_property
    def busy(self) -> Intervals:
        """When any activity ran."""
        return union(self.start, self.end)

    @cached_property
    def gaps(self) -> Intervals:
        """When none ran, between the first start and the last end."""
        return self.busy.gaps()

    @cached_property
    def low_ns(self) -> int:
        """First start of any activity."""
        return int(self.start[0])

    @cached_property
    def high_ns(self) -> int:
        """Last end of any activity."""
        return int(self.end.max())

    @property
    def span_ns(self) -> int:
        """From the first start to the last end, ns."""
        return self.high_ns - self.low_ns

    @property
    def idle_ns(self) -> int:
        """Span without busy, ns."""
        return self.span_ns - self.busy.total_ns

    def of_lanes(self, *lanes: str) -> pl.DataFrame:
        """The rows of some lanes."""
        return self.rows.filter(pl.col("lane").is_in(lanes))

    def union_of(self, *lanes: str) -> Intervals:
        """When activity of some lanes ran."""
        rows = self.of_lanes(*lanes)
        return union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())

    @cached_property
    def kernels(self) -> Intervals:
        """When kernels ran, those of collectives included."""
        return self.union_of(*KERNEL_LANES)

    def summary(self) -> dict[str, Any]:
        """The ``devices`` entry of ``inspect --json``."""
        kernels = self.of_lanes(*KERNEL_LANES)
        gaps = self.gaps.durations
        return {
            "rank": self.rank,
            "process": self.process,
            "device": self.device,
            "kernels": len(kernels),
            "kernel_sum_ns": int(kernels["dur_ns"].sum()),
            "kernel_busy_ns": self.kernels.total_ns,
            "busy_ns": self.busy.total_ns,
            "idle_ns": self.idle_ns,
            "span_ns": self.span_ns,
            "largest_gap_ns": int(gaps.max()) if len(gaps) else 0,
        }


def devices_of(spans: pl.DataFrame) -> Iterator[DeviceTrace]:
    """The devices of one run, by rank, process and device."""
    rows = spans.filter(pl.col("device").is_not_null() & pl.col("lane").is_in(DEVICE_LANES))
    if rows.is_empty():
        return
    rows = rows.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
    rows = rows.sort(*KEY, "start_ns", "end_ns", nulls_last=False)
    for (rank, process, device), part in rows.partition_by(KEY, as_dict=True, maintain_order=True).items():
        yield DeviceTrace(
            rank=_int(rank), process=_int(process), device=int(np.asarray(device).item()), rows=part
        )


def _int(x: object) -> int | None:
    return None if x is None else int(str(x))
