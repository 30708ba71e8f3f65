"""Analyses made by hand, so that the report is tested without any file, pass or figure."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, onset_order
from afterrun.analyzer.view import RunView
from afterrun.loaders.collection import Collection, RunInfo, Unclaimed
from afterrun.loaders.schema import Tables
from afterrun.plots.registry import Drawn
from tests.support.tables import make_tables


def make_analysis(
    parts: Sequence[Tables],
    findings: Sequence[Finding] = (),
    *,
    unclaimed: Sequence[Unclaimed] = (),
    faults: Sequence[str] = (),
) -> Analysis:
    """An analysis of these runs with these findings."""
    tables = Tables.concat(list(parts))
    names = tables.run_names()
    views = {name: RunView(name=name, tables=part) for name, part in zip(names, parts, strict=True)}
    runs = {
        name: RunInfo(name=name, path=f"runs/{name}", grouped_by="one directory", attempts=1)
        for name in names
    }
    collection = Collection(tables=tables, runs=runs, unclaimed=tuple(unclaimed))
    ordered = tuple(sorted(findings, key=onset_order))
    return Analysis(collection=collection, views=views, findings=ordered, faults=tuple(faults))


def learning(run: str, seed: int = 0, *, n: int = 400, rise: float = 0.0, **options: Any) -> Tables:
    """A run whose validation loss falls, then rises by ``rise`` of its minimum over the last half."""
    rng = np.random.default_rng(seed)
    steps = np.arange(n) * 100
    train = 2.2 * (1 + steps / 2_000) ** -0.6 * np.exp(rng.normal(0, 0.02, n))
    at = steps[::10]
    val = 2.3 * (1 + at / 2_000) ** -0.45 * np.exp(rng.normal(0, 0.01, len(at)))
    half = len(at) // 2
    val[half:] *= 1 + rise * np.linspace(0, 1, len(at) - half)
    return make_tables({"train/loss": (steps, train), "val/loss": (at, val)}, run=run, **options)


def alarm(run: str, code: str = "overfit", **given: Any) -> Finding:
    """A confirmed finding with everything filled; any field can be replaced."""
    fields: dict[str, Any] = {
        "code": code,
        "status": "confirmed",
        "severity": "warning",
        "run": run,
        "where": Where(step_start=6_400, step_end=51_200),
        "title": "overfits from step 6,400: validation loss +18 % by the end while training loss falls 31 %",
        "effect": Effect(value=18.2, low=15.1, high=21.4, unit="%", method="medians of the last quarter"),
        "evidence": (
            Evidence(
                source="events.out.tfevents.1.host", tag="val/loss", step=6_400, value=0.8113, note="lowest"
            ),
            Evidence(
                source="events.out.tfevents.1.host", tag="val/loss", step=51_200, value=0.957, note="last"
            ),
        ),
        "parameters": {"min_rise": 0.01, "min_evals": 10},
        "wasted_gpu_s": 32_760.0,
        "advice": ("Stop at step 7,400: patience 5 keeps validation loss 0.812.", "Try more regularisation."),
        "values": {"rise_pct": 18.2, "onset_step": 6_400},
    }
    return Finding(**{**fields, **given})


def fine(run: str, code: str, title: str = "looked, nothing wrong") -> Finding:
    return Finding(code=code, status="refuted", severity="info", run=run, title=title)


def blind(run: str, code: str, *missing: str, title: str = "cannot be assessed") -> Finding:
    return Finding(code=code, status="abstained", severity="info", run=run, title=title, missing=missing)


def sources_of(tables: Tables, **columns: Sequence[object]) -> Tables:
    """The tables with the ``sources`` rows repeated and columns replaced."""
    n = len(next(iter(columns.values())))
    rows = pl.concat([tables.sources.head(1)] * n)
    replaced = [pl.Series(k, v, dtype=rows.schema[k]) for k, v in columns.items()]
    return tables.with_(sources=rows.with_columns(replaced))


def png(width: int = 3, height: int = 2) -> bytes:
    """A grey PNG of this size, made by hand."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\x00" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def draw(out: Path, run: str, name: str, codes: Sequence[str], data: bytes | None = None) -> Drawn:
    """A figure on disk below ``out``, as the figure pack hands it over."""
    stem = f"figures/{name}-{abs(zlib.crc32(run.encode())):08x}"
    (out / "figures").mkdir(parents=True, exist_ok=True)
    files: Mapping[str, str] = {kind: f"{stem}.{kind}" for kind in ("png", "svg", "csv")}
    for kind, path in files.items():
        (out / path).write_bytes((data or png()) if kind == "png" else b"x")
    return Drawn(
        name=name, run=run, title=f"{name} of {run}", alt=f"Curves of {run}.", codes=tuple(codes), files=files
    )


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"</script><script>alert(1)</script>',
    '=HYPERLINK("http://x","y")',
    "../../../../tmp/PWNED",
    'a/b:c*?"<>|',
    "con",
    "x" * 300,
    "训练/损失",
    "\u202egpj.exe",
    "'; DROP TABLE runs;--",
    "{{7*7}}",
    "[red]x[/red]",
)
"""Twelve tag names that somebody else's report ran or tripped over."""
