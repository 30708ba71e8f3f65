"""The page as one file: templates with autoescape, hashes of the inline style and script, figures inside.

The only module that makes ``Markup``: for our own style sheet and script, never for anything read.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from afterrun.loaders.schema import Tables
from afterrun.plots.report.cards import FigureRef
from afterrun.plots.report.page import Page
from afterrun.plots.report.text import shorten, visible

EMBED_BYTES = 2_500_000
"""Bytes of PNG inside the page, before base64; further figures are linked."""

LIST_OPEN = 40
"""Runs whose findings stand in the open list; the others are one click away."""

POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of values in the run table. ``name`` is the field of ``Row``."""

    name: str
    label: str
    metric: str = ""
    """The metric of most cells; the others name their own."""

    @property
    def head(self) -> str:
        """What stands in the header."""
        return f"{self.label}, {self.metric}" if self.metric else self.label


def columns(page: Page) -> list[Column]:
    """The columns of values, in order; cost only where any is recorded."""
    values = [("train", "Train"), ("best", "Held-out best"), ("last", "Held-out last")]
    found = [Column("steps", "Steps"), *(Column(name, label, page.metric_of(name)) for name, label in values)]
    return [*found, Column("cost", "Lost")] if page.has_cost else found


@dataclass(frozen=True, slots=True)
class Image:
    """A PNG inside the page."""

    uri: str
    width: int
    height: int


def render(page: Page, out: Path) -> str:
    """The page as HTML. ``out`` is the folder that holds the figures."""
    css, js = asset("report.css"), asset("report.js")
    embedded = embed(page.costliest, out)
    top = page.figures_before(len(page.top))
    text = (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            css=_inline(css, "style"),
            js=_inline(js, "script"),
            csp=POLICY.format(script=digest(js), style=digest(css)),
            embedded=embedded,
            top_keys=top,
            here=set(embedded) - top,
            columns=columns(page),
            list_open=LIST_OPEN,
            tables=Tables.names(),
        )
    )
    return text + "\n"


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FunctionLoader(lambda name: _read("templates", name)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    env.filters["short"] = shorten
    env.filters["tied"] = tied
    return env


def _shown(value: Any) -> Any:
    """Every string that reaches the page has its control characters made visible first."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def tied(text: str) -> str:
    """Prose whose numbers do not part from their units and prepositions at the end of a line."""
    return _TIES.sub("\u00a0", text).replace("GPU-", "GPU\u2011")


_TIES = re.compile(
    r"(?<=\d) (?=%|GPU-|GPUs?\b|steps?\b|times\b)"  # 18 %, 3 steps
    r"|(?<=\bin) (?=\d)|(?<=\bstep) (?=\d)"  # in 3, step 6,400
)


@cache
def _read(folder: str, name: str) -> str:
    return (resources.files("afterrun.plots.report") / folder / name).read_text("utf-8")


def asset(name: str) -> str:
    """Our own style sheet or script."""
    return _read("assets", name)


def _inline(text: str, element: str) -> Markup:
    if f"</{element}" in text.lower():
        raise ValueError(f"the {element} would end early: it holds its own end tag")
    return Markup(text)  # noqa: S704  # a file of this package, nothing read


def digest(text: str) -> str:
    """The hash by which the policy knows an inline element: of its exact text, UTF-8."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def embed(figures: Sequence[FigureRef], out: Path) -> Mapping[str, Image]:
    """The PNG of each figure as a data URI by key, as far as ``EMBED_BYTES`` reaches; unreadable ones are left out."""
    images: dict[str, Image] = {}
    left = EMBED_BYTES
    for ref in figures:
        data = _png(out / ref.png) if ref.png else None
        if data is None or len(data) > left:
            continue
        left -= len(data)
        width, height = struct.unpack(">II", data[16:24])
        images[ref.key] = Image("data:image/png;base64," + base64.b64encode(data).decode(), width, height)
    return images


def _png(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) > 24 else None
