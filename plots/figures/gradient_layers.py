"""Gradients by layer over the run: which layers fade, which explode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.layers.layers import Grid, grid, of_role
from afterrun.analyzer.prose import number
from afterrun.analyzer.series import Ints
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import display_name, legible
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, XAxis, row_panel, rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

MOST_LAYERS, MOST_COLUMNS = 32, 160
LEAST_DECADES = 1.0


class GradientLayers(Figure):
    """Layer by step: darker is a larger gradient, on a log scale."""

    name = "gradient-layers"
    title = "Gradients by layer"
    codes: ClassVar[tuple[str, ...]] = ("grad-vanishing", "poor-init", "grad-exploding")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """Mean size of each layer's gradient in columns of equal numbers of steps."""
        table = grid(of_role(view.layers, "gradient"))
        if table is None:
            return Skip("gradients of fewer than two layers are recorded")
        order = _shown(table)
        groups = np.array_split(np.arange(len(table.x)), min(len(table.x), MOST_COLUMNS))
        size = np.array([table.size[g][:, order].mean(axis=0) for g in groups])
        if not (np.isfinite(size) & (size > 0)).any():
            return Skip("all recorded gradients are zero or not finite")
        level, low, high = _levels(size)
        edges = _edges(table.x, groups)
        columns, layers = np.meshgrid(np.arange(len(groups)), np.arange(len(order)), indexing="ij")
        row = layers.astype(np.float64)
        known = np.isfinite(level)
        names = tuple(legible(display_name(table.layers[i].name, 32), f"layer {i + 1}") for i in order)
        some = f"; {len(order)} of {len(table.layers)} layers" if len(order) < len(table.layers) else ""
        weakest = int(np.nanargmin(np.nanmean(np.where(known, level, np.nan), axis=0)))
        steps = all(la.has_step for la in table.layers)
        return Prepared(
            frame=rows(
                "main",
                "heat",
                "size",
                edges[:-1][columns[known]],
                x_end=edges[1:][columns[known]],
                y=level[known],
                low=row[known] - 0.46,
                high=row[known] + 0.46,
            ),
            title=run_title(view, "gradients by layer"),
            note=f"size of the gradient, log scale: white {number(10.0**low)} or less, full {number(10.0**high)} or more; empty where zero or not finite{some}",
            alt=f"Gradients of {len(order)} layers at {len(table.x)} steps; {names[weakest]} gets the least.",
            x=XAxis("step" if steps else "histogram, in order", float(edges[0]), float(edges[-1])),
            panels=(row_panel("main", names),),
            keys=(Key("box", "train", "gradient size"),),
            marks=notes_of(findings, self.codes),
            roles={"size": "train"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Cells, one row a layer in the order of the model."""
        return paint(prepared, theme)


def _shown(table: Grid) -> Ints:
    """Layers drawn, in their order; where there are many, evenly spaced ones and the weakest."""
    n = len(table.layers)
    if n <= MOST_LAYERS:
        return np.arange(n)
    weakest = np.argsort(np.median(table.size, axis=0), kind="stable")[: MOST_LAYERS // 4]
    even = np.linspace(0, n - 1, MOST_LAYERS - len(weakest)).astype(np.int64)
    return np.unique(np.concatenate([weakest, even]))


def _levels(size: Array) -> tuple[Array, float, float]:
    """(cells from 0 to 1, NaN where nothing is positive; decades at 0 and at 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(np.isfinite(size) & (size > 0), np.log10(size), np.nan)
    low, high = (float(v) for v in np.nanquantile(log, [0.01, 0.99]))
    if high - low < LEAST_DECADES:
        low, high = (low + high - LEAST_DECADES) / 2, (low + high + LEAST_DECADES) / 2
    return np.clip((log - low) / (high - low), 0.0, 1.0), low, high


def _edges(x: Array, groups: Sequence[Ints]) -> Array:
    """Where columns begin, and the end of the last one."""
    starts = np.array([x[g[0]] for g in groups], dtype=np.float64)
    width = float(np.median(np.diff(starts))) if len(starts) > 1 else 1.0
    return np.append(starts, max(float(x[-1]), starts[-1]) + (width or 1.0))
