"""The section of one run: its facts, its story in time order, what was checked, what could not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from afterrun.analyzer.finding import Finding, onset_order
from afterrun.analyzer.view import RunView
from afterrun.plots.report import format as fmt
from afterrun.plots.report.cards import Card, FigureRef, card, run_id
from afterrun.plots.report.story import OUTCOME_WORDS
from afterrun.plots.report.summary import CurveSummary, RunSummary
from afterrun.plots.report.text import segments, shorten

SAME_CODE = 6
"""Findings of one code told one by one in the story of a run; ``findings.json`` holds all."""

MARKS = 12
"""Marks from text logs in the story of a run."""

SOURCES = 12
"""Files listed in the section of a run; ``data/sources.parquet`` holds all."""

QUIET_MARKS = ("checkpoint", "eval", "start", "finish")
"""Kinds of marks that happen all the time or that the story says itself."""

Segments = tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of a run's story."""

    place: str
    text: str
    mark: str = ""
    card: Card | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check without an alarm. ``notes`` says what was missing and what to paste."""

    code: str
    title: str
    notes: tuple[Segments, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Everything about one run, ready to print."""

    id: str
    name: str
    verdict: str
    state: str
    is_open: bool
    facts: tuple[tuple[str, str], ...]
    story: tuple[Moment, ...]
    curves: tuple[tuple[str, ...], ...]
    figures: tuple[FigureRef, ...]
    fine: tuple[Check, ...]
    blind: tuple[Check, ...]
    sources: tuple[tuple[str, ...], ...]
    sources_left_out: int


def section(
    view: RunView,
    summary: RunSummary,
    findings: Sequence[Finding],
    figures: Mapping[str, Sequence[FigureRef]],
    *,
    is_open: bool,
) -> Section:
    """The section of one run from its view, its numbers and its findings."""
    sources = view.tables.sources
    return Section(
        id=run_id(view.name),
        name=view.name,
        verdict=summary.verdict,
        state=summary.state,
        is_open=is_open,
        facts=_facts(view, summary),
        story=_story(view, summary, findings, figures),
        curves=tuple(_curve(c) for c in summary.metrics),
        figures=tuple(figures.get(view.name, ())),
        fine=tuple(Check(f.code, f.title) for f in findings if f.status == "refuted"),
        blind=tuple(_blind(f) for f in findings if f.status == "abstained"),
        sources=tuple(_source(row) for row in sources.head(SOURCES).iter_rows(named=True)),
        sources_left_out=max(0, len(sources) - SOURCES),
    )


def _facts(view: RunView, s: RunSummary) -> tuple[tuple[str, str], ...]:
    superseded = int(view.tables.metrics["superseded"].sum())
    seconds = (
        (s.ended_ns - s.started_ns) / 1e9 if s.started_ns is not None and s.ended_ns is not None else None
    )
    device = view.tables.runs["device_name"].drop_nulls().to_list()
    pairs = [
        ("End", OUTCOME_WORDS.get(s.outcome, s.outcome)),
        ("Steps", _span(s.first_step, s.last_step)),
        (
            "Values",
            fmt.count(s.points) + (f" + {superseded:,} superseded" if superseded else ""),
        ),
        ("Attempts", fmt.count(s.attempts) if s.attempts > 1 else ""),
        ("Started", fmt.instant(s.started_ns) if s.started_ns is not None else ""),
        ("Took", fmt.duration(seconds) if seconds is not None else ""),
        ("GPUs", fmt.count(s.devices) + (f" × {device[0]}" if device else "") if s.devices else ""),
        ("Formats", ", ".join(s.formats)),
        ("Grouped by", s.grouped_by),
        ("Path", s.path if s.path != s.name else ""),
        ("Notes", "; ".join(s.notes)),
    ]
    return tuple((label, text) for label, text in pairs if text)


def _span(first: int | None, last: int | None) -> str:
    return "not recorded" if first is None else f"{fmt.count(first)} to {fmt.count(last)}"


def _curve(c: CurveSummary) -> tuple[str, ...]:
    best = fmt.number(c.best)
    if c.best_step is not None:
        best += f" at {fmt.count(c.best_step)}"
    points = fmt.count(c.points) + (f" ({c.non_finite:,} not finite)" if c.non_finite else "")
    split = "" if c.split == "none" else c.split
    return (shorten(c.tag), c.metric or "unknown", split, points, fmt.number(c.last), best)


def _blind(f: Finding) -> Check:
    notes = (*f.missing, *f.advice)
    return Check(f.code, f.title, tuple(tuple(segments(n)) for n in notes))


def _source(row: Mapping[str, object]) -> tuple[str, ...]:
    rows, damaged = row["rows"], row["damaged"]
    return (
        shorten(str(row["path"]), 120),
        str(row["format"] or fmt.DASH),
        str(row["status"] or fmt.DASH),
        fmt.count(rows) if isinstance(rows, int) else fmt.DASH,
        fmt.count(damaged) if isinstance(damaged, int) and damaged else "",
        str(row["note"] or ""),
    )


def _story(
    view: RunView,
    summary: RunSummary,
    findings: Sequence[Finding],
    figures: Mapping[str, Sequence[FigureRef]],
) -> tuple[Moment, ...]:
    """Start, findings and marks by step, end. What has no step stands before the end."""
    told: list[tuple[float, Moment]] = []
    seen: Counter[str] = Counter()
    claims = [f for f in findings if f.status in ("confirmed", "possible")]
    for f in sorted(claims, key=lambda f: (*onset_order(f), f.rank or 0, f.title)):
        seen[f.code] += 1
        if seen[f.code] <= SAME_CODE:
            c = card(f, f"{run_id(view.name)}-{f.code}-{seen[f.code]}", figures)
            told.append((_at(f.where.step_start), Moment(_step(f.where.step_start), c.title, c.mark, c)))
    for code, n in sorted(seen.items()):
        if n > SAME_CODE:
            text = f"{fmt.plural(n - SAME_CODE, 'more finding')} of {code}, told in findings.json"
            told.append((float("inf"), Moment("", text)))
    told += [(_at(step), Moment(_step(step), text)) for step, text in _marks(view)]
    told.sort(key=lambda pair: pair[0])
    start = Moment(_step(summary.first_step), "starts")
    outcome = OUTCOME_WORDS.get(summary.outcome, summary.outcome)
    end = Moment(
        _step(summary.last_step), f"last value; end {outcome}" if summary.outcome == "unknown" else outcome
    )
    return (start, *(m for _, m in told), end) if summary.points else tuple(m for _, m in told)


def _at(step: int | None) -> float:
    return float("inf") if step is None else float(step)


def _step(step: int | None) -> str:
    return "" if step is None else fmt.count(step)


def _marks(view: RunView) -> list[tuple[int | None, str]]:
    marks = view.tables.marks.filter(~pl.col("kind").cast(pl.String).is_in(QUIET_MARKS))
    rows = marks.head(MARKS).select(pl.col("step"), pl.col("kind").cast(pl.String), pl.col("text"))
    out: list[tuple[int | None, str]] = []
    for step, kind, text in rows.iter_rows():
        out.append((step, f"{kind}: {shorten(text, 160)}" if text else str(kind)))
    if len(marks) > MARKS:
        out.append((None, f"{len(marks) - MARKS:,} more marks, told in data/marks.parquet"))
    return out
