"""The whole report of one analysis, written into one folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.loaders.store import replacing, write_tables
from afterrun.plots.registry import Drawn
from afterrun.plots.report import markdown
from afterrun.plots.report.files import findings_json, summary_csv, write_text
from afterrun.plots.report.page import build_page
from afterrun.plots.report.summary import summarize


def write_report(
    analysis: Analysis, drawn: Sequence[Drawn], out: Path, *, version: str, command: str
) -> list[Path]:
    """Write page, Markdown, findings, summary and tables below ``out`` and return their paths.

    ``drawn`` are the figures that already lie below ``out``. Each file is replaced whole or not at
    all; the page comes last, so that where it stands, all it links to stands too. Raises ``OSError``
    where the folder cannot be written.
    """
    from afterrun.plots.report import html  # noqa: PLC0415  # jinja2 only where a page is written

    findings = with_figures(analysis.findings, drawn)
    summaries = summarize(analysis)
    page = build_page(analysis, drawn, summaries, version=version, command=command)
    paths = write_tables(analysis.collection.tables, out / "data")
    with replacing(out / "findings.json") as file:
        file.write(findings_json(findings, summaries))
    return [
        *paths,
        out / "findings.json",
        write_text(out / "summary.csv", summary_csv(summaries)),
        write_text(out / "report.md", markdown.render(page)),
        write_text(out / "index.html", html.render(page, out)),
    ]


def with_figures(findings: Sequence[Finding], drawn: Sequence[Drawn]) -> list[Finding]:
    """The findings, each with the names of the figures of its run that show its code."""
    shown: dict[tuple[str, str], list[str]] = {}
    for d in drawn:
        for code in d.codes:
            shown.setdefault((d.run, code), []).append(d.name)
    return [
        msgspec.structs.replace(
            f, figures=tuple(dict.fromkeys((*f.figures, *shown.get((f.run, f.code), ()))))
        )
        for f in findings
    ]
