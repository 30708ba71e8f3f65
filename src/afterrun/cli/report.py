"""``afterrun report PATH... -o OUT``: findings, figures and a page."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import count
from afterrun.api import analyse_paths
from afterrun.cli.console import err, out, plain, printable, progress
from afterrun.cli.options import OUTPUT, diagnosing, reading, settings_from, unknown_tags
from afterrun.cli.output import write
from afterrun.loaders.discover import CANNOT
from afterrun.loaders.errors import UsageError
from afterrun.paths import opened
from afterrun.settings import Settings

MAX_LINES = 20
"""Verdict lines on the terminal; the page has all of them."""
MOST = 3
NAME_WIDTH = 48
FAIL_ON_MET, SOME_FAILED = 1, 4


@click.command(help="Findings, figures and a page for the runs below PATH.")
@reading
@diagnosing
@click.option(
    "-o",
    "--output",
    "target",
    type=OUTPUT,
    default=Path("postmortem"),
    show_default=True,
    help="Folder to write to.",
)
@click.option("--figures", metavar="N|all|none", help="How many figures to draw.  [default: 24]")
@click.option("--no-figures", is_flag=True, help="The same as --figures none.")
@click.option(
    "--format", "formats", metavar="LIST", help="File formats of figures: png, svg, pdf.  [default: png,svg]"
)
@click.option(
    "--fail-on",
    metavar="WHAT",
    help="Exit with 1 on a confirmed finding of: warning, critical, or these codes.",
)
@click.option(
    "--fail-on-possible", is_flag=True, default=None, help="Possible findings count for --fail-on, too."
)
@click.option("--strict", is_flag=True, default=None, help="Exit with 4 when some source or pass failed.")
@click.option("--json", "as_json", is_flag=True, help="Print findings.json instead of the summary.")
def command(target: Path, as_json: bool, no_figures: bool, formats: str | None, **flags: Any) -> int:
    """Run the whole path; the return value is the exit code."""
    started = time.monotonic()
    if no_figures:
        flags["figures"] = "none"
    flags["formats"] = [f.strip() for f in formats.split(",") if f.strip()] if formats else None
    paths = flags.pop("paths")
    settings = settings_from(flags)
    wanted = _fail_codes(settings.fail_on)
    with progress() as bar, opened(paths) as ready:
        analysis = analyse_paths(ready, settings, reading=bar("reading"), analysing=bar("analysing"))
        analysis, document = write(analysis, settings, target, started)
    for fault in (*unknown_tags(settings, analysis.collection.tables.metrics), *analysis.faults):
        err().print(plain(f"warning: {fault}"))
    if as_json:
        sys.stdout.buffer.write(document)
    else:
        _summary(analysis, target)
    return _exit_code(analysis, settings, wanted)


def _summary(analysis: Analysis, target: Path) -> None:
    from afterrun.plots.report.format import gpu_time  # noqa: PLC0415  # drawing side, lazy
    from afterrun.plots.report.lines import lines  # noqa: PLC0415  # as above
    from afterrun.plots.report.story import most_important  # noqa: PLC0415  # as above

    console = out()
    told = lines(analysis)
    width = min(max(len(printable(line.label)) for line in told[:MAX_LINES]), NAME_WIDTH)
    for line in told[:MAX_LINES]:
        cost = f"  {gpu_time(line.wasted_gpu_s)} wasted" if line.wasted_gpu_s else ""
        console.print(
            plain(f"{printable(line.label):{width}}  ", "bold") + plain(line.text) + plain(cost, "dim")
        )
    if len(told) > MAX_LINES:
        more = count(sum(len(x.runs) for x in told[MAX_LINES:]), "more run")
        console.print(plain(f"… {more} on the page", "dim"))
    worst = most_important(analysis, MOST)
    if worst:
        console.print()
        console.print(plain("Most costly" if any(f.wasted_gpu_s for f in worst) else "Most severe", "bold"))
    for number, finding in enumerate(worst, 1):
        console.print(plain(f"{number}  {finding.run}  {finding.code}  {finding.title}"))
        if finding.advice:
            console.print(plain(f"   try: {finding.advice[0]}", "dim"))
    console.print()
    console.print(plain(str(target / "index.html"), "bold") + plain(_footer(analysis), "dim"))


def _footer(analysis: Analysis) -> str:
    sources = analysis.collection.tables.sources
    skipped = len(analysis.collection.unclaimed)
    bad = len(sources.filter(sources["status"].cast(pl.String).is_in(["unreadable", "partial"])))
    parts = [f"{count(len(sources), 'file')} read"]
    if bad:
        parts.append(f"{bad} of them damaged or unreadable")
    if skipped:
        parts.append(f"{skipped} skipped (afterrun inspect says why)")
    return "  " + ", ".join(parts)


def _fail_codes(text: str) -> tuple[str, ...]:
    """The parts of --fail-on, checked. Raises ``UsageError`` naming the nearest known one."""
    from afterrun.analyzer.registry import pass_types  # noqa: PLC0415  # imports every pass

    parts = tuple(p.strip() for p in text.split(",") if p.strip())
    known = {"warning", "critical", *pass_types()}
    for part in parts:
        if part not in known:
            import difflib  # noqa: PLC0415  # only on the way to an error

            near = difflib.get_close_matches(part, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(known))}"
            raise UsageError(f"--fail-on: no severity or code is named {printable(part)!r}{hint}")
    return parts


def _meets(finding: Finding, wanted: tuple[str, ...], settings: Settings) -> bool:
    if finding.status != "confirmed" and not (settings.fail_on_possible and finding.status == "possible"):
        return False
    levels = {"critical": ("critical",), "warning": ("critical", "warning")}
    return any(finding.code == w or finding.severity in levels.get(w, ()) for w in wanted)


def _exit_code(analysis: Analysis, settings: Settings, wanted: tuple[str, ...]) -> int:
    if settings.strict:
        statuses = set(analysis.collection.tables.sources["status"].cast(pl.String))
        closed = any(u.reason.startswith(CANNOT) for u in analysis.collection.unclaimed)
        if closed or analysis.faults or statuses & {"unreadable", "partial"}:
            return SOME_FAILED
    return FAIL_ON_MET if any(_meets(f, wanted, settings) for f in analysis.findings) else 0
