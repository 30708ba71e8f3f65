"""The parts of a prepared figure, as plain values: what ``prepare`` decides and ``paint`` turns into artists.

The drawn numbers are one long frame (``FRAME``): each row belongs to a panel and to a layer, and the
layer says how it is drawn.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import polars as pl

from afterrun.analyzer.stats import Array

Layer = Literal[
    "raw", "band", "smooth", "line", "dots", "superseded", "lane", "peak", "best", "shade", "fill", "bar",
    "box", "area", "heat", "label",
]  # fmt: skip
"""How rows are drawn.

``raw``         thin line through every point (thinned to its envelope), holes where a value is not finite
``band``        filled between ``low`` and ``high``
``smooth``      strong line
``line``        line with markers at its points while they are few
``dots``        one small dot a point
``superseded``  faint dashed grey line: rows that a restart replaced
``lane``        stretch from ``x`` to ``x_end`` where values are not finite, in a lane below the panel
``peak``        open triangle above a point
``best``        ring around a point
``shade``       stretch of the panel from ``x`` to ``x_end`` (an interval of confidence)
``fill``        filled between zero and ``y``
``bar``         horizontal bar from zero to ``x_end`` between ``low`` and ``high``
``box``         filled rectangle from ``x`` to ``x_end`` and ``low`` to ``high``
``area``        filled between ``low`` and ``high``, from each ``x`` to the next
``heat``        rectangle from ``x`` to ``x_end`` and ``low`` to ``high``, darker the nearer ``y`` is to 1
``label``       the words in ``name``, right of the point
"""

MARKED_POINTS = 80
"""Up to this many points a line shows its points."""

FRAME = pl.Schema(
    {
        "panel": pl.String(),
        "layer": pl.String(),
        "name": pl.String(),
        "x": pl.Float64(),
        "x_end": pl.Float64(),
        "y": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)
"""``name`` is the raw tag, or the code of the finding; columns that a layer does not use are null."""


class Panel(NamedTuple):
    """One pair of axes. ``share`` is its part of the height."""

    name: str
    y_label: str
    low: float
    high: float
    log: bool = False
    share: float = 1.0
    zero: bool = False
    """Whether a line marks zero."""
    rows: tuple[str, ...] = ()
    """Names of rows from top to bottom; row i stands at i, and the axis has no numbers."""


def row_panel(name: str, names: tuple[str, ...], *, share: float = 1.0) -> Panel:
    """A panel of named rows, the first on top."""
    return Panel(name, "", len(names) - 0.5, -0.5, share=share, rows=names)


class XAxis(NamedTuple):
    """The shared horizontal axis."""

    label: str
    low: float
    high: float
    whole: bool = True
    """Whether only whole numbers make sense."""
    end: float | None = None
    """Where the numbers end, if before ``high``: what lies beyond is room for words."""


class Key(NamedTuple):
    """One entry of the legend above the panels."""

    layer: str
    role: str
    text: str


class End(NamedTuple):
    """The name of a curve at its last point, right of the panel."""

    panel: str
    y: float
    text: str
    role: str


class Mark(NamedTuple):
    """A finding where it happens: a flag at one place, small triangles at several, or a bar over a stretch."""

    code: str
    text: str
    shape: Literal["flag", "points", "span", "note"]
    xs: tuple[float, ...] = ()
    """The place of a flag, the places of points, start and end of a span; empty for a note."""
    role: str = "accent"
    certain: bool = True
    """False for a possible finding: drawn dashed."""
    shaded: bool = False
    """Whether a span is also tinted in the panels."""


def rows(
    panel: str, layer: Layer, name: str, x: Array | list[float], **columns: Array | list[float]
) -> pl.DataFrame:
    """Rows of the drawn frame; ``columns`` are ``x_end``, ``y``, ``low``, ``high``, each as long as x."""
    n = len(x)
    data = {
        c: columns[c] if c in columns else [None] * n
        for c in FRAME
        if c not in ("panel", "layer", "name", "x")
    }
    return pl.DataFrame(
        {"panel": [panel] * n, "layer": [layer] * n, "name": [name] * n, "x": x, **data},
        schema=FRAME,
        strict=False,
    )


def stack(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """All rows of a figure in drawing order."""
    return pl.concat(parts) if parts else pl.DataFrame(schema=FRAME)
