"""``afterrun inspect PATH...``: what is here, what is readable, and why not."""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

import click

from afterrun.cli.console import err, out, plain, printable, progress
from afterrun.cli.options import reading, settings_from, unknown_tags
from afterrun.loaders.errors import NothingToAnalyseError
from afterrun.paths import opened

NOTHING = NothingToAnalyseError.exit_code
MAX_METRICS = 200
"""Metrics shown of one run."""
NAME_CHARS = 60
"""Longest tag or name shown."""


@click.command(help="What is here, what is readable, and why not.")
@reading
@click.option("--json", "as_json", is_flag=True, help="One JSON document (version 1) on standard output.")
def command(paths: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Print the inventory; exit code 3 where no run was found."""
    from afterrun.analyzer.inventory import inventory  # noqa: PLC0415  # polars, when something is read
    from afterrun.loaders.collect import LoadOptions, collect  # noqa: PLC0415  # as above
    from afterrun.settings import name_overrides, now_ns  # noqa: PLC0415  # as above

    settings = settings_from(flags)
    options = LoadOptions(
        group=settings.group,
        verify=settings.verify,
        overrides=name_overrides(settings),
        now_ns=now_ns(settings),
    )
    with progress() as bar, opened(paths) as ready:
        collection = collect(ready.paths, options, bar("reading"), left_out=ready.left_out)
        document = inventory(collection)
    for fault in unknown_tags(settings, collection.tables.metrics):
        err().print(plain(f"warning: {fault}"))
    if as_json:
        utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        json.dump(document, sys.stdout, ensure_ascii=not utf8, allow_nan=False)
        sys.stdout.write("\n")
    else:
        _print(document)
    return 0 if document["runs"] else NOTHING


def _print(document: dict[str, Any]) -> None:
    console = out()
    rewritten = False
    for number, run in enumerate(document["runs"]):
        if number:
            console.print()
        console.print(plain(run["run"], "bold"), plain("  " + _heading(run), "dim"))
        for note in run["notes"]:
            console.print(plain(f"  {note}", "dim"))
        console.print(_sources(run))
        if run["metrics"]:
            console.print(_metrics(run["metrics"][:MAX_METRICS]))
        if len(run["metrics"]) > MAX_METRICS:
            more = len(run["metrics"]) - MAX_METRICS
            console.print(plain(f"  +{more:,} more (--json has all)", "dim"))
        rewritten = rewritten or any(m["superseded"] for m in run["metrics"])
    if rewritten:
        console.print(plain("  (+n): values that a restart or a rewrite replaced, kept but not drawn", "dim"))
    if document["unclaimed"]:
        console.print()
        console.print(plain(f"Not read ({len(document['unclaimed'])})", "bold"))
        table = _table("file", "why")
        for file in document["unclaimed"]:
            table.add_row(plain(file["path"]), plain(file["reason"], "dim"))
        console.print(table)
    if not document["runs"]:
        console.print(plain("No training log found."))


def _heading(run: dict[str, Any]) -> str:
    parts = [
        f"{run['attempts']} attempts" if run["attempts"] > 1 else "",
        "" if run["outcome"] == "unknown" else run["outcome"],
        run["grouped_by"],
    ]
    return " · ".join(p for p in parts if p)


def _table(*columns: str, right: tuple[str, ...] = ()) -> Any:
    from rich.table import Table  # noqa: PLC0415  # tables only

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for name in columns:
        # what is cut short can be seen whole with --json
        long = name in ("note", "why", "file")
        side: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=side, overflow="fold" if long else "ellipsis", no_wrap=not long)
    return table


def _sources(run: dict[str, Any]) -> Any:
    table = _table("  source", "format", "read", "note", right=("read",))
    for s in run["sources"]:
        rows = sum(s["rows"].values())
        read = f"{rows:,}" if rows else s["status"]
        notes = [s["note"], f"{s['damaged']:,} damaged" if s["damaged"] else ""]
        style = "" if s["status"] == "read" else "yellow" if s["status"] == "partial" else "dim"
        name = s["path"].removeprefix(run["run"] + "/")
        table.add_row(
            plain("  " + name, style), s["format"], read, plain("; ".join(n for n in notes if n), "dim")
        )
    return table


def _metrics(metrics: list[dict[str, Any]]) -> Any:
    ranks = any(m["rank"] is not None for m in metrics)
    columns = ["  metric", *(["rank"] if ranks else []), "split", "points", "steps", "last", "range", "tag"]
    table = _table(*columns, right=("points", "last"))
    for m in metrics:
        ends = ["?" if m[k] is None else f"{m[k]:,}" for k in ("first_step", "last_step")]
        steps = "" if ends == ["?", "?"] else " .. ".join(ends)
        points = f"{m['points']:,}" + (f" (+{m['superseded']:,})" if m["superseded"] else "")
        strange = [f"{m[k]:,} {word}" for k, word in (("nan", "NaN"), ("inf", "infinite")) if m[k]]
        limits = [] if m["min"] is None else [f"{_short(m['min'])} .. {_short(m['max'])}"]
        rank = [plain("" if m["rank"] is None else str(m["rank"]))] if ranks else []
        split = "" if m["split"] == "none" else m["split"]
        spread = plain(", ".join([*limits, *strange]), "yellow" if strange else "")
        name = plain("  " + _cut(m["metric"] or "?"), "" if m["metric"] else "dim")
        table.add_row(
            name, *rank, split, points, steps, _short(m["last"]), spread, plain(_cut(m["tag"]), "dim")
        )
    return table


def _cut(name: str) -> str:
    """A name at no more than ``NAME_CHARS``; the middle gives way, because both ends tell names apart."""
    half = NAME_CHARS // 2
    return name if len(name) <= NAME_CHARS else f"{name[:half]}…{name[1 - half :]}"


def _short(x: Any) -> str:
    return "" if x is None else printable(x) if isinstance(x, str) else f"{x:,.4g}"
