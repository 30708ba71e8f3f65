"""``afterrun explain CODE``: what a finding means and how it is decided."""

from __future__ import annotations

import dataclasses
import difflib
import textwrap

import click

from afterrun.analyzer.registry import Pass, pass_types
from afterrun.loaders.errors import UsageError

WIDTH = 100


@click.command(help="What a finding means and how it is decided. Without CODE: the list of codes.")
@click.argument("code", required=False)
@click.option("--markdown", is_flag=True, help="The same text as Markdown, as in the documentation.")
def command(code: str | None, markdown: bool) -> int:
    """Print the page of a code, or the list."""
    types = pass_types()
    if code is None:
        for name in sorted(types):
            click.echo(f"{name:18} {types[name].title}")
        return 0
    if code not in types:
        near = difflib.get_close_matches(code, types, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(types))}"
        raise UsageError(f"no finding is named {code!r}{hint}")
    click.echo(page(types[code]) if markdown else _plain(page(types[code])))
    return 0


def page(cls: type[Pass]) -> str:
    """The page of one code as Markdown; the documentation holds the same text."""
    e = cls.explain
    rows = [
        f"| `{f.name}` | {f.default!r}{' ' + f.metadata['unit'] if f.metadata.get('unit') else ''} | {_sentence(f.metadata)} |"
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]  # passes are dataclasses
    ]
    needs = (
        ", ".join(f"`{n}`" for n in cls.needs) or "nothing in particular; it looks at whatever is recorded"
    )
    parts = [
        f"# {cls.code}: {cls.title}",
        e.meaning,
        "## How it is decided",
        e.rule,
        "## What it needs",
        f"{needs}.",
        "## When it abstains",
        e.abstains,
        "## Thresholds",
        "Set one with `--set " + f"{cls.code}.NAME=VALUE` or in `[passes.{cls.code}]` of `afterrun.toml`.",
        "\n".join(["| name | default | meaning |", "|---|---|---|", *rows]) if rows else "None.",
        "## Often confused with",
        e.confused_with,
        "## What to try, in this order",
        "\n".join(f"{i}. {text}" for i, text in enumerate(e.remedies, 1)),
        "## Sources",
        "\n".join(f"- {text}" for text in e.sources),
    ]
    return "\n\n".join(parts) + "\n"


def _sentence(metadata: object) -> str:
    get = metadata.get  # type: ignore[attr-defined]  # a mapping proxy
    text = str(get("doc", ""))
    return f"{text} ({get('source')})" if get("source") else text


def _plain(markdown: str) -> str:
    """Markdown for a terminal: headings in capitals, paragraphs wrapped, tables as lists."""
    out: list[str] = []
    for line in markdown.splitlines():
        if line.startswith("# "):
            out.append(line[2:])
        elif line.startswith("## "):
            out.append(line[3:].upper())
        elif line.startswith("|"):
            cells = [c.strip().strip("`") for c in line.strip("|").split("|")]
            if cells[0] in ("name", "---"):
                continue
            text = f"{cells[0]} = {cells[1]}: {cells[2]}"
            out.append(textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="      "))
        elif line[:1].isdigit() or line.startswith("- "):
            out.append(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="     "))
        else:
            out.append(textwrap.fill(line.replace("`", ""), WIDTH))
    return "\n".join(out)
