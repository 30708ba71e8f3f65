"""``afterrun inspect PATH...``: what is here, what is readable, and why not."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from afterrun.cli.console import err, plain, progress
from afterrun.cli.options import reading, settings_from, unknown_tags
from afterrun.loaders.errors import NothingToAnalyseError
from afterrun.paths import opened

NOTHING = NothingToAnalyseError.exit_code


@click.command(help="What is here, what is readable, and why not.")
@reading
@click.option("--json", "as_json", is_flag=True, help="One JSON document (version 1) on standard output.")
def command(paths: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Print the inventory; exit code 3 where no run was found."""
    from afterrun.analyzer.inventory import inventory  # noqa: PLC0415  # polars, when something is read
    from afterrun.cli.inventory import show  # noqa: PLC0415  # rich, when something is shown
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
        show(document)
    return 0 if document["runs"] else NOTHING
