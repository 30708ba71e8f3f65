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
    """One counter of one device, ascending in time, finite values only. ``t_ns`` is None where no clock is recorded.

    ``until_ns`` is the time of the sample that follows each, whether it holds a number or not; None where the values are all
    there were. A sample that is no number (a stale mark, a failed reading) ends what the one before it stands for.
    """

    counter: str
    device: int | None
    rank: int | None
    host: str | None
    series: str
    source: str
    t_ns: npt.NDArray[np.int64] | None
    value: Floats
    until_ns: npt.NDArray[np.int64] | None = None

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
        held = np.append(self._gaps_s[1], self.interval_s)
        return np.asarray(np.clip(held, 0.0, MAX_HOLD * self.interval_s))

    @property
    def _gaps_s(self) -> tuple[Floats, Floats]:
        """(seconds to the next number, to what follows first, number or not) of each sample but the last."""
        if self.t_ns is None:
            return np.diff(self.seconds), np.diff(self.seconds)
        to_number = np.diff(self.t_ns)
        to_any = to_number if self.until_ns is None else (self.until_ns - self.t_ns)[:-1]
        return to_number / 1e9, to_any / 1e9

    @cached_property
    def holes(self) -> npt.NDArray[np.int64]:
        """Samples behind which nothing is recorded: the next number is more than ``MAX_HOLD`` median intervals away, or what
        follows first is no number.
        """
        if self.interval_s is None:
            return np.zeros(0, np.int64)
        to_number, to_any = self._gaps_s
        return np.flatnonzero((to_number > MAX_HOLD * self.interval_s) | (to_any < to_number))

    @property
    def unobserved_s(self) -> float:
        """Seconds in holes, less the one interval at most that the sample before each stands for."""
        if self.interval_s is None:
            return 0.0
        to_number, to_any = (gaps[self.holes] for gaps in self._gaps_s)
        return float((to_number - np.minimum(to_any, self.interval_s)).sum())

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
            until_ns=None if self.until_ns is None else self.until_ns[cut],
        )


def counter_series(samples: pl.DataFrame, *counters: str) -> list[CounterSeries]:
    """The series of these counters (all where none is named), by rank, host, device and series."""
    rows = samples.filter(pl.col("counter").is_in(counters)) if counters else samples
    key = ["counter", "rank", "host", "device", "series", "source"]
    rows = rows.with_columns(pl.col("counter", "host", "series", "source").cast(pl.String))
    parts = rows.partition_by(key, as_dict=True, maintain_order=True)
    built = [
        _built(part, dict(zip(key, of, strict=True)))
        for of, part in sorted(
            parts.items(), key=lambda kv: tuple(("" if x is None else str(x).zfill(8)) for x in kv[0])
        )
    ]
    return [s for s in built if len(s)]


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
    part = part.with_columns(until=pl.col("t_ns").shift(-1).fill_null(pl.col("t_ns")))
    part = part.filter(pl.col("value").is_finite())
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
        until_ns=part["until"].to_numpy() if clock else None,
    )


def steady(series: CounterSeries, level: float) -> CounterSeries | None:
    """The stretch from the first to the last sample at or above ``level``: start-up and the time after the job left out."""
    high = np.flatnonzero(series.value >= level)
    return series.part(int(high[0]), int(high[-1]) + 1) if len(high) else None
