"""Samples of one counter of one device as a series, and statistics weighted by the time each sample stands for.

A sample stands for the time to the next one, at most ``MAX_HOLD`` median intervals: a hole in the record is unobserved,
neither idle nor busy. Without a clock every sample weighs the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]

MAX_HOLD = 3.0
"""Longest stretch that one sample stands for, in median intervals."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CounterSeries:
    """One counter of one device, ascending in time, finite values only. ``t_ns`` is None where no clock is recorded."""

    counter: str
    device: int | None
    rank: int | None
    host: str | None
    series: str
    source: str
    t_ns: npt.NDArray[np.int64] | None
    value: Floats

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def interval_s(self) -> float | None:
        """Median distance of samples in seconds; None without a clock."""
        if self.t_ns is None or len(self.t_ns) < 2:
            return None
        steps = np.diff(self.t_ns)
        steps = steps[steps > 0]
        return float(np.median(steps)) / 1e9 if len(steps) else None

    @cached_property
    def seconds(self) -> Floats:
        """Seconds since the first sample; the number of the sample where no clock is recorded."""
        if self.t_ns is None:
            return np.arange(len(self.value), dtype=np.float64)
        return np.asarray((self.t_ns - self.t_ns[0]) / 1e9)

    @cached_property
    def weight_s(self) -> Floats:
        """How long each sample stands for, s; ones without a clock."""
        if self.interval_s is None:
            return np.ones(len(self.value))
        held = np.append(np.diff(self.seconds), self.interval_s)
        return np.asarray(np.clip(held, 0.0, MAX_HOLD * self.interval_s))

    @property
    def mean(self) -> float:
        """Mean over time."""
        total = self.weight_s.sum()
        return float((self.value * self.weight_s).sum() / total) if total else float(self.value.mean())

    def quantile(self, q: float) -> float:
        """The value that is not exceeded in a share ``q`` of the time."""
        order = np.argsort(self.value, kind="stable")
        reached = np.cumsum(self.weight_s[order])
        if not reached[-1]:
            return float(np.quantile(self.value, q))
        return float(self.value[order][np.searchsorted(reached, q * reached[-1])])

    def share(self, chosen: npt.NDArray[np.bool_]) -> float:
        """Share of the time in which ``chosen`` holds."""
        total = self.weight_s.sum()
        return float(self.weight_s[chosen].sum() / total) if total else float(np.mean(chosen))

    def part(self, first: int, last: int | None = None) -> CounterSeries:
        """The samples ``first`` to ``last`` (exclusive)."""
        cut = slice(first, last)
        return CounterSeries(
            counter=self.counter,
            device=self.device,
            rank=self.rank,
            host=self.host,
            series=self.series,
            source=self.source,
            t_ns=None if self.t_ns is None else self.t_ns[cut],
            value=self.value[cut],
        )


def counter_series(samples: pl.DataFrame, *counters: str) -> list[CounterSeries]:
    """The series of these counters (all where none is named), by rank, host, device and series."""
    rows = samples.filter(pl.col("value").is_finite())
    if counters:
        rows = rows.filter(pl.col("counter").is_in(counters))
    key = ["counter", "rank", "host", "device", "series", "source"]
    rows = rows.with_columns(pl.col("counter", "host", "series", "source").cast(pl.String))
    parts = rows.partition_by(key, as_dict=True, maintain_order=True)
    return [
        _built(part, dict(zip(key, of, strict=True)))
        for of, part in sorted(
            parts.items(), key=lambda kv: tuple(("" if x is None else str(x).zfill(8)) for x in kv[0])
        )
    ]


def device_series(samples: pl.DataFrame, counter: str) -> list[CounterSeries]:
    """The series of a counter, one a device: without those of extremes over ranks, and without a total of all devices where
    each has its own.
    """
    found = [s for s in counter_series(samples, counter) if "extreme=" not in s.series]
    apart = {(s.source, s.rank, s.host) for s in found if s.device is not None}
    return [s for s in found if s.device is not None or (s.source, s.rank, s.host) not in apart]


def _built(part: pl.DataFrame, of: dict[str, object]) -> CounterSeries:
    clock = part["t_ns"].null_count() == 0
    part = part.sort("t_ns", maintain_order=True) if clock else part
    rank, device, host = of["rank"], of["device"], of["host"]
    return CounterSeries(
        counter=str(of["counter"]),
        device=None if device is None else int(str(device)),
        rank=None if rank is None else int(str(rank)),
        host=None if host is None else str(host),
        series=str(of["series"]),
        source=str(of["source"]),
        t_ns=part["t_ns"].to_numpy() if clock else None,
        value=part["value"].to_numpy(),
    )


def steady(series: CounterSeries, level: float) -> CounterSeries | None:
    """The stretch from the first to the last sample at or above ``level``: start-up and the time after the job left out."""
    high = np.flatnonzero(series.value >= level)
    return series.part(int(high[0]), int(high[-1]) + 1) if len(high) else None
