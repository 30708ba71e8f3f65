"""Memory of devices as counters tell it: used, total, and what the allocator of the framework holds."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from afterrun.analyzer.counters.series import CounterSeries, counter_series

GIB = 2.0**30


@dataclass(frozen=True, eq=False, kw_only=True)
class DeviceMemory:
    """Used memory of one device, bytes, and its capacity where recorded."""

    used: CounterSeries
    total_bytes: float | None

    @property
    def peak(self) -> float:
        """Most bytes in use."""
        return float(self.used.value.max())

    @property
    def peak_pct(self) -> float | None:
        """Most bytes in use as a share of the device, %."""
        return 100.0 * self.peak / self.total_bytes if self.total_bytes else None


def device_memory(samples: pl.DataFrame) -> list[DeviceMemory]:
    """One entry a device with samples of used memory."""
    total = {_key(s): float(s.value.max()) for s in counter_series(samples, "mem_total_bytes")}
    free = {_key(s): s for s in counter_series(samples, "mem_free_bytes")}
    found = []
    for s in counter_series(samples, "mem_used_bytes"):
        if s.device is None:
            continue
        size = total.get(_key(s))
        other = free.get(_key(s))
        if size is None and other is not None and len(other) == len(s):
            size = float((other.value + s.value).max())
        found.append(DeviceMemory(used=s, total_bytes=size))
    return found


def _key(s: CounterSeries) -> tuple[object, ...]:
    return (s.rank, s.host, s.device, s.series, s.source)


def gib(value: float) -> str:
    """Bytes in GiB, two digits; in MiB where those would say next to nothing."""
    if 0 < abs(value) < 0.1 * GIB:
        return f"{value / 2**20:,.3g} MiB"
    return f"{value / GIB:,.2f} GiB" if value < 100 * GIB else f"{value / GIB:,.0f} GiB"


def device_label(s: CounterSeries) -> str:
    """``GPU 1``, ``rank 2, GPU 0``, ``the host``."""
    name = "the host" if s.device is None else f"GPU {s.device}"
    return f"rank {s.rank}, {name}" if s.rank is not None else name
