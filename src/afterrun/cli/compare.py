"""``afterrun compare BASE CANDIDATE``: two runs or traces side by side."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from afterrun.cli.console import err, out, plain, progress
from afterrun.cli.options import settings_from
from afterrun.loaders.errors import NothingToAnalyseError, UsageError
from afterrun.paths import opened

if TYPE_CHECKING:
    from afterrun.analyzer.compare import Comparison, Row
    from afterrun.analyzer.view import RunView

NOTABLE_PCT = 5.0
"""Change from which a row is marked as better or worse."""


@click.command(help="Two runs or traces side by side: GPU time, idle by cause, steps, kernels, counters.")
@click.argument("base")
@click.argument("candidate")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (version 1) on standard output.")
@click.option("--config", type=click.Path(dir_okay=False), help="Configuration file.")
def command(base: str, candidate: str, as_json: bool, config: str | None) -> int:
    """Print the comparison; exit code 3 where the two cannot be compared."""
    from afterrun.analyzer.compare import compare  # noqa: PLC0415  # polars, when something is read

    found = compare(_one(base, config), _one(candidate, config))
    if as_json:
        json.dump(found.document(), sys.stdout, allow_nan=False)
        sys.stdout.write("\n")
    else:
        _print(found)
    for text in found.missing:
        err().print(plain(f"note: {text}"))
    if not found.comparable:
        err().print(plain("Not comparable."))
        return NothingToAnalyseError.exit_code
    return 0


def _one(path: str, config: str | None) -> RunView:
    """The view of the one run below a path."""
    from afterrun.analyzer.view import RunView  # noqa: PLC0415  # polars, when something is read
    from afterrun.loaders.collect import LoadOptions, collect  # noqa: PLC0415  # as above
    from afterrun.settings import name_overrides, now_ns  # noqa: PLC0415  # as above

    settings = settings_from({"config": config})
    overrides = name_overrides(settings)
    options = LoadOptions(
        group=settings.group, verify=settings.verify, overrides=overrides, now_ns=now_ns(settings)
    )
    with progress() as bar, opened((path,)) as ready:
        collection = collect(ready.paths, options, bar("reading"), left_out=ready.left_out)
    names = collection.tables.run_names()
    if not names:
        raise NothingToAnalyseError(f"{path}: no training log or trace found; 'afterrun inspect' says why")
    if len(names) > 1:
        raise UsageError(f"{path}: {len(names)} runs ({', '.join(names[:4])}, ...); name one of them")
    return RunView(name=names[0] if names[0] != "." else path, tables=collection.tables, overrides=overrides)


def _print(found: Comparison) -> None:
    from rich.table import Table  # noqa: PLC0415  # tables only

    console = out()
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("")
    for name in (found.base, found.candidate, "change"):
        table.add_column(plain(name), justify="right")
    group = ""
    for row in found.rows:
        if row.group != group:
            group = row.group
            table.add_row(plain(group, "bold"))
        unit = f" ({row.unit})" if row.unit else ""
        table.add_row(
            plain(f"  {row.name}{unit}"), _number(row.base), _number(row.candidate), plain(*_change(row))
        )
    console.print(table)


def _number(x: float | None) -> str:
    return "not recorded" if x is None else f"{x:,.4g}"


def _change(row: Row) -> tuple[str, str]:
    if row.change_pct is None:
        return "", ""
    text = f"{row.change_pct:+.1f} %"
    if abs(row.change_pct) < NOTABLE_PCT or not row.worse:
        return text, "dim"
    return text, "red" if row.change_pct * row.worse > 0 else "green"
