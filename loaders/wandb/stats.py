"""System metrics of a ``.wandb`` file as rows of ``samples``.

W&B samples the machine every few seconds and writes one record a sampling, with one item a quantity. The
known ones get the counter names and units of the schema, the others keep their own names. ``cpu`` is the load of
the machine in old clients and of the training process, by the number of cores, in newer ones.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

from afterrun.loaders.limits import MIB, check_columns
from afterrun.loaders.schema import TEXT
from afterrun.loaders.settings.personal import impersonal
from afterrun.loaders.wandb.records import items, key_name, timestamp_ns
from afterrun.loaders.wandb.values import decoded, leaves, number_of

FLUSH_SAMPLES = 1 << 20

GPU_COUNTERS = {
    "gpu": ("gpu_util_pct", 1),
    "memory": ("mem_util_pct", 1),  # share of time in which the memory was read or written
    "memoryAllocated": ("mem_used_pct", 1),
    "memoryAllocatedBytes": ("mem_used_bytes", 1),
    "temp": ("temp_c", 1),
    "powerWatts": ("power_w", 1),
    "powerPercent": ("power_pct", 1),
    "enforcedPowerLimitWatts": ("power_limit_w", 1),
    "smClock": ("sm_clock_hz", 1e6),
    "memoryClock": ("mem_clock_hz", 1e6),
    "graphicsClock": ("graphics_clock_hz", 1e6),
    "fanSpeed": ("fan_pct", 1),
}
"""Last part of ``gpu.N.<name>`` -> counter, factor."""

HOST_COUNTERS = {
    "cpu": ("cpu_pct", 1),
    "memory": ("host_mem_used_pct", 1),
    "memory_percent": ("host_mem_used_pct", 1),
    "proc.memory.availableMB": ("host_mem_available_bytes", MIB),
    "proc.memory.rssMB": ("rss_bytes", MIB),
    "proc.memory.percent": ("rss_pct", 1),
    "proc.cpu.threads": ("threads", 1),
    "network.sent": ("net_sent_bytes", 1),
    "network.recv": ("net_received_bytes", 1),
    "disk": ("disk_used_pct", 1),
    "disk.in": ("disk_read_bytes", MIB),
    "disk.out": ("disk_written_bytes", MIB),
}
"""Key -> counter, factor. Sent, received, read and written are totals since the run began."""

_MOUNT_COUNTERS = {"usagePercent": ("disk_used_pct", 1), "usageGB": ("disk_used_bytes", 1024 * MIB)}

_GPU = re.compile(r"gpu\.(process\.)?(\d{1,4})\.(.+)")
_CORE = re.compile(r"cpu\.(\d{1,5})\.cpu_percent")
_MOUNT = re.compile(r"disk\.(.+)\.(usagePercent|usageGB)")
_STAMP, _ITEM = 2, 3


class Counter(NamedTuple):
    """What a key measures; the values it comes with are to be multiplied by ``factor``."""

    device: int | None
    series: str
    counter: str
    factor: float


def counter_of(key: str) -> Counter:
    """The counter of a key; one that is not known keeps its name."""
    if gpu := _GPU.fullmatch(key):
        counter, factor = GPU_COUNTERS.get(gpu[3], (f"gpu.{gpu[3]}", 1))
        # W&B writes the figures of the devices that the process uses a second time
        return Counter(int(gpu[2]), "", f"process_{counter}" if gpu[1] else counter, factor)
    if core := _CORE.fullmatch(key):
        return Counter(None, f'core="{int(core[1])}"', "cpu_core_pct", 1)
    if mount := _MOUNT.fullmatch(key):
        return Counter(None, f'mount="{impersonal(mount[1])}"', *_MOUNT_COUNTERS[mount[2]])
    return Counter(None, "", *HOST_COUNTERS.get(key, (impersonal(key), 1)))


class Stats:
    """Collects samplings; ``take`` hands over what has come in since the last time."""

    def __init__(self) -> None:
        self._counters: list[Counter] = []
        self._by_name: dict[str, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._code: list[int] = []
        self._value: list[float] = []
        self._sizes: list[int] = []
        self._t_ns: list[int | None] = []

    @property
    def full(self) -> bool:
        """Whether there is enough for a batch."""
        return len(self._value) >= FLUSH_SAMPLES

    def add(self, data: bytes, at: int, end: int) -> None:
        """One ``StatsRecord``. Raises ``WireError`` where it is none; then nothing is added."""
        pairs, others = items(data, at, end, _ITEM)
        named = [(key_name(key), raw) for key, raw in pairs]
        stamps = [timestamp_ns(data, f.at, f.end) for f in others if f.number == _STAMP]
        before = len(self._value)
        for name, raw in named:
            try:
                value = decoded(raw)
            except ValueError:
                continue
            for key, leaf in leaves(name, value):
                number = number_of(leaf)
                if number is not None:
                    self._code.append(self._code_of(key))
                    self._value.append(number)
        self._sizes.append(len(self._value) - before)
        self._t_ns.append(stamps[-1] if stamps else None)

    def _code_of(self, key: str) -> int:
        code = self._by_name.get(key)
        if code is None:
            check_columns("W&B system metrics", len(self._counters) + 1)
            code = self._by_name[key] = len(self._counters)
            self._counters.append(counter_of(key))
        return code

    def take(self) -> dict[str, pl.DataFrame]:
        """The frame of ``samples``, in write order; none without rows."""
        if not self._value:
            self._clear()
            return {}
        code = np.array(self._code, np.int64)
        row = np.repeat(np.arange(len(self._sizes)), np.array(self._sizes, np.int64))
        device, series, counter, factor = zip(*self._counters, strict=True)
        t_ns = pl.Series(self._t_ns, dtype=pl.Int64)
        frame = pl.DataFrame(
            {
                "device": pl.Series(device, dtype=pl.Int32).gather(code),
                "series": pl.Series(series, dtype=TEXT).gather(code),
                "counter": pl.Series(counter, dtype=TEXT).gather(code),
                "t_ns": t_ns.gather(row),
                "value": np.array(self._value, np.float64) * np.array(factor, np.float64)[code],
            }
        )
        self._clear()
        return {"samples": frame}
