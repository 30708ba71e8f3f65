"""Axes with ticks on round numbers, as many as have room, and labels in one notation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from afterrun.plots.canvas.pen import Pen
from afterrun.plots.canvas.text import legible, linear_ticks, log_ticks, step_texts, tick_texts
from afterrun.plots.spec import Panel, XAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from afterrun.plots.theme import Theme

GRID = "#E9E9E9"
AXIS_GREY = "#8A8A8A"
TICK_LEFT = 0
"""matplotlib's marker of a stroke to the left."""

SMALL = 0.92
"""Ticks, legend and end labels, as a share of the theme's type size."""


class Ticks(NamedTuple):
    """Places and labels on a vertical axis."""

    at: list[float]
    text: list[str]


def y_ticks(panel: Panel, theme: Theme, share: float) -> Ticks:
    """Ticks of a panel that has this share of the height of all."""
    if panel.rows:
        return Ticks([float(i) for i in range(len(panel.rows))], [legible(r) for r in panel.rows])
    most = max(3, min(theme.y_ticks, round(1.6 * theme.y_ticks * share)))
    make = log_ticks if panel.log else linear_ticks
    at = make(panel.low, panel.high, most)
    return Ticks(at, tick_texts(at))


def y_axis(ax: Axes, panel: Panel, ticks: Ticks, theme: Theme) -> None:
    """Ticks, grid lines and the line at zero of one panel."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator  # noqa: PLC0415  # heavy

    ax.yaxis.set_major_locator(FixedLocator(ticks.at))
    ax.yaxis.set_major_formatter(FixedFormatter(ticks.text))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(NullLocator())
    if panel.log:  # one artist: a Tick object each would take as long as all the data
        minor = _minor(panel, ticks.at)
        style: dict[str, Any] = {
            "marker": TICK_LEFT,
            "ms": 1.6,
            "mew": 0.5,
            "mec": AXIS_GREY,
            "ls": "none",
            "clip_on": False,
        }
        ax.plot([0.0] * len(minor), minor, transform=ax.get_yaxis_transform(), **style)
    ax.tick_params(axis="y", labelsize=SMALL * theme.font_pt, pad=2.5)
    if panel.rows:
        ax.tick_params(axis="y", length=0)
    else:
        ax.grid(axis="y", color=GRID, lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    if panel.zero:
        ax.axhline(0.0, color=AXIS_GREY, lw=0.8, zorder=1.7)


def _minor(panel: Panel, major: Sequence[float]) -> list[float]:
    low, high = int(np.floor(np.log10(panel.low))), int(np.ceil(np.log10(panel.high)))
    if high - low > 6:
        return []
    ticks = [f * 10.0**e for e in range(low, high + 1) for f in range(1, 10)]
    return [t for t in ticks if panel.low <= t <= panel.high and not np.isclose(t, major, rtol=1e-6).any()]


def x_axis(pen: Pen, ax: Axes, x: XAxis, ticks: Callable[[float, float, int], list[float]]) -> None:
    """As many ticks as have room for their labels."""
    from matplotlib.ticker import FixedFormatter, FixedLocator  # noqa: PLC0415  # heavy; only drawing needs it

    scale = ax.get_position().width * pen.theme.width_in / (x.high - x.low)
    at, labels = [x.low], [""]
    for most in range(pen.theme.x_ticks, 1, -1):
        at = ticks(x.low, x.high if x.end is None else x.end, most)
        labels = step_texts(at)
        wide = [pen.width(t, SMALL) for t in labels]
        gaps = [
            (b - a) * scale - (v + w) / 2 for (a, b), (v, w) in zip(pairwise(at), pairwise(wide), strict=True)
        ]
        if min(gaps, default=1.0) >= 0.5 * pen.theme.em:
            break
    ax.xaxis.set_major_locator(FixedLocator(at))
    ax.xaxis.set_major_formatter(FixedFormatter(labels))
    ax.tick_params(axis="x", length=3.0, labelbottom=True, labelsize=SMALL * pen.theme.font_pt, pad=2.5)
    ax.set_xlabel(x.label, labelpad=2.0)
