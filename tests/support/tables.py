"""Tables and views from plain arrays, so that a pass or a figure is tested without any file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from afterrun.analyzer.view import RunView
from afterrun.loaders.names import resolve
from afterrun.loaders.schema import SCHEMAS, Tables

Curve = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]
Buckets = tuple[int, Sequence[float], Sequence[float]]
"""Step, edges and counts of one histogram."""


def make_tables(
    curves: Mapping[str, Curve],
    *,
    run: str = "run",
    wall_s: Mapping[str, Sequence[float]] | None = None,
    attempt: Mapping[str, Sequence[int]] | None = None,
    superseded: Mapping[str, Sequence[bool]] | None = None,
    devices: int | None = None,
    outcome: str = "unknown",
    params: Mapping[str, str] | None = None,
    histograms: Mapping[str, Sequence[Buckets]] | None = None,
) -> Tables:
    """Tables of one run from ``{tag: (steps, values)}``; every tag in write order of its own."""
    names = resolve({tag: len(v) for tag, (_, v) in curves.items()})
    frames = []
    for tag, (steps, values) in curves.items():
        n = len(values)
        wall = [int(s * 1e9) for s in (wall_s or {}).get(tag, [])] or [None] * n
        frames.append(
            pl.DataFrame(
                {
                    "run": [run] * n,
                    "source": ["made"] * n,
                    "attempt": list((attempt or {}).get(tag, [1] * n)),
                    "rank": [None] * n,
                    "tag": [tag] * n,
                    "metric": [names[tag].metric] * n,
                    "split": [names[tag].split] * n,
                    "seq": list(range(n)),
                    "step": [int(s) for s in steps],
                    "epoch": [None] * n,
                    "tokens": [None] * n,
                    "wall_ns": wall,
                    "value": [float(v) for v in values],
                    "low": [None] * n,
                    "high": [None] * n,
                    "superseded": list((superseded or {}).get(tag, [False] * n)),
                },
                schema=SCHEMAS["metrics"],
            )
        )
    key = {"run": [run], "source": ["made"], "attempt": [1], "rank": [None]}
    runs = pl.DataFrame(
        {
            **key,
            "path": [run],
            "formats": ["made"],
            "started_ns": [None],
            "ended_ns": [None],
            "outcome": [outcome],
            "world_size": [None],
            "device_name": [None],
            "devices": [devices],
        },
        schema=SCHEMAS["runs"],
    )
    given = params or {}
    rows = len(given)
    param_frame = pl.DataFrame(
        {
            "run": [run] * rows,
            "source": ["made"] * rows,
            "attempt": [1] * rows,
            "rank": [None] * rows,
            "key": list(given),
            "value": list(given.values()),
        },
        schema=SCHEMAS["params"],
    )
    sources = pl.DataFrame(
        {
            **key,
            "path": ["made"],
            "format": ["made"],
            "bytes": [0],
            "rows": [sum(len(f) for f in frames)],
            "damaged": [0],
            "status": ["read"],
            "sampled": [False],
            "note": [""],
        },
        schema=SCHEMAS["sources"],
    )
    metrics = pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMAS["metrics"])
    return Tables(
        metrics=metrics,
        histograms=histogram_rows(run, histograms or {}),
        runs=runs,
        params=param_frame,
        sources=sources,
    ).validate()


def histogram_rows(run: str, histograms: Mapping[str, Sequence[Buckets]]) -> pl.DataFrame:
    """Rows of ``histograms`` from ``{tag: [(step, edges, counts)]}``."""
    rows = [
        {
            "run": run,
            "source": "made",
            "attempt": 1,
            "tag": tag,
            "step": step,
            "edges": [float(e) for e in edges],
            "counts": [float(c) for c in counts],
        }
        for tag, told in histograms.items()
        for step, edges, counts in told
    ]
    return pl.DataFrame(rows, schema=SCHEMAS["histograms"])


def make_view(curves: Mapping[str, Curve], **options: object) -> RunView:
    """The view of one run from ``{tag: (steps, values)}``; options as in ``make_tables``."""
    tables = make_tables(curves, **options)  # type: ignore[arg-type]
    return RunView(name=tables.run_names()[0], tables=tables)
