"""All that the page says, as plain records: built once, printed as HTML and as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.view import RunView
from afterrun.plots.registry import Drawn
from afterrun.plots.report import format as fmt
from afterrun.plots.report.cards import Card, FigureRef, card, figure_refs, run_id
from afterrun.plots.report.provenance import Skipped, damaged, inputs, thresholds, unclaimed
from afterrun.plots.report.sections import Section, section
from afterrun.plots.report.spark import Spark, spark
from afterrun.plots.report.story import (
    OUTCOME_WORDS,
    group,
    headline_parts,
    most_important,
    order_runs,
    worst_first,
)
from afterrun.plots.report.summary import CurveSummary, RunSummary
from afterrun.plots.report.text import shorten

TOP = 3
"""Findings told in full at the head of the page."""

COSTLIEST = 10
"""Findings whose figures are inside the page."""

OPEN_RUNS = 3
"""Up to so many runs, their sections stand open."""

ROWS = 2_000
"""Runs in the table; ``summary.csv`` holds all."""

SECTIONS = 250
"""Runs with a section of their own, worst first: keeps a page of thousands of runs small enough to open."""


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one code in one run: the worst of them, and how many there are."""

    mark: str
    code: str
    n: int
    title: str
    place: str
    cost: str
    href: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of the run table. ``key`` sorts: a number, or empty where not recorded; ``metric`` names it."""

    text: str
    key: str
    metric: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run in the table."""

    id: str
    has_section: bool
    name: str
    verdict: str
    state: str
    outcome: str
    steps: Cell
    train: Cell
    best: Cell
    last: Cell
    cost: Cell
    spark: Spark | None
    groups: tuple[Group, ...]
    severity_key: str
    search: str


@dataclass(frozen=True, slots=True)
class CheckCount:
    """One check over all runs: in how many it found something, found nothing, could not look."""

    code: str
    found: int
    fine: int
    blind: int
    alarm: bool
    """Whether anything found is an alarm and not merely information."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything the page says."""

    title: str
    headline: tuple[str, str]
    overview: tuple[str, ...]
    top: tuple[Card, ...]
    rows: tuple[Row, ...]
    has_cost: bool
    checks: tuple[CheckCount, ...]
    sections: tuple[Section, ...]
    costliest: tuple[FigureRef, ...]
    """Figures to be put inside the page, the most important first; each once."""
    across: tuple[FigureRef, ...]
    """Figures that belong to no single run."""
    n_runs: int
    damaged: tuple[Skipped, ...]
    unclaimed: tuple[Skipped, ...]
    faults: tuple[str, ...]
    thresholds: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    inputs: tuple[tuple[str, str], ...]
    version: str
    command: str

    def metric_of(self, column: str) -> str:
        """The metric that most runs of the table show in this column; empty where there is none."""
        names = Counter(getattr(r, column).metric for r in self.rows)
        del names[""]
        return names.most_common(1)[0][0] if names else ""

    @property
    def faulty(self) -> tuple[Row, ...]:
        """Runs of the table with an alarm."""
        return tuple(r for r in self.rows if any(g.mark != "info" for g in r.groups))

    @property
    def notable(self) -> tuple[Row, ...]:
        """Runs of the table with findings, none of them an alarm."""
        return tuple(r for r in self.rows if r.groups and all(g.mark == "info" for g in r.groups))

    def figures_before(self, i: int) -> set[str]:
        """Keys of the figures that the first ``i`` findings at the head of the page show."""
        return {c.figures[0].key for c in self.top[:i] if c.figures}


def build_page(
    analysis: Analysis,
    drawn: Sequence[Drawn],
    summaries: Mapping[str, RunSummary],
    *,
    version: str,
    command: str,
) -> Page:
    """The page of an analysis. ``summaries`` come from ``summary.summarize``."""
    refs = figure_refs(drawn)
    figures: dict[str, list[FigureRef]] = {}
    for ref in refs:
        figures.setdefault(ref.run, []).append(ref)
    by_run = group(analysis.findings)
    order = order_runs(analysis)
    told = set(order[:SECTIONS])
    runs_with = Counter(code for _, code in {(f.run, f.code) for f in analysis.findings if f.is_alarm})
    dear = [
        card(f, f"top-{i}", figures, runs_with[f.code] - 1)
        for i, f in enumerate(most_important(analysis, COSTLIEST), 1)
    ]
    rows = [_row(analysis.views[n], summaries[n], by_run.get(n, []), n in told) for n in order[:ROWS]]
    sections = [
        section(analysis.views[n], summaries[n], by_run.get(n, []), figures, is_open=len(order) <= OPEN_RUNS)
        for n in order[:SECTIONS]
    ]
    return Page(
        title=f"Post-mortem of {fmt.plural(len(order), 'run')}",
        headline=headline_parts(analysis),
        overview=_overview(analysis, summaries),
        top=tuple(dear[:TOP]),
        rows=tuple(rows),
        has_cost=any(r.cost.key for r in rows),
        checks=_checks(analysis.findings),
        sections=tuple(sections),
        costliest=tuple({c.figures[0].key: c.figures[0] for c in dear if c.figures}.values()),
        across=tuple(r for r in refs if r.run not in analysis.views),
        n_runs=len(order),
        damaged=damaged(analysis.collection.tables.sources),
        unclaimed=unclaimed(analysis.collection.unclaimed),
        faults=analysis.faults,
        thresholds=thresholds(analysis.findings),
        inputs=inputs(analysis),
        version=version,
        command=command,
    )


