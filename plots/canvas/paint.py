"""From a prepared figure to artists: margins from measured text, then panels, layers, strip and lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from afterrun.plots.canvas.artists import draw_findings, draw_layers, key_artists
from afterrun.plots.canvas.pen import Pen
from afterrun.plots.canvas.scales import SMALL, Ticks, x_axis, y_axis, y_ticks
from afterrun.plots.canvas.strip import ROW_EM, arrange, draw_strip
from afterrun.plots.canvas.text import legible, linear_ticks, whole_ticks
from afterrun.plots.registry import Prepared
from afterrun.plots.spec import End, Key, XAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

LANE_FILL = "#F3F3F3"
TITLE_SIZE = 1.3
LINE_EM = 1.5
LANE_EM = 1.3
X_AXIS_EM = 3.4
PANEL_GAP_EM = 1.0
SIDE = "side"
"""Rows of this panel are drawn in a side panel, which shares the vertical axis of the first."""


class Room(NamedTuple):
    """A rectangle in inches."""

    left: float
    right: float
    bottom: float
    top: float


def paint(prepared: Prepared, theme: Theme, *, side: float = 0.0) -> MplFigure:
    """The figure. ``side`` is the share of the width given to a side panel, 0 for none."""
    with theme.context():
        figure = theme.figure()
        pen = Pen(figure, theme)
        total = sum(p.share for p in prepared.panels)
        ticks = {p.name: y_ticks(p, theme, p.share / total) for p in prepared.panels}
        lanes = prepared.frame.filter(pl.col("layer") == "lane")["name"].unique(maintain_order=True).to_list()
        left = _left_margin(pen, ticks, lanes)
        right = theme.width_in - _right_margin(pen, prepared.ends)
        edge = right - side * (right - left)
        x = prepared.x
        strip = arrange(
            prepared.marks,
            lambda v: left + (v - x.low) / (x.high - x.low) * (edge - left),
            (left, theme.width_in - 0.7 * theme.em),
            pen,
        )
        ceiling = _header(pen, prepared, left)
        top = ceiling - strip.rows * ROW_EM * theme.em
        room = Room(left, edge, X_AXIS_EM * theme.em + len(lanes) * LANE_EM * theme.em, top)
        axes = _panels(pen, prepared, ticks, room)
        for name, ax in axes.items():
            draw_layers(ax, prepared.frame.filter(pl.col("panel") == name), prepared.roles, theme)
            draw_findings(ax, (p.mark for p in strip.placed), theme)
        lowest = _lane(pen, prepared, lanes, room) if lanes else list(axes.values())[-1]
        x_axis(pen, lowest, x, whole_ticks if x.whole else linear_ticks)
        if side:
            _side(pen, prepared, Room(edge, right, room.bottom, top), next(iter(axes.values())))
        _ends(pen, prepared, axes, room if not side else room._replace(right=right))
        draw_strip(strip, pen, top)
        return figure


def _left_margin(pen: Pen, ticks: Mapping[str, Ticks], lanes: Sequence[str]) -> float:
    labels = [t for group in ticks.values() for t in group.text] + list(lanes)
    return max(pen.width(t, SMALL) for t in labels) + 3.1 * pen.theme.em


def _right_margin(pen: Pen, ends: Sequence[End]) -> float:
    widest = max((pen.width(legible(e.text), SMALL) for e in ends), default=0.0)
    return widest + 1.7 * pen.theme.em if ends else 1.5 * pen.theme.em


def _header(pen: Pen, prepared: Prepared, left: float) -> float:
    """Title, note and legend; returns the height below them."""
    theme, em = pen.theme, pen.theme.em
    start = 1.0 * em
    wide = theme.width_in - 2 * start
    y = theme.height_in - 0.6 * em
    if theme.header:
        y -= 1.0 * em
        pen.text(start, y, pen.fit(prepared.title, wide, TITLE_SIZE, bold=True), size=TITLE_SIZE, bold=True)
        y -= 1.05 * em
        if prepared.note:
            y -= 0.65 * em
            pen.text(start, y, pen.fit(prepared.note, wide, SMALL), size=SMALL, role="quiet")
            y -= 0.85 * em
    if prepared.keys:
        y = _legend(pen, prepared.keys, start if theme.header else left, y)
    return y - 0.5 * em


def _legend(pen: Pen, keys: Sequence[Key], start: float, y: float) -> float:
    """Entries from left to right, on a further line where they do not fit; returns the height below."""
    em, right = pen.theme.em, pen.theme.width_in - pen.theme.em
    x = start
    y -= 0.75 * em
    for key in keys:
        stroke = 1.7 * em
        text = pen.fit(key.text, right - start - stroke - 0.5 * em, SMALL)
        wide = stroke + 0.45 * em + pen.width(text, SMALL)
        if x > start and x + wide > right:
            x, y = start, y - LINE_EM * em
        pen.line([x, x + stroke / 2, x + stroke], [y] * 3, **key_artists(key.layer, key.role, pen.theme))
        pen.text(x + stroke + 0.45 * em, y, text, size=SMALL)
        x += wide + 1.6 * em
    return y - 0.75 * em


def _add_axes(pen: Pen, room: Room) -> Axes:
    w, h = pen.theme.width_in, pen.theme.height_in
    return pen.figure.add_axes(
        (room.left / w, room.bottom / h, (room.right - room.left) / w, (room.top - room.bottom) / h)
    )


def _panels(pen: Pen, prepared: Prepared, ticks: Mapping[str, Ticks], room: Room) -> dict[str, Axes]:
    """The panels from top to bottom, each with its vertical axis."""
    gap = PANEL_GAP_EM * pen.theme.em
    panels = prepared.panels
    free = room.top - room.bottom - gap * (len(panels) - 1)
    total = sum(p.share for p in panels)
    top, made = room.top, {}
    for panel in panels:
        height = free * panel.share / total
        ax = made[panel.name] = _add_axes(pen, room._replace(top=top, bottom=top - height))
        top -= height + gap
        ax.set_gid(f"panel-{panel.name}")
        if panel.log:
            ax.set_yscale("log")
        ax.set_xlim(prepared.x.low, prepared.x.high)
        ax.set_ylim(panel.low, panel.high)
        y_axis(ax, panel, ticks[panel.name], pen.theme)
        label_x = (
            room.left - max(pen.width(t, SMALL) for g in ticks.values() for t in g.text) - 1.5 * pen.theme.em
        )
        size = 1.0 if pen.width(panel.y_label) <= height else SMALL  # labels of neighbours must not meet
        pen.text(
            label_x,
            top + gap + height / 2,
            pen.fit(panel.y_label, height + gap, size),
            size=size,
            rotation=90,
            ha="center",
            va="center",
            gid=f"ylabel-{panel.name}",
        )
        ax.tick_params(axis="x", length=0, labelbottom=False)
    return made


def _lane(pen: Pen, prepared: Prepared, lanes: Sequence[str], room: Room) -> Axes:
    """A strip of its own below the panels for what a curve cannot show: NaN and infinities."""
    from matplotlib.ticker import FixedFormatter, FixedLocator  # noqa: PLC0415  # heavy; only drawing needs it

    em, theme = pen.theme.em, pen.theme
    height = LANE_EM * em * len(lanes)
    ax = _add_axes(pen, room._replace(top=room.bottom - 0.35 * em, bottom=room.bottom - height))
    ax.set_gid("panel-lane")
    ax.set_facecolor(LANE_FILL)
    ax.set_xlim(prepared.x.low, prepared.x.high)
    ax.set_ylim(-0.5, len(lanes) - 0.5)
    least = 0.004 * (prepared.x.high - prepared.x.low)
    for i, name in enumerate(reversed(lanes)):
        part = prepared.frame.filter((pl.col("layer") == "lane") & (pl.col("name") == name))
        middle, half = (part["x"] + part["x_end"]) / 2, ((part["x_end"] - part["x"]) / 2).clip(least / 2)
        spans = [(m - h, 2 * h) for m, h in zip(middle, half, strict=True)]
        ax.broken_barh(spans, (i - 0.3, 0.6), facecolor=theme.colour("accent"), lw=0)
    ax.yaxis.set_major_locator(FixedLocator(range(len(lanes))))
    ax.yaxis.set_major_formatter(FixedFormatter(list(reversed(lanes))))
    ax.tick_params(axis="y", length=0, labelsize=SMALL * theme.font_pt, pad=4)
    ax.spines["left"].set_visible(False)
    return ax


def _side(pen: Pen, prepared: Prepared, room: Room, main: Axes) -> None:
    """The side panel: bars of a histogram on the vertical axis of the main panel."""
    from matplotlib.ticker import NullLocator  # noqa: PLC0415  # heavy; only drawing needs it

    theme = pen.theme
    part = prepared.frame.filter(pl.col("panel") == SIDE)
    ax = _add_axes(pen, room._replace(left=room.left + 2.8 * theme.em))
    ax.set_gid("panel-side")
    high = 1.08 * max(float(np.nanmax(part["x_end"].fill_null(0.0).to_numpy(), initial=0.0)), 1e-9)
    ax.set_xlim(0.0, high)
    ax.set_ylim(main.get_ylim())
    draw_layers(ax, part, prepared.roles, theme)
    ax.yaxis.set_major_locator(NullLocator())
    x_axis(
        pen, ax, XAxis("points, %", 0.0, high), lambda low, top, most: linear_ticks(low, top, min(most, 4))
    )


def _ends(pen: Pen, prepared: Prepared, axes: Mapping[str, Axes], room: Room) -> None:
    """Names of curves at their last points, moved apart where they would touch."""
    em, h = pen.theme.em, pen.theme.height_in
    for name, ax in axes.items():
        box = ax.get_position()
        low, high = box.y0 * h, box.y1 * h
        ends = [e for e in prepared.ends if e.panel == name]
        aim = [low + (high - low) * _share(ax, e.y) for e in ends]
        sizes = [1.15 * em * (e.text.count("\n") + 1) for e in ends]
        for end, wanted, y in zip(
            ends, aim, spread(aim, sizes, low - 0.4 * em, high + 0.4 * em), strict=True
        ):
            x = room.right
            pen.line(
                [x + 0.15 * em, x + 0.65 * em, x + 0.95 * em],
                [wanted, y, y],
                color=pen.theme.tint(end.role, 0.3),
                lw=0.7,
            )
            pen.text(
                x + 1.15 * em, y, legible(end.text), size=SMALL, role=end.role, linespacing=1.15, gid="end"
            )


def _share(ax: Axes, y: float) -> float:
    """How high y stands in the panel, 0 to 1."""
    _, at = ax.transAxes.inverted().transform(ax.transData.transform((ax.get_xlim()[0], y)))
    return float(np.clip(at, 0.0, 1.0)) if np.isfinite(at) else 0.0


def spread(aim: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Middles as close to ``aim`` as can be, without overlap, from low to high; in the order given.

    Where there is not room for all they overlap evenly rather than leave the panel.
    """
    order = sorted(range(len(aim)), key=lambda i: aim[i])
    squeeze = min(1.0, (high - low) / sum(sizes)) if sizes else 1.0
    out = list(aim)
    floor = low
    for i in order:
        half = squeeze * sizes[i] / 2
        out[i] = max(aim[i], floor + half)
        floor = out[i] + half
    roof = high
    for i in reversed(order):
        half = squeeze * sizes[i] / 2
        out[i] = min(out[i], roof - half)
        roof = out[i] - half
    return out
