"""One function a layer: rows of the drawn frame as artists in one pair of axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from afterrun.plots.canvas.text import legible
from afterrun.plots.spec import MARKED_POINTS, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from afterrun.plots.theme import Theme

SUPERSEDED = "#707070"


def draw_layers(ax: Axes, frame: pl.DataFrame, roles: Mapping[str, str], theme: Theme) -> None:
    """All rows of one panel, in the order in which their layers first appear."""
    for (layer, name), part in frame.group_by("layer", "name", maintain_order=True):
        artist = _LAYERS.get(str(layer))
        if artist is not None:
            artist(ax, part, roles.get(str(name), "other"), theme)


def _raw(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    ax.plot(part["x"], part["y"], color=theme.tint(role, 0.68), lw=theme.thin_pt, zorder=2.2)
    _lonely(ax, part, theme.tint(role, 0.3), theme)


def _band(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    ax.fill_between(
        part["x"], part["low"], part["high"], facecolor=theme.colour(role), alpha=0.2, lw=0, zorder=2.4
    )


def _smooth(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    ax.plot(part["x"], part["y"], color=theme.colour(role), lw=theme.line_pt, zorder=3)
    _lonely(ax, part, theme.colour(role), theme)


def _line(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    few = len(part) <= MARKED_POINTS
    every = -(-len(part) // theme.markers)
    style: dict[str, Any] = (
        {"marker": "o", "ms": theme.marker_pt, "mec": "white", "mew": 0.5, "markevery": every} if few else {}
    )
    ax.plot(part["x"], part["y"], color=theme.colour(role), lw=0.75 * theme.line_pt, zorder=3.4, **style)
    if not few:
        _lonely(ax, part, theme.colour(role), theme)


def _lonely(ax: Axes, part: pl.DataFrame, colour: str, theme: Theme) -> None:
    """Points with a hole on both sides: a line alone would not show them."""
    y = part["y"].to_numpy()
    gap = np.concatenate([[True], ~np.isfinite(y), [True]])
    alone = np.isfinite(y) & gap[:-2] & gap[2:]
    if alone.any():
        x = part["x"].to_numpy()[alone]
        ax.plot(
            x, y[alone], ls="none", marker="o", ms=0.6 * theme.marker_pt, mfc=colour, mec="none", zorder=3
        )


def _dots(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    size = theme.marker_pt * (0.75 if len(part) <= 300 else 0.4)
    ax.plot(
        part["x"],
        part["y"],
        ls="none",
        marker="o",
        ms=size,
        mfc=theme.tint(role, 0.45),
        mec="none",
        zorder=2.2,
    )


def _superseded(ax: Axes, part: pl.DataFrame, _role: str, theme: Theme) -> None:
    ax.plot(part["x"], part["y"], color=SUPERSEDED, lw=0.7 * theme.line_pt, ls=(0, (3, 1.6)), zorder=2.8)


def _peak(ax: Axes, part: pl.DataFrame, _role: str, theme: Theme) -> None:
    ax.plot(
        part["x"],
        part["y"],
        ls="none",
        marker="o",
        ms=1.5 * theme.marker_pt,
        mfc="none",
        mec=theme.colour("accent"),
        mew=0.25 * theme.marker_pt,
        zorder=4,
    )


def _best(ax: Axes, part: pl.DataFrame, _role: str, theme: Theme) -> None:
    ax.plot(
        part["x"],
        part["y"],
        ls="none",
        marker="o",
        ms=2.1 * theme.marker_pt,
        mfc="none",
        mec=theme.colour("ink"),
        mew=0.28 * theme.marker_pt,
        zorder=4,
    )


def _shade(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    for low, high in part.select("x", "x_end").iter_rows():
        ax.axvspan(low, high, facecolor=theme.tint(role, 0.82), lw=0, zorder=1.1)


def _fill(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    ax.fill_between(part["x"], 0.0, part["y"], facecolor=theme.tint(role, 0.72), lw=0, zorder=1.5)


def _bar(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    edges = np.append(part["low"].to_numpy(), part["high"][-1])
    ax.stairs(part["x_end"], edges, orientation="horizontal", fill=True, facecolor=theme.tint(role, 0.45))


def _boxes(ax: Axes, part: pl.DataFrame, colours: Any) -> None:
    from matplotlib.collections import PolyCollection  # noqa: PLC0415  # heavy; only drawing needs it

    left, right = part["x"].to_numpy(), part["x_end"].to_numpy()
    low, high = part["low"].to_numpy(), part["high"].to_numpy()
    corners = np.stack([np.stack([left, left, right, right], 1), np.stack([low, high, high, low], 1)], axis=2)
    ax.add_collection(PolyCollection(list(corners), facecolors=colours, edgecolors="none", lw=0, zorder=2))


def _box(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    _boxes(ax, part, theme.colour(role))


def _heat(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    _boxes(ax, part, [theme.tint(role, 1.0 - float(y)) for y in part["y"]])


def _area(ax: Axes, part: pl.DataFrame, role: str, theme: Theme) -> None:
    x = part["x"].to_numpy()
    # several rows of one name follow each other: each begins anew on the left
    for rows in np.split(np.arange(len(x)), np.flatnonzero(np.diff(x) < 0) + 1):
        low, high = part["low"].to_numpy()[rows], part["high"].to_numpy()[rows]
        ax.fill_between(x[rows], low, high, step="post", facecolor=theme.colour(role), lw=0, zorder=2)


def _label(ax: Axes, part: pl.DataFrame, _role: str, theme: Theme) -> None:
    for x, y, text in part.select("x", "y", "name").iter_rows():
        ax.annotate(
            legible(text),
            (x, y),
            xytext=(0.35 * theme.font_pt, 0),
            textcoords="offset points",
            va="center",
            fontsize=0.86 * theme.font_pt,
            color=theme.colour("ink"),
            annotation_clip=False,
        )


_LAYERS: Mapping[str, Callable[[Any, pl.DataFrame, str, Any], None]] = {
    "raw": _raw,
    "band": _band,
    "smooth": _smooth,
    "line": _line,
    "dots": _dots,
    "superseded": _superseded,
    "peak": _peak,
    "best": _best,
    "shade": _shade,
    "fill": _fill,
    "bar": _bar,
    "box": _box,
    "heat": _heat,
    "area": _area,
    "label": _label,
}


def draw_findings(ax: Axes, marks: Iterable[Mark], theme: Theme) -> None:
    """The places that the strip names, carried down through a panel: thin poles and quiet tints."""
    for mark in marks:
        if mark.shape == "flag":
            dashes = "-" if mark.certain else (0, (2.5, 1.8))
            ax.axvline(
                mark.xs[0], color=theme.colour(mark.role), lw=0.55 * theme.line_pt, ls=dashes, zorder=1.6
            )
        elif mark.shape == "span" and mark.shaded:
            ax.axvspan(*mark.xs, facecolor=theme.tint(mark.role, 0.9), lw=0, zorder=1)


def key_artists(layer: str, role: str, theme: Theme) -> dict[str, Any]:
    """How the stroke of a legend entry looks; style of ``matplotlib.lines.Line2D``."""
    colour = theme.colour(role)
    marker = {"ls": "none", "marker": "o", "mfc": "none"}
    return {
        "raw": {"color": theme.tint(role, 0.6), "lw": max(theme.thin_pt, 0.8)},
        "band": {"color": theme.tint(role, 0.72), "lw": 6.0, "solid_capstyle": "butt"},
        "shade": {"color": theme.tint(role, 0.75), "lw": 6.0, "solid_capstyle": "butt"},
        "fill": {"color": theme.tint(role, 0.72), "lw": 6.0, "solid_capstyle": "butt"},
        "box": {"color": colour, "lw": 6.0, "solid_capstyle": "butt"},
        "smooth": {"color": colour, "lw": theme.line_pt},
        "line": {"color": colour, "lw": 0.75 * theme.line_pt, "marker": "o", "ms": theme.marker_pt, "mec": "white", "mew": 0.5, "markevery": [1]},
        "superseded": {"color": SUPERSEDED, "lw": 0.7 * theme.line_pt, "ls": (0, (3, 1.6))},
        "dots": {"ls": "none", "marker": "o", "ms": 0.6 * theme.marker_pt, "mfc": theme.tint(role, 0.45), "mec": "none", "markevery": [1]},
        "peak": {**marker, "ms": 1.4 * theme.marker_pt, "mec": colour, "mew": 0.25 * theme.marker_pt, "markevery": [1]},
        "best": {**marker, "ms": 1.7 * theme.marker_pt, "mec": theme.colour("ink"), "mew": 0.25 * theme.marker_pt, "markevery": [1]},
    }[layer]  # fmt: skip
