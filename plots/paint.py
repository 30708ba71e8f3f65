"""From a prepared figure to artists: margins from measured text, panels, layers, strip, lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from afterrun.plots.pen import Pen
from afterrun.plots.registry import Prepared
from afterrun.plots.spec import End, Key, Panel, XAxis
from afterrun.plots.strip import ROW_EM, Strip, arrange, draw_strip
from afterrun.plots.text import (
    BOX,
    legible,
    linear_ticks,
    log_ticks,
    step_text,
    tick_texts,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

GRID = "#EBEBEB"
LANE_FILL = "#F4F4F4"
FEW_POINTS = 80
"""Up to this many points a line shows its points."""
TICK_SIZE = 0.92
KEY_SIZE = 0.92
TITLE_SIZE = 1.3
LANE_EM = 1.25
SIDE = "side"
"""Rows of this panel are drawn in the side panel, which shares the vertical axis of the first."""


class Ticks(NamedTuple):
    """Places and labels."""

    at: list[float]
    text: list[str]


class Frame(NamedTuple):
    """The room of all panels together, in inches."""

    left: float
    right: float
    bottom: float
    top: float


def paint(prepared: Prepared, theme: Theme, *, side: float = 0.0) -> MplFigure:
    """The figure. ``side`` is the share of the width given to a side panel, 0 for none."""
    with theme.context():
        figure = theme.figure()
        pen = Pen(figure, theme)
        em = theme.em
        y_ticks = {p.name: _y_ticks(p, theme) for p in prepared.panels}
        lanes = prepared.frame.filter(pl.col("layer") == "lane")["name"].unique(maintain_order=True).to_list()
        left = _left_margin(pen, y_ticks, lanes)
        right = theme.width_in - _right_margin(pen, prepared.ends)
        edge = right - side * (right - left)
        top = _header(pen, prepared)
        strip = arrange(prepared.marks, _to_inch(prepared.x, left, edge), (left, edge), pen)
        top -= (strip.rows + bool(strip.hidden)) * ROW_EM * em
        if strip.rows:
            top -= 0.2 * em
        bottom = 3.4 * em + LANE_EM * em * len(lanes) + (0.35 * em if lanes else 0.0)
        room = Frame(left, edge, bottom, top)
        axes = _panels(pen, prepared, y_ticks, room)
        for name, ax in axes.items():
            _layers(ax, prepared.frame.filter(pl.col("panel") == name), prepared, theme)
            _findings(ax, prepared, theme)
        bottom_ax = _lane(pen, prepared, lanes, room) if lanes else list(axes.values())[-1]
        _x_axis(bottom_ax, prepared.x, theme)
        if side:
            _side(pen, prepared, Frame(edge, right, bottom, top), next(iter(axes.values())))
        _ends(pen, prepared, axes, right)
        draw_strip(strip, pen, top + (0.2 * em if strip.rows else 0.0), (left, edge))
        return figure
