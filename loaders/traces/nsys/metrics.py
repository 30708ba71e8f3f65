"""Sampled hardware counters of GPUs (``--gpu-metrics-devices``) as ``samples``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from afterrun.loaders.counters.vocabulary import counter_of
from afterrun.loaders.traces.nsys.store import Store
from afterrun.loaders.traces.nsys.timing import TIME_LIMIT_NS

VALUES = "GPU_METRICS"
NAMES = "TARGET_INFO_GPU_METRICS"

MOST_VALUES = 2_000_000
"""More than so many values are averaged over windows of ``WINDOW_NS``; sampling every 0.1 ms fills gigabytes in minutes."""

WINDOW_NS = 10_000_000

_UNIT = re.compile(r"(?P<name>.*?)\s*\[(?:Throughput )?(?P<unit>[^\]]*)\]\s*")
_CALLED = {
    "GR Active": "gr_engine_active",
    "SMs Active": "sm_active",
    "Tensor Active": "tensor_active",
    "Tensor Active / FP16 Active": "tensor_active",
    "GPC Clock Frequency": "graphics_clock",
}
"""What the vocabulary of counters has by another name."""

_DEVICE = 0xFF
"""The number of the GPU is in the lowest byte of ``typeId``."""


def samples(store: Store, clock_ns: int) -> Iterator[tuple[pl.DataFrame, int]]:
    """Rows of ``samples`` and the number of rows that could not be used."""
    averaged = store.height(VALUES) > MOST_VALUES
    table = _counters(store)
    for chunk in store.chunks(VALUES, ["timestamp", "typeId", "metricId", "value"]):
        rows = chunk.filter(pl.col("timestamp").is_between(-TIME_LIMIT_NS, TIME_LIMIT_NS)).drop_nulls()
        out = rows.join(table, on=["typeId", "metricId"], how="left", maintain_order="left")
        out = out.select(
            (pl.col("typeId") & _DEVICE).cast(pl.Int32).alias("device"),
            pl.coalesce("counter", pl.format("metric {}", "metricId")).alias("counter"),
            (pl.col("timestamp") + clock_ns).alias("t_ns"),
            (pl.col("value") * pl.col("factor").fill_null(1.0)).alias("value"),
        )
        out = _averaged(out) if averaged else out
        yield out.with_columns(pl.lit("").alias("series")), len(chunk) - len(rows)


def _averaged(rows: pl.DataFrame) -> pl.DataFrame:
    window = (pl.col("t_ns") // WINDOW_NS * WINDOW_NS).alias("t_ns")
    return rows.group_by("device", "counter", window, maintain_order=True).agg(pl.col("value").mean())


def _counters(store: Store) -> pl.DataFrame:
    """Counter and factor of each (``typeId``, ``metricId``)."""
    rows = []
    for row in store.few(NAMES, ["typeId", "metricId"], ["metricName"]):
        if row["typeId"] is None or row["metricId"] is None or not row["metricName"]:
            continue
        told = _UNIT.fullmatch(str(row["metricName"]))
        name, unit = (told["name"], told["unit"]) if told else (str(row["metricName"]), "")
        known = counter_of(_CALLED.get(name, name), unit)
        raw = f"{name} [{unit}]" if unit else name
        rows.append(
            (row["typeId"], row["metricId"], known.name if known else raw, known.factor if known else 1.0)
        )
    schema = {"typeId": pl.Int64, "metricId": pl.Int64, "counter": pl.String, "factor": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(["typeId", "metricId"], keep="first")
