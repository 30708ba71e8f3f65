"""Copies and collectives that nothing hides: when they ran and no kernel of computation did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.intervals import Intervals, union
from afterrun.analyzer.trace.collectives import Collectives
from afterrun.analyzer.trace.devices import DeviceTrace

REAL_BYTES = 65_536
"""Copies below this are values read back, whose cost is the wait and not the transfer."""

PHASES = ("checkpoint", "eval")
"""Host phases whose copies belong to them."""


@dataclass(frozen=True, kw_only=True)
class CopyTime:
    """Time of copies of real size between host and device, ns, phases of their own left out."""

    total_ns: int
    exposed_ns: int
    by_name_ns: dict[str, int]
    bytes: int


@dataclass(frozen=True, kw_only=True)
class CommTime:
    """Time of collective kernels of one device, ns; ``waiting_ns`` and ``moving_ns`` are None for one rank alone.

    Both are parts of ``exposed_ns``. Moving counts collectives in which the rank waited less than moving takes; in the
    others its computation ran dry while it waited, and what follows is the late rank's doing as well.
    """

    total_ns: int
    exposed_ns: int
    waiting_ns: int | None
    moving_ns: int | None
    collectives: int


def copy_time(device: DeviceTrace, host: pl.DataFrame) -> CopyTime:
    """Copies of one device; ``host`` holds ``classed`` spans of its process."""
    names = pl.col("name").cast(pl.String)
    rows = device.of_lanes("memcpy").filter((pl.col("bytes") >= REAL_BYTES) & names.str.contains("HtoD|DtoH"))
    phases = host.filter(pl.col("class").is_in(PHASES))
    apart = union(phases["start_ns"].to_numpy(), phases["end_ns"].to_numpy())
    kernels = device.kernels

    def exposed(part: pl.DataFrame) -> Intervals:
        return union(part["start_ns"].to_numpy(), part["end_ns"].to_numpy()) - kernels - apart

    by_name = {
        str(name): exposed(part).total_ns
        for (name,), part in rows.with_columns(names.alias("text")).partition_by("text", as_dict=True).items()
    }
    return CopyTime(
        total_ns=union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()).total_ns,
        exposed_ns=exposed(rows).total_ns,
        by_name_ns=dict(sorted(by_name.items(), key=lambda kv: (-kv[1], kv[0]))),
        bytes=int(rows["bytes"].sum() or 0),
    )


def comm_time(device: DeviceTrace, matched: Collectives | None) -> CommTime:
    """Collectives of one device against its own computation."""
    comm, compute = device.union_of("comm"), device.union_of("kernel")
    exposed = comm - compute
    waiting: int | None = None
    moving: int | None = None
    if matched is not None and device in matched.devices:
        r = matched.devices.index(device)
        began = matched.start[:, r] + float(matched.offset_ns[r])
        here = ~np.isnan(began)
        low = np.rint(began[here]).astype(np.int64) + matched.origin_ns
        dur = np.rint(matched.dur[here, r]).astype(np.int64)
        held = np.minimum(np.rint(matched.wait[here, r]).astype(np.int64), dur)
        on_time = held <= np.rint(matched.pure[here]).astype(np.int64)
        waiting = (exposed & union(low, low + held)).total_ns
        moving = (exposed & union((low + held)[on_time], (low + dur)[on_time])).total_ns
    return CommTime(
        total_ns=comm.total_ns,
        exposed_ns=exposed.total_ns,
        waiting_ns=waiting,
        moving_ns=moving,
        collectives=len(device.of_lanes("comm")),
    )