def _overview(analysis: Analysis, summaries: Mapping[str, RunSummary]) -> tuple[str, ...]:
    points = sum(s.points for s in summaries.values())
    alarms = sum(f.is_alarm for f in analysis.findings)
    fine = sum(f.status == "refuted" for f in analysis.findings)
    blind = sum(f.status == "abstained" for f in analysis.findings)
    tables = analysis.collection.tables
    counted = ((points, "values"), (len(tables.spans), "trace events"), (len(tables.samples), "samples"))
    return (
        *([f"{fmt.compact(float(n))} {words}" for n, words in counted if n] or ["0 values"]),
        fmt.plural(alarms, "finding"),
        f"{fmt.plural(fine, 'check')} fine",
        f"{fmt.count(blind)} could not look",
    )


def _checks(findings: Sequence[Finding]) -> tuple[CheckCount, ...]:
    """Checks that raised an alarm anywhere first, then by code."""
    runs: dict[str, dict[str, set[str]]] = {}
    for f in findings:
        runs.setdefault(f.code, {}).setdefault(f.status, set()).add(f.run)
    alarms = {f.code for f in findings if f.is_alarm}
    none: set[str] = set()
    return tuple(
        CheckCount(
            code=code,
            found=len(runs[code].get("confirmed", none) | runs[code].get("possible", none)),
            fine=len(runs[code].get("refuted", none)),
            blind=len(runs[code].get("abstained", none)),
            alarm=code in alarms,
        )
        for code in sorted(runs, key=lambda c: (c not in alarms, c))
    )


def _row(view: RunView, s: RunSummary, findings: Sequence[Finding], has_section: bool) -> Row:
    groups = _groups(findings, s)
    alarms = worst_first(f for f in findings if f.is_alarm)
    onset = alarms[0].where.step_start if alarms else None
    held = s.held_out
    main = view.train_loss or max(view.lead, key=len, default=None)
    outcome = OUTCOME_WORDS.get(s.outcome, s.outcome)
    weight = sum({"critical": 100.0, "warning": 1.0}.get(f.severity, 0.0) for f in alarms)
    return Row(
        id=run_id(s.name),
        has_section=has_section,
        name=s.name,
        verdict=s.verdict,
        state=s.state,
        outcome=outcome,
        steps=Cell(fmt.count(s.last_step), "" if s.last_step is None else str(s.last_step)),
        train=_value(s.train, "last"),
        best=_value(held, "best"),
        last=_value(held, "last"),
        cost=Cell(fmt.gpu_time(s.wasted_gpu_s), "" if s.wasted_gpu_s is None else repr(s.wasted_gpu_s)),
        spark=spark(main, onset),
        groups=groups,
        severity_key=f"{weight:g}",
        search=" ".join((s.name, outcome, s.state, *(g.code for g in groups))).lower(),
    )


def _value(c: CurveSummary | None, which: str) -> Cell:
    x = getattr(c, which) if c is not None else None
    if c is None or x is None:
        return Cell(fmt.DASH, "")
    name = c.metric or shorten(c.tag, 24)
    finite = math.isfinite(x)
    return Cell(fmt.number(x), repr(x) if finite else "", name)


def _groups(findings: Sequence[Finding], s: RunSummary) -> tuple[Group, ...]:
    """One entry a code, worst first: alarms, then what is merely worth knowing."""
    claims = worst_first(f for f in findings if f.status in ("confirmed", "possible"))
    claims.sort(key=lambda f: not f.is_alarm)
    first: dict[str, Finding] = {}
    n: dict[str, int] = {}
    for f in claims:
        first.setdefault(f.code, f)
        n[f.code] = n.get(f.code, 0) + 1
    out = []
    for code, f in first.items():
        c = card(f, "", {})
        out.append(Group(c.mark, code, n[code], c.title, c.place, c.cost, f"{run_id(s.name)}-{code}-1"))
    return tuple(out)
