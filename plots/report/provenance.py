"""Where it all comes from: inputs, what of them was not read, and the thresholds in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.loaders.collection import Unclaimed
from afterrun.plots.report import format as fmt
from afterrun.plots.report.text import shorten

PATHS = 12
"""Paths listed for one reason in what was skipped."""


REASONS = 30
"""Reasons told one by one; ``data/sources.parquet`` holds all."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Files that share a reason for not being read, or not whole."""

    reason: str
    n: int
    paths: tuple[str, ...]


def damaged(sources: pl.DataFrame) -> tuple[Skipped, ...]:
    """Sources that were not read whole, by format, state, losses and note."""
    rows = sources.filter(pl.col("status").cast(pl.String) != "read").select(
        pl.col("status").cast(pl.String), pl.col("format").cast(pl.String), "note", "path", "damaged"
    )
    entries = []
    for status, form, note, path, given_up in rows.iter_rows():
        lost = f"{given_up:,} damaged" if given_up else ""
        reason = "; ".join(p for p in (f"{form or 'unknown'}, {status}", lost, note or "") if p)
        entries.append((reason, str(path)))
    return _grouped(entries)


def unclaimed(files: Sequence[Unclaimed]) -> tuple[Skipped, ...]:
    """Files that no loader recognises, by reason."""
    return _grouped([(u.reason, u.path) for u in files])


def _grouped(entries: Sequence[tuple[str, str]]) -> tuple[Skipped, ...]:
    """Files by reason, the most frequent reason first."""
    by_reason: dict[str, list[str]] = {}
    for reason, path in entries:
        by_reason.setdefault(reason, []).append(path)
    ranked = sorted(by_reason.items(), key=lambda kv: (-len(kv[1]), kv[0]))
    told = [
        Skipped(reason, len(paths), tuple(shorten(p, 160) for p in sorted(paths)[:PATHS]))
        for reason, paths in ranked[:REASONS]
    ]
    rest = sum(len(paths) for _, paths in ranked[REASONS:])
    return (*told, Skipped("for other reasons", rest, ())) if rest else tuple(told)


def thresholds(findings: Sequence[Finding]) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """The thresholds in force, by code; the first finding of each code says them."""
    by_code: dict[str, dict[str, object]] = {}
    for f in findings:
        if f.parameters:
            by_code.setdefault(f.code, f.parameters)
    return tuple(
        (code, tuple((name, _plain(value)) for name, value in sorted(by_code[code].items())))
        for code in sorted(by_code)
    )


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def inputs(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    """What was read, as pairs of label and text."""
    sources = analysis.collection.tables.sources
    formats = (
        sources["format"]
        .cast(pl.String)
        .drop_nulls()
        .value_counts()
        .sort("count", "format", descending=[True, False])
    )
    listed = ", ".join(f"{n:,} {name}" for name, n in formats.iter_rows())
    given = analysis.collection.overrides
    pairs = [
        ("Files", f"{len(sources):,} read or recognised, {len(analysis.collection.unclaimed):,} not logs"),
        ("Size", fmt.compact(float(sources["bytes"].sum()), "B")),
        ("Formats", listed),
        ("Newest time in the input", fmt.instant(analysis.collection.newest_ns)),
        ("Tags mapped by hand", ", ".join(shorten(t) for t in sorted(given))),
    ]
    return tuple((label, text) for label, text in pairs if text and text != fmt.DASH)
