"""Times and identifiers of rows: session clock, processes and threads packed into one number."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

TIME_LIMIT_NS = 4 * 10**18
"""No clock of a capture is beyond this (126 years), and sums of two such times still fit into 64 bits."""

MAX_DEVICE = 1023

_ID = 0xFFFFFF
_PID_UNIT = 1 << 24

NANOSECONDS = pl.col("start", "end")


class Sound(NamedTuple):
    """Rows that can be used, and the number of those that cannot."""

    rows: pl.DataFrame
    damaged: int


def timed(rows: pl.DataFrame, clock_ns: int, *also: str) -> Sound:
    """Rows with ``start_ns`` and ``dur_ns`` for ``start`` and ``end``; unsound are those without, or without ``also``."""
    there = pl.all_horizontal(pl.col(c).is_not_null() for c in ("start", "end", *also))
    credible = pl.all_horizontal(
        pl.col(c).is_between(-TIME_LIMIT_NS, TIME_LIMIT_NS) for c in ("start", "end")
    )
    sound = rows.filter(there & credible)
    times = (pl.col("start") + clock_ns).alias("start_ns"), (pl.col("end") - pl.col("start")).alias("dur_ns")
    return Sound(sound.with_columns(times).drop("start", "end"), len(rows) - len(sound))


def on_device(sound: Sound) -> Sound:
    """Rows of a device: ``process``, ``device`` and ``track`` (the stream); unsound are those with a device there is not."""
    rows = sound.rows.filter(pl.col("deviceId").is_between(0, MAX_DEVICE))
    out = rows.with_columns(
        process_of("globalPid"),
        pl.col("deviceId").cast(pl.Int32).alias("device"),
        pl.col("streamId").fill_null(0).alias("track"),
        pl.col("correlationId").alias("corr"),
    ).drop("globalPid", "deviceId", "streamId", "correlationId")
    return Sound(out, sound.damaged + len(sound.rows) - len(rows))


def process_of(packed: str) -> pl.Expr:
    """The process id in a ``globalPid`` or ``globalTid``."""
    return (pl.col(packed) // _PID_UNIT & _ID).alias("process")


def thread_of(packed: str) -> pl.Expr:
    """The thread id in a ``globalTid``; 0 where there is none."""
    return (pl.col(packed) & _ID).fill_null(0).alias("track")
