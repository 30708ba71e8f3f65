"""The strip above the panels: every finding named in a row of its own choosing, no two texts touching.

Labels inside a plot end up on the data or on each other. Here each finding has a flag, a row of
triangles or a bar exactly above the place it speaks of, and its words beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from afterrun.plots.pen import Pen
from afterrun.plots.spec import Mark

TEXT_SIZE = 0.92
ROW_EM = 1.55
"""Height of a row in type sizes."""
GAP_EM = 0.9
"""Least distance between two marks of a row."""
PAD_EM = 0.4
"""From a flag to its words."""


class Placed(NamedTuple):
    """A mark in its row (0 is next to the panel); lengths in inches."""

    mark: Mark
    row: int
    xs: tuple[float, ...]
    text_x: float
    """Left end of the words."""
    text: str


@dataclass(frozen=True, slots=True)
class Strip:
    """All marks that found a place, and the number of those that did not."""

    placed: tuple[Placed, ...]
    hidden: int
    rows: int


def arrange(
    marks: Sequence[Mark], to_inch: Callable[[float], float], bounds: tuple[float, float], pen: Pen
) -> Strip:
    """Rows for marks, worst first, between the left and right ``bounds`` in inches.

    A flag's pole runs down through the rows below its own, so these keep clear of it, too. Filled from
    right to left, each flag's words pass over those to its right. The least important marks give way
    where the rows are too few.
    """
    for kept in range(len(marks), 0, -1):
        taken: list[list[tuple[float, float]]] = [[] for _ in range(pen.theme.strip_rows)]
        placed: list[Placed] = []
        for mark in sorted(marks[:kept], key=lambda m: -max(m.xs, default=math.inf)):
            found = _place(mark, to_inch, bounds, taken, pen)
            if found is None:
                break
            placed.append(found)
        else:
            return Strip(tuple(placed), len(marks) - kept, max(p.row for p in placed) + 1)
    return Strip((), len(marks), 0)


def _place(
    mark: Mark,
    to_inch: Callable[[float], float],
    bounds: tuple[float, float],
    taken: list[list[tuple[float, float]]],
    pen: Pen,
) -> Placed | None:
    em, (left, right) = pen.theme.em, bounds
    text = pen.fit(mark.text, right - left, TEXT_SIZE)
    wide = pen.width(text, TEXT_SIZE)
    xs = tuple(min(max(to_inch(x), left), right) for x in mark.xs)
    for text_x in _text_places(mark, xs, wide, bounds, em):
        reach = (min((text_x, *xs)), max((text_x + wide, *xs)))
        pole = (xs[0], xs[0]) if mark.shape == "flag" else None
        for row, used in enumerate(taken):
            below = taken[:row] if pole else []
            if _free(reach, used, GAP_EM * em) and all(_free(pole or reach, u, 0.3 * em) for u in below):
                used.append(reach)
                for u in below:
                    u.append(pole or reach)
                return Placed(mark, row, xs, text_x, text)
    return None


def _text_places(
    mark: Mark, xs: tuple[float, ...], wide: float, bounds: tuple[float, float], em: float
) -> list[float]:
    """Where the words may begin, best first."""
    left, right = bounds
    pad = PAD_EM * em
    if mark.shape == "note" or not xs:
        return [max(left, right - wide)]
    if mark.shape == "span":
        return [min(xs[0], max(left, right - wide))]
    triangle = 0.4 * em if mark.shape == "points" else 0.0
    after, before = xs[-1] + pad + triangle, xs[0] - pad - triangle - wide
    fitting = [x for x in (after, before) if x >= left and x + wide <= right]
    return fitting or [min(max(after, left), right - wide)]


def _free(reach: tuple[float, float], used: list[tuple[float, float]], gap: float) -> bool:
    return all(reach[1] + gap <= a or b + gap <= reach[0] for a, b in used)


def draw_strip(strip: Strip, pen: Pen, bottom: float, right: float) -> None:
    """The strip from ``bottom`` (the top of the panels) upwards."""
    em, theme = pen.theme.em, pen.theme
    for p in strip.placed:
        middle = bottom + (p.row + 0.5) * ROW_EM * em
        colour = theme.colour(p.mark.role)
        dashes = "-" if p.mark.certain else (0, (2.5, 1.8))
        if p.mark.shape == "flag":
            pen.line([p.xs[0]] * 2, [bottom, middle + 0.45 * em], color=colour, lw=0.9, ls=dashes)
        elif p.mark.shape == "points":
            triangles = {"marker": "v", "ms": 0.5 * theme.font_pt, "mec": "none", "mfc": colour, "ls": "none"}
            pen.line(list(p.xs), [middle] * len(p.xs), **triangles)
        elif p.mark.shape == "span":
            y = middle - 0.62 * em
            pen.line(list(p.xs), [y, y], color=colour, lw=1.6, ls=dashes, solid_capstyle="butt")
        pen.text(p.text_x, middle, p.text, size=TEXT_SIZE, role=p.mark.role, gid=f"finding-{p.mark.code}")
    if strip.hidden:
        words = f"+ {strip.hidden} more"
        y = bottom + (strip.rows + 0.5) * ROW_EM * em
        pen.text(right - pen.width(words, TEXT_SIZE), y, words, size=TEXT_SIZE, role="quiet")
