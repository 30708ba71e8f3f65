"""The strip above the panels: every finding named in a row of its own choosing, no two texts touching.

Labels inside a plot end up on the data or on each other. Here each finding has a flag, a row of
triangles or a bar exactly above the place it speaks of, and its words beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from afterrun.plots.canvas.pen import Pen
from afterrun.plots.spec import Mark

TEXT_SIZE = 0.92
ROW_EM = 1.55
"""Height of a row in type sizes."""
GAP_EM = 0.9
"""Least distance between two marks of a row."""
PAD_EM = 0.4
"""From a flag to its words."""
POLE_EM = 0.3
"""Least distance of words from the pole of a flag in a row above."""


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
    """All marks that found a place, and the number of rows that they take."""

    placed: tuple[Placed, ...]
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
        rows = [_Row() for _ in range(pen.theme.strip_rows)]
        placed: list[Placed] = []
        for mark in sorted(marks[:kept], key=lambda m: -min(m.xs, default=-math.inf)):
            found = _place(mark, to_inch, bounds, rows, pen)
            if found is None:
                break
            placed.append(found)
        else:
            placed += _rest(len(marks) - kept, rows, bounds, pen)
            return Strip(tuple(placed), max(p.row for p in placed) + 1)
    return Strip((), 0)


def _rest(hidden: int, rows: list[_Row], bounds: tuple[float, float], pen: Pen) -> list[Placed]:
    """The count of marks that found no place, at the right end of the first row with room."""
    if not hidden:
        return []
    found = _place(
        Mark("", f"+ {hidden} more", "note", (), "quiet"), lambda x: x, bounds, [*rows, _Row()], pen
    )
    return [found] if found else []


@dataclass(frozen=True, slots=True)
class _Row:
    """What is taken of one row: stretches of words and bars, and the places of poles."""

    words: list[tuple[float, float]] = field(default_factory=list)
    poles: list[float] = field(default_factory=list)

    def admits(self, reach: tuple[float, float], em: float) -> bool:
        low, high = reach
        free = all(high + GAP_EM * em <= a or b + GAP_EM * em <= low for a, b in self.words)
        return free and all(high + POLE_EM * em <= x or x + POLE_EM * em <= low for x in self.poles)

    def admits_pole(self, x: float, em: float) -> bool:
        return all(x + POLE_EM * em <= a or b + POLE_EM * em <= x for a, b in self.words)


def _place(
    mark: Mark, to_inch: Callable[[float], float], bounds: tuple[float, float], rows: list[_Row], pen: Pen
) -> Placed | None:
    em, (left, right) = pen.theme.em, bounds
    text = pen.fit(mark.text, right - left, TEXT_SIZE)
    wide = pen.width(text, TEXT_SIZE)
    xs = tuple(min(max(to_inch(x), left), right) for x in mark.xs)
    flag = mark.shape == "flag"
    for text_x in _text_places(mark, xs, wide, bounds, em):
        points = () if flag else xs
        reach = (min((text_x, *points)), max((text_x + wide, *points)))
        for i, row in enumerate(rows):
            below = rows[:i] if flag else []
            if row.admits(reach, em) and all(r.admits_pole(xs[0], em) for r in below):
                row.words.append(reach)
                for r in [*below, row] if flag else []:
                    r.poles.append(xs[0])
                return Placed(mark, i, xs, text_x, text)
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


def draw_strip(strip: Strip, pen: Pen, bottom: float) -> None:
    """The strip from ``bottom`` (the top of the panels) upwards."""
    em, theme = pen.theme.em, pen.theme
    for p in strip.placed:
        middle = bottom + (p.row + 0.5) * ROW_EM * em
        colour = theme.colour(p.mark.role)
        dashes = "-" if p.mark.certain else (0, (2.5, 1.8))
        if p.mark.shape == "flag":
            pen.line(
                [p.xs[0]] * 2, [bottom, middle + 0.45 * em], color=colour, lw=0.55 * theme.line_pt, ls=dashes
            )
        elif p.mark.shape == "points":
            triangles = {"marker": "v", "ms": 0.5 * theme.font_pt, "mec": "none", "mfc": colour, "ls": "none"}
            pen.line(list(p.xs), [middle] * len(p.xs), **triangles)
        elif p.mark.shape == "span":
            y = middle - 0.62 * em
            pen.line(
                list(p.xs), [y, y], color=colour, lw=0.95 * theme.line_pt, ls=dashes, solid_capstyle="butt"
            )
        pen.text(p.text_x, middle, p.text, size=TEXT_SIZE, role=p.mark.role, gid=f"finding-{p.mark.code}")
