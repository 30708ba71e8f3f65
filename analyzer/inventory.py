"""What is here: runs, sources, metrics, devices, counters, as one JSON document (version 1, stable)."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from afterrun.analyzer.finding import jsonable
from afterrun.analyzer.trace.devices import devices_of
from afterrun.loaders.collection import Collection
from afterrun.loaders.names import direction, metric_of
from afterrun.loaders.schema import Tables

VERSION = 1
_COUNTED = ("metrics", "histograms", "spans", "samples", "kernels", "marks", "params")


def inventory(collection: Collection) -> dict[str, Any]:
    """The ``inspect --json`` document. Non-finite numbers are strings; the key order is fixed."""
    tables = collection.tables
    rows = _rows_by_source(tables)
    sources = _grouped(tables.sources)
    metrics = _grouped(metric_summary(tables.metrics))
    params = _grouped(tables.params.select("run", "key", "value"))
    samples = _grouped(_sample_summary(tables.samples))
    marks = _grouped(tables.marks.group_by("run", "kind", maintain_order=True).len())
    kernels = _grouped(
        tables.kernels.group_by("run").agg(
            pl.col("launch").n_unique().alias("launches"), pl.len().alias("rows")
        )
    )
    spans = {r["run"]: r["len"] for r in tables.spans.group_by("run").len().iter_rows(named=True)}
    traces = {str(run): part for (run,), part in tables.spans.partition_by("run", as_dict=True).items()}
    runs = []
    for row in tables.runs.iter_rows(named=True):
        run = str(row["run"])
        info = collection.runs[run]
        runs.append(
            {
                "run": run,
                "path": info.path,
                "grouped_by": info.grouped_by,
                "attempts": info.attempts,
                "outcome": row["outcome"],
                "notes": list(info.notes),
                "sources": [
                    {
                        "path": s["path"],
                        "format": s["format"],
                        "status": s["status"],
                        "rows": rows.get((run, s["source"]), {}),
                        "damaged": s["damaged"],
                        "note": s["note"],
                    }
                    for s in sources.get(run, [])
                ],
                "metrics": [
                    {k: v for k, v in m.items() if k != "run"}
                    for m in sorted(metrics.get(run, []), key=_reading_order)
                ],
                "params": {p["key"]: _from_json(p["value"]) for p in params.get(run, [])},
                "spans": {"rows": spans.get(run, 0)},
                "devices": [d.summary() for d in devices_of(traces[run])] if run in traces else [],
                "samples": [{k: v for k, v in s.items() if k != "run"} for s in samples.get(run, [])],
                "kernels": {k: kernels[run][0][k] for k in ("launches", "rows")}
                if run in kernels
                else {"launches": 0, "rows": 0},
                "marks": {m["kind"]: m["len"] for m in marks.get(run, [])},
            }
        )
    unclaimed = [{"path": u.path, "reason": u.reason} for u in collection.unclaimed]
    document: dict[str, Any] = jsonable({"version": VERSION, "runs": runs, "unclaimed": unclaimed})
    return document


def metric_summary(metrics: pl.DataFrame) -> pl.DataFrame:
    """One row a (run, rank, tag), in order of first appearance.

    ``points`` counts surviving rows, ``superseded`` the others, ``nan`` and ``inf`` among all; ``first_step``,
    ``last_step`` and ``last`` are of surviving rows in write order, ``min`` and ``max`` of their finite values.
    """
    alive = ~pl.col("superseded")
    value = pl.col("value")
    finite = value.filter(alive & value.is_finite())
    return (
        metrics.sort("attempt", "seq", maintain_order=True)
        .group_by("run", "rank", "tag", maintain_order=True)
        .agg(
            pl.col("metric").first(),
            pl.col("split").first(),
            alive.sum().alias("points"),
            pl.col("superseded").sum(),
            value.is_nan().sum().alias("nan"),
            value.is_infinite().sum().alias("inf"),
            pl.col("step").filter(alive).first().alias("first_step"),
            pl.col("step").filter(alive).last().alias("last_step"),
            value.filter(alive).last().alias("last"),
            finite.min().alias("min"),
            finite.max().alias("max"),
        )
    )


_KINDS = ("loss", "quality", "rate", "gradient", "throughput", "time", "memory", "other", "axis")
_SPLITS = ("train", "none", "val", "test")


def _reading_order(m: dict[str, Any]) -> tuple[int, str, int, str, int]:
    """What people look for first stands first: losses, train before val; axes last."""
    known = metric_of(m["metric"]) if m["metric"] else None
    kind = known.kind if known else "loss" if direction(m["metric"]) else "other"
    rank = -1 if m["rank"] is None else m["rank"]
    return _KINDS.index(kind), m["metric"] or "", _SPLITS.index(m["split"]), m["tag"], rank


def _sample_summary(samples: pl.DataFrame) -> pl.DataFrame:
    value = pl.col("value")
    return samples.group_by("run", "device", "counter", maintain_order=True).agg(
        value.is_finite().sum().alias("points"),
        value.filter(value.is_finite()).mean().alias("mean"),
        value.filter(value.is_finite()).max().alias("max"),
    )


def _rows_by_source(tables: Tables) -> dict[tuple[str, str], dict[str, int]]:
    """Observations of each source in each table, superseded ones included."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for name in _COUNTED:
        frame: pl.DataFrame = getattr(tables, name)
        for row in frame.group_by("run", "source").len().iter_rows(named=True):
            counts.setdefault((row["run"], row["source"]), {})[name] = row["len"]
    return counts


def _grouped(frame: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Rows as dicts by run, in order."""
    out: dict[str, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        out.setdefault(str(row["run"]), []).append(row)
    return out


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
