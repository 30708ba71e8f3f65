"""Device rows that cannot be true, decided alike for every trace format.

Three kinds occur in real captures. A length below zero: the profiler never saw the end (pytorch/kineto#646). A
start long before the own launch call: CUPTI's first records of a session (pytorch/pytorch#192021). A kernel that
would run on for thousands of times the others while later kernels of its stream, which wait for it, have started
(AMD-AGI/TraceLens#669). The first two are given up and counted, the third is cut where the next kernel starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from afterrun.loaders.traces.lanes import DEVICE_LANES

EARLIEST_BEFORE_LAUNCH_NS = 1_000_000_000
"""Clocks of host and device are aligned to microseconds; a device row one second ahead of its launch is none."""

OVERRUN_FLOOR_NS = 100_000
"""An overlap below this between kernels of one stream is legal: programmatic dependent launch, branches of a graph."""

OVERRUN_FACTOR = 100
"""How many times the median kernel of its stream the overrun of a kernel must be before it is taken for an error."""


@dataclass(frozen=True)
class Repaired:
    """Rows that may be passed on, how many were given up, and sentences for a person."""

    spans: pl.DataFrame
    damaged: int
    notes: tuple[str, ...]


def repair(spans: pl.DataFrame) -> Repaired:
    """Check the rows of one file: columns of the schema, any lanes. Order of rows is kept."""
    notes: list[str] = []
    negative = spans["dur_ns"] < 0
    kept = spans.filter(~negative)
    if bad := int(negative.sum()):
        notes.append(f"{bad} events end before they start and were left out")
    early = _before_launch(kept)
    if lost := len(early):
        notes.append(f"{lost} device events start long before their own launch and were left out")
        kept = kept.with_row_index("row").filter(~pl.col("row").is_in(early.implode())).drop("row")
    kept, cut = _cut_overruns(kept)
    if cut:
        notes.append(f"{cut} kernels claim to run on past later kernels of their stream and were cut there")
    return Repaired(kept, bad + lost, tuple(notes))


def _before_launch(spans: pl.DataFrame) -> pl.Series:
    """Row numbers of device rows that start more than ``EARLIEST_BEFORE_LAUNCH_NS`` before their launch call."""
    rows = spans.select("process", "lane", "device", "corr", "start_ns").with_row_index("row")
    rows = rows.filter(pl.col("corr").is_not_null())
    lane = pl.col("lane").cast(pl.String)
    calls = (
        rows.filter(lane == "runtime")
        .group_by("process", "corr")
        .agg(pl.col("start_ns").min().alias("call_ns"))
    )
    device = rows.filter(lane.is_in(DEVICE_LANES) & pl.col("device").is_not_null())
    if calls.is_empty() or device.is_empty():
        return pl.Series("row", [], dtype=pl.UInt32)
    early = pl.col("start_ns") < pl.col("call_ns") - EARLIEST_BEFORE_LAUNCH_NS
    return device.join(calls, on=["process", "corr"], how="inner", nulls_equal=True).filter(early)["row"]


def _cut_overruns(spans: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    rows = spans.select("process", "lane", "device", "track", "start_ns", "dur_ns").with_row_index("row")
    kernels = rows.filter((pl.col("lane").cast(pl.String) == "kernel") & pl.col("device").is_not_null())
    if len(kernels) < 2:
        return spans, 0
    stream = ("process", "device", "track")
    kernels = kernels.sort(*stream, "start_ns", "dur_ns")
    same = pl.all_horizontal(pl.col(c).shift(-1).eq_missing(pl.col(c)) for c in stream)
    follows = pl.when(same).then(pl.col("start_ns").shift(-1))
    overrun = pl.col("start_ns") + pl.col("dur_ns") - pl.col("next_ns")
    suspect = kernels.with_columns(follows.alias("next_ns")).filter(
        (pl.col("next_ns") > pl.col("start_ns")) & (overrun > OVERRUN_FLOOR_NS)
    )
    if suspect.is_empty():
        return spans, 0
    medians = kernels.group_by(stream).agg(pl.col("dur_ns").median().alias("median_ns"))
    suspect = suspect.join(medians, on=stream, nulls_equal=True).filter(
        overrun > OVERRUN_FACTOR * pl.col("median_ns").clip(1)
    )
    if suspect.is_empty():
        return spans, 0
    cut = suspect.select("row", (pl.col("next_ns") - pl.col("start_ns")).alias("cut_ns"))
    out = (
        spans.with_row_index("row")
        .join(cut, on="row", how="left", maintain_order="left")
        .with_columns(pl.coalesce("cut_ns", "dur_ns").alias("dur_ns"))
        .drop("row", "cut_ns")
    )
    return out, len(cut)
