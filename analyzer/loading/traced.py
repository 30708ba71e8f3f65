"""Data loading in a trace: idle time of devices inside loader calls, and the calls themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.intervals import union
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.trace import Trace


@dataclass(frozen=True, kw_only=True)
class LoaderCalls:
    """Calls of one process that fetch a batch, ns; ``first_ns`` is the first one, which may include the start of workers."""

    calls: int
    total_ns: int
    first_ns: int
    median_ns: float
    host_span_ns: int

    @property
    def share_pct(self) -> float:
        """Share of the host's recorded time inside loader calls, without the first one, %."""
        rest = self.host_span_ns - self.first_ns
        return 100.0 * (self.total_ns - self.first_ns) / rest if rest > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class DeviceLoading:
    """Idle time of one device that loading explains, ns."""

    idle_ns: int
    share_pct: float
    longest_ns: int
    stalls: int
    gap_share_pct: float
    inside_calls_pct: float
    """Part of the idle time that lies inside any loader call, whatever caused it."""
    period: int | None


def loader_calls(host: pl.DataFrame) -> LoaderCalls | None:
    """The loader calls on the threads of a process; None without any. Nested calls count once."""
    rows = host.filter(pl.col("lane") == "data").sort("start_ns")
    if rows.is_empty():
        return None
    main = rows.group_by("track").agg(pl.col("dur_ns").sum().alias("sum_ns")).sort("sum_ns", descending=True)
    rows = rows.filter(pl.col("track") == main["track"][0])
    calls = union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
    low, high = int(host["start_ns"].to_numpy().min()), int(host["end_ns"].to_numpy().max())
    lengths = calls.durations
    return LoaderCalls(
        calls=len(calls),
        total_ns=calls.total_ns,
        first_ns=int(lengths[0]),
        median_ns=float(np.median(lengths)),
        host_span_ns=high - low,
    )


def device_loading(trace: Trace, device: DeviceTrace) -> DeviceLoading:
    """What loading costs one device."""
    idle = trace.idle(device)
    column = idle.column("dataloader")
    part = idle.ns[:, column]
    lost = int(part.sum())
    calls = trace.host(device).filter(pl.col("lane") == "data")
    inside = union(calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    return DeviceLoading(
        idle_ns=lost,
        share_pct=100.0 * lost / max(device.span_ns, 1),
        longest_ns=int(part.max()) if len(part) else 0,
        stalls=int((part > 0.5 * idle.gaps.durations).sum()),
        gap_share_pct=100.0 * lost / max(device.idle_ns, 1),
        inside_calls_pct=100.0
        * int(inside.covered(idle.gaps.start, idle.gaps.end).sum())
        / max(device.idle_ns, 1),
        period=_period(trace, device),
    )


def _period(trace: Trace, device: DeviceTrace) -> int | None:
    """Every how many steps the device waits for data, where it does so regularly: the number of workers in bursts."""
    steps = trace.steps(device)
    if steps is None or len(steps) < 6:
        return None
    waits = trace.idle(device).between(steps.start, steps.end)["dataloader"].astype(np.float64)
    high = np.flatnonzero(waits > 0.5 * waits.max()) if waits.max() > 0 else np.empty(0, int)
    gaps = np.diff(high)
    if len(gaps) < 2 or len(high) > len(steps) // 2:
        return None
    return int(gaps[0]) if (gaps == gaps[0]).all() and gaps[0] > 1 else None
