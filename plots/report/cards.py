"""A finding as the page and the Markdown show it: words and numbers ready to print, nothing to decide."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afterrun.analyzer.finding import Effect, Finding
from afterrun.plots.registry import Drawn
from afterrun.plots.report import format as fmt
from afterrun.plots.report.story import STATUS_WORDS
from afterrun.plots.report.text import href, segments, shorten, slug

EVIDENCE_ROWS = 8
"""Rows of evidence shown for one finding; the others stand in ``findings.json``."""


@dataclass(frozen=True, slots=True)
class FigureRef:
    """One figure: where it lies and what it shows. ``key`` is unique on the page."""

    key: str
    run: str
    name: str
    title: str
    alt: str
    codes: tuple[str, ...]
    png: str | None
    """Path below the output folder; None where no PNG was drawn."""
    links: tuple[tuple[str, str], ...]
    """Pairs of label and relative link: PNG, SVG, PDF, data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One finding, ready to print."""

    id: str
    code: str
    run: str
    run_id: str
    status: str
    severity: str
    mark: str
    """``critical``, ``warning``, ``possible`` or ``info``: the shape of its mark."""
    title: str
    others: int
    """Other runs with an alarm of the same code."""
    place: str
    effect: str
    effect_note: str
    cost: str
    sure: str
    source: str
    """The file that all evidence comes from; empty where there are several."""
    columns: tuple[str, ...]
    """Columns of evidence that hold anything."""
    evidence: tuple[tuple[str, ...], ...]
    evidence_left_out: int
    advice: tuple[tuple[tuple[bool, str], ...], ...]
    """Each sentence as pairs (to be typed?, text)."""
    missing: tuple[tuple[tuple[bool, str], ...], ...]
    figures: tuple[FigureRef, ...]


def run_id(name: str) -> str:
    """The anchor of a run: readable, and unique by a hash of the name."""
    digest = hashlib.blake2s(name.encode("utf-8", "backslashreplace"), digest_size=4).hexdigest()
    return "-".join(p for p in ("run", slug(name), digest) if p)


def figure_refs(drawn: Sequence[Drawn]) -> list[FigureRef]:
    """All figures, in the order they were drawn."""
    labels = {"png": "PNG", "svg": "SVG", "pdf": "PDF", "csv": "data"}
    out = []
    for i, d in enumerate(drawn, 1):
        links = tuple(
            (labels.get(kind, kind), href(path)) for kind, path in sorted(d.files.items(), key=_kind)
        )
        out.append(
            FigureRef(f"figure-{i}", d.run, d.name, d.title, d.alt, tuple(d.codes), d.files.get("png"), links)
        )
    return out


def _kind(item: tuple[str, str]) -> tuple[int, str]:
    order = ("png", "svg", "pdf", "csv")
    return (order.index(item[0]) if item[0] in order else len(order), item[0])


def figures_of(f: Finding, of_run: Sequence[FigureRef]) -> tuple[FigureRef, ...]:
    """The figures that show this finding: those it names, else those drawn for its code, closest first."""
    named = [r for r in of_run if r.name in f.figures]
    return tuple(named or sorted((r for r in of_run if f.code in r.codes), key=lambda r: len(r.codes)))


def card(f: Finding, ident: str, figures: Mapping[str, Sequence[FigureRef]], others: int = 0) -> Card:
    """The printable form of one finding. ``figures`` holds the figures of each run."""
    sources = {e.source for e in f.evidence}
    columns, evidence = _evidence(f, with_source=len(sources) > 1)
    return Card(
        id=ident,
        code=f.code,
        run=f.run,
        run_id=run_id(f.run),
        status=f.status,
        severity=f.severity,
        mark=_mark(f),
        title=f.title.strip(),
        others=others,
        place=_place(f),
        effect=_size(f.effect),
        effect_note=_interval_note(f.effect),
        cost=fmt.gpu_time(f.wasted_gpu_s) if f.wasted_gpu_s is not None else "",
        sure=STATUS_WORDS[f.status],
        source=shorten(sources.pop(), 120) if len(sources) == 1 else "",
        columns=columns,
        evidence=evidence,
        evidence_left_out=max(0, len(f.evidence) - EVIDENCE_ROWS),
        advice=tuple(tuple(segments(a)) for a in f.advice),
        missing=tuple(tuple(segments(m)) for m in f.missing),
        figures=figures_of(f, figures.get(f.run, ())),
    )


def _mark(f: Finding) -> str:
    if not f.is_alarm:
        return "info"
    return "possible" if f.status == "possible" else f.severity


def _place(f: Finding) -> str:
    where = fmt.steps(f.where.step_start, f.where.step_end) if f.where.step_start is not None else ""
    if not where and f.where.t_start_ns is not None:
        where = fmt.instant(f.where.t_start_ns)
    parts = [
        where,
        f"rank {f.rank}" if f.rank is not None else "",
        f"device {f.where.device}" if f.where.device is not None else "",
    ]
    return ", ".join(p for p in parts if p)


def _size(effect: Effect | None) -> str:
    if effect is None or effect.value is None:
        return ""
    return fmt.interval(effect.value, effect.low, effect.high, effect.unit)


def _interval_note(effect: Effect | None) -> str:
    if effect is None or effect.low is None or effect.high is None:
        return ""
    if effect.low == effect.high:
        return effect.method
    level = f"{100 * effect.level:.0f} % interval"
    return f"{level}, {effect.method}" if effect.method else level


def _evidence(f: Finding, *, with_source: bool) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows = [
        {
            "source": shorten(e.source, 120) if with_source else "",
            "line": "" if e.line is None else str(e.line),
            "tag": shorten(e.tag or "", 60),
            "step": "" if e.step is None else fmt.count(e.step),
            "value": "" if e.value is None else fmt.number(e.value),
            "note": e.note,
        }
        for e in f.evidence[:EVIDENCE_ROWS]
    ]
    columns = tuple(c for c in ("source", "line", "tag", "step", "value", "note") if any(r[c] for r in rows))
    return columns, tuple(tuple(r[c] for c in columns) for r in rows)
