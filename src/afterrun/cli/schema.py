"""``afterrun schema``: the tables, and the JSON Schema of findings.json."""

from __future__ import annotations

import json

import click


@click.command(help="The tables, and the JSON Schema of findings.json.")
@click.argument("what", type=click.Choice(["tables", "findings"]), default="tables")
@click.option("--json", "as_json", is_flag=True, help="Tables as JSON; the findings schema always is.")
def command(what: str, as_json: bool) -> int:
    """Print the contract."""
    if what == "findings":
        from afterrun.plots.report import findings_schema  # noqa: PLC0415  # one branch needs it

        click.echo(json.dumps(findings_schema(), indent=2))
        return 0
    from afterrun.loaders.schema import SCHEMAS  # noqa: PLC0415  # one branch needs it

    tables = {name: {c: str(t) for c, t in schema.items()} for name, schema in SCHEMAS.items()}
    if as_json:
        click.echo(json.dumps(tables, indent=2))
        return 0
    for name, columns in tables.items():
        click.echo(name)
        for column, kind in columns.items():
            click.echo(f"  {column:12} {kind}")
    return 0
