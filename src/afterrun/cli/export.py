"""``afterrun export PATH... -o OUT``: the nine tables as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from afterrun.cli.console import err, out, plain, progress
from afterrun.cli.options import OUTPUT, reading, settings_from, unknown_tags, unmet_tags
from afterrun.loaders.errors import UsageError
from afterrun.paths import opened


@click.command(help="The unified tables as Parquet, CSV or JSON lines.")
@reading
@click.option(
    "-o",
    "--output",
    "target",
    type=OUTPUT,
    default=Path("tables"),
    show_default=True,
    help="Folder to write to.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["parquet", "csv", "jsonl"]),
    default="parquet",
    show_default=True,
    help="File format of the tables.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    help="Only metrics with this tag, glob or canonical name, for example 'val/*' or loss. Repeatable.",
)
def command(paths: tuple[str, ...], target: Path, kind: Any, tags: tuple[str, ...], **flags: Any) -> int:
    """Write one file a table and print their paths; raises where no run was found."""
    from afterrun.api import load_options, nothing_found  # noqa: PLC0415  # polars, when something is read
    from afterrun.loaders.collect import collect  # noqa: PLC0415  # polars, when something is read
    from afterrun.loaders.store import write_tables  # noqa: PLC0415  # as above

    settings = settings_from(flags)
    options = load_options(settings, tags)
    with progress() as bar, opened(paths) as ready:
        collection = collect(ready.paths, options, bar("reading"), left_out=ready.left_out)
    if not collection.runs:
        raise nothing_found(collection)
    try:
        written = write_tables(collection.tables, target, kind)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from error
    wanted = options.wanted()
    told = (
        unknown_tags(settings, collection.tables.metrics)
        if wanted is None
        else unmet_tags(wanted.unmet(collection.tables))
    )
    for fault in told:
        err().print(plain(f"warning: {fault}"))
    console = out()
    for path, (_, frame) in zip(written, collection.tables.items(), strict=True):
        rows = f"{len(frame):,} row{'' if len(frame) == 1 else 's'}"
        console.print(plain(str(path)) + plain(f"  {rows}", "dim"))
    return 0
