"""Writes what the documentation takes from the code: a page for each finding, and two tables.

``make docs`` runs it; ``tests/test_docs.py`` compares the committed files with what it would write.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from afterrun.analyzer.registry import Pass, pass_types
from afterrun.cli.explain import page
from afterrun.loaders.registry import loaders

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "findings"


def codes_table(folder: str) -> str:
    """One row a code with the first sentence of its page; links go to the pages below ``folder``."""
    rows = [
        f"| [`{t.code}`]({folder}{t.code}.md) | {_first_sentence(t.explain.meaning)} |"
        for types in _by_subject().values()
        for t in types
    ]
    return "\n".join(["| finding | what it means |", "|---|---|", *rows])


def formats_table() -> str:
    """One row a format, from the docstrings of its loader."""
    rows = [f"| `{x.format}` | {_prose(type(x))} | {_prose(type(x).sniff)} |" for x in loaders()]
    return "\n".join(["| format | what it is | recognised by |", "|---|---|---|", *rows])


def index() -> str:
    """The list of pages, one line a code."""
    parts = ["# Findings", "Each page is what `afterrun explain CODE` prints."]
    for about, types in _by_subject().items():
        parts.append(f"## {_subject(about)}")
        parts.append("\n".join(f"- [`{t.code}`]({t.code}.md): {t.title}" for t in types))
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, str]:
    """Path and text of every page that is generated whole."""
    return {PAGES / "README.md": index()} | {
        PAGES / f"{code}.md": page(t) for code, t in pass_types().items()
    }


TABLES: Mapping[Path, tuple[str, Callable[[], str]]] = {
    ROOT / "README.md": ("codes", lambda: codes_table("docs/findings/")),
    ROOT / "docs" / "formats.md": ("formats", formats_table),
}
"""Files written by hand with one table between ``<!-- NAME -->`` and ``<!-- /NAME -->``."""


def with_table(text: str, name: str, table: str) -> str:
    """The text with what stands between the two marks replaced. Raises ``ValueError`` without the marks."""
    before, begin, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not begin or not end:
        raise ValueError(
            f"no place for the table {name!r}: put <!-- {name} --> and <!-- /{name} --> on lines of their own"
        )
    return f"{before}{begin}{table}\n{end}{after}"


def _by_subject() -> dict[str, list[type[Pass]]]:
    order = ("curves", "gradients", "steps", "gpu", "memory", "job")
    types = sorted(pass_types().values(), key=lambda t: (order.index(t.about), t.code))
    return {
        about: [t for t in types if t.about == about]
        for about in order
        if any(t.about == about for t in types)
    }


def _subject(about: str) -> str:
    return "GPU" if about == "gpu" else about.capitalize()


def _first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence, safe in a table."""
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)[0].replace("|", "\\|")


def _prose(documented: object) -> str:
    """The first paragraph of a docstring on one line, with Markdown's code marks."""
    text = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(text.split())).replace("|", "\\|")


def main() -> None:
    """Write every page and table; pages of codes that are gone are removed."""
    wanted = pages()
    for old in set(PAGES.glob("*.md")) - set(wanted):
        old.unlink()
    PAGES.mkdir(exist_ok=True)
    for path, text in wanted.items():
        path.write_text(text, "utf-8")
    for path, (name, make) in TABLES.items():
        path.write_text(with_table(path.read_text("utf-8"), name, make()), "utf-8")


if __name__ == "__main__":
    main()
