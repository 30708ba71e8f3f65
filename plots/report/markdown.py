"""The page in short, as GitHub-flavoured Markdown: for a ticket, a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from afterrun.plots.report.cards import Card, FigureRef
from afterrun.plots.report.format import plural
from afterrun.plots.report.page import Page, Row
from afterrun.plots.report.provenance import Skipped
from afterrun.plots.report.sections import Section
from afterrun.plots.report.text import href, markdown, markdown_code, shorten

RUNS = 200
"""Rows of the run table; ``summary.csv`` holds all."""

BLIND = 40
"""Runs listed under what could not be assessed."""


def render(page: Page) -> str:
    """The report as Markdown. Names from the logs are escaped: no markup, link, mention or HTML of theirs."""
    blocks = [
        f"# {markdown(' '.join(p for p in page.headline if p))}",
        markdown(" · ".join(page.overview)),
        *_top(page.top),
        *_findings(page.rows),
        *_runs(page),
        *_blind(page.sections),
        *_skipped(page),
        *_made(page),
    ]
    return "\n\n".join(blocks) + "\n"


def _top(cards: Sequence[Card]) -> Iterable[str]:
    yield "## What matters most"
    if not cards:
        yield "No check raised an alarm."
    for i, card in enumerate(cards, 1):
        yield f"### {i}. {markdown(card.title)}"
        doubt = ", possible" if card.status == "possible" else ""
        also = f" · also in {plural(card.others, 'other run')}" if card.others else ""
        yield f"{markdown_code(card.run)} · {markdown_code(card.code)} · {card.severity}{doubt}{also}"
        for ref in card.figures[:1]:
            yield from _figure(ref)
        facts = [
            (
                "Effect",
                " ".join(p for p in (card.effect, f"({card.effect_note})" if card.effect_note else "") if p),
            ),
            ("Where", card.place),
            ("Cost", card.cost or "not recorded"),
            ("How sure", card.sure),
        ]
        yield "\n".join(f"- {label}: {markdown(text)}" for label, text in facts if text)
        if card.source:
            yield f"Evidence from {markdown_code(card.source)}:"
        if card.evidence:
            yield _table(
                card.columns,
                [[_cell(c, v) for c, v in zip(card.columns, row, strict=True)] for row in card.evidence],
            )
        if card.advice:
            yield "\n".join(f"{n}. {_prose(a)}" for n, a in enumerate(card.advice, 1))


def _cell(column: str, text: str) -> str:
    return markdown_code(text) if column in ("source", "tag") and text else markdown(text)


def _prose(parts: Sequence[tuple[bool, str]]) -> str:
    return "".join(markdown_code(text) if typed else _keep_blanks(text) for typed, text in parts)


def _keep_blanks(text: str) -> str:
    """Escaped, with the blanks at its ends that separate it from its neighbours."""
    lead = " " if text[:1] == " " else ""
    tail = " " if text[-1:] == " " and text.strip() else ""
    return lead + markdown(text) + tail


def _figure(ref: FigureRef) -> Iterable[str]:
    if ref.png:
        yield f"![{markdown(ref.alt)}]({href(ref.png)})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a bar inside a cell is escaped, in code spans too, as GitHub asks for."""
    cells = [[re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _findings(rows: Sequence[Row]) -> Iterable[str]:
    yield "## All findings"
    found = [row for row in rows if row.groups]
    if not found:
        yield "None."
    for row in found[:RUNS]:
        lines = [f"- {markdown_code(row.name)}"]
        for g in row.groups:
            extra = [f"× {g.n}" if g.n > 1 else "", g.place, g.cost]
            tail = " · ".join([markdown_code(g.code), *(markdown(e) for e in extra if e)])
            lines.append(f"  - {markdown(g.title)} ({tail})")
        yield "\n".join(lines)
    if len(found) > RUNS:
        yield f"{len(found) - RUNS:,} more runs stand in [findings.json](findings.json)."


def _runs(page: Page) -> Iterable[str]:
    yield "## All runs"
    head = ("run", "verdict", "end", "steps", "train", "held-out best", "held-out last")
    rows = [
        (
            markdown_code(r.name),
            markdown(r.verdict),
            r.outcome,
            r.steps.text,
            r.train.text,
            r.best.text,
            r.last.text,
        )
        for r in page.rows[:RUNS]
    ]
    if rows:
        yield _table(head, rows)
    if page.n_runs > len(rows):
        yield f"{page.n_runs - len(rows):,} more runs stand in [summary.csv](summary.csv)."


def _blind(sections: Sequence[Section]) -> Iterable[str]:
    blind = [s for s in sections if s.blind]
    if not blind:
        return
    yield "## Could not be assessed"
    for s in blind[:BLIND]:
        lines = [f"- {markdown_code(s.name)}"]
        for check in s.blind:
            notes = "; ".join(_prose(n) for n in check.notes)
            lines.append(
                f"  - {markdown_code(check.code)} {markdown(check.title)}" + (f": {notes}" if notes else "")
            )
        yield "\n".join(lines)
    if len(blind) > BLIND:
        yield f"{len(blind) - BLIND:,} more runs stand in [findings.json](findings.json)."


def _skipped(page: Page) -> Iterable[str]:
    if not (page.damaged or page.unclaimed or page.faults):
        return
    yield "## What was skipped"
    lines = [_skip(g) for g in (*page.damaged, *page.unclaimed)]
    lines += [f"- {markdown(fault)}" for fault in page.faults]
    yield "\n".join(lines)


def _skip(g: Skipped) -> str:
    paths = [markdown_code(p) for p in g.paths]
    paths += [f"{g.n - len(g.paths):,} more"] if g.n > len(g.paths) else []
    return f"- {markdown(g.reason)}: {', '.join(paths)}"


def _made(page: Page) -> Iterable[str]:
    yield "## How this was made"
    lines = [f"- afterrun {markdown(page.version)}"]
    lines += [f"- Command: {markdown_code(shorten(page.command, 400), 400)}"] if page.command else []
    lines += [f"- {label}: {markdown(text)}" for label, text in page.inputs]
    yield "\n".join(lines)
