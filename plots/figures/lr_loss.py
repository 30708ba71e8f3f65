"""The learning rate under the loss: what the schedule did where the loss stood still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.decimate import envelope
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import display_name, legible, value_text
from afterrun.plots.content.compose import (
    curve_keys,
    curve_rows,
    end_label,
    main_curve,
    marked_sentence,
    run_title,
)
from afterrun.plots.content.layers import RAW_LIMIT, axis_for, lane_rows, metric_label, panel_for
from afterrun.plots.content.marks import Placer, marks_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import End, Key, Mark, Panel, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

TOP, RATE = "main", "lr"

ZERO_FLOOR = 1e-4
"""On the log axis of a schedule that reaches zero, the lowest value shown, as a share of the peak."""


class LrLoss(Figure):
    """Loss above, learning rate below, plateaus over both with their cause."""

    name = "lr-loss"
    title = "Learning rate and loss"
    codes: ClassVar[tuple[str, ...]] = (
        "plateau",
        "lr-dead",
        "lr-jump",
        "no-warmup",
        "not-learning",
        "restart",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """The main curve and the learning rate of the first group on one axis."""
        lead, lr = main_curve(view), view.lr
        if lead is None:
            return Skip("no loss or quality curve has a finite value; name one with --map 'TAG=loss:train'")
        if lr is None:
            return Skip("no learning rate is recorded; name one with --map 'TAG=lr'")
        axis, shown = axis_for(lead, [lr])
        if not shown:
            return Skip(f"{display_name(lead.tag)} and {display_name(lr.tag)} count different things")
        window = axis.window([lead, lr])
        marks = marks_of(findings, self.codes, Placer(axis, (lead, lr), view))
        x = axis.of(lr)[lr.finite]
        kept = envelope(x, lr.y, RAW_LIMIT)
        drawn = curve_rows(TOP, lead, axis, band=False)
        label = metric_label(lead)
        values = [p["y"].to_numpy() for p in drawn]
        return Prepared(
            frame=stack(
                [
                    *drawn,
                    rows(RATE, "smooth", lr.tag, x[kept], y=lr.y[kept]),
                    *lane_rows(TOP, lead, axis, window),
                ]
            ),
            title=run_title(view, f"{label} and learning rate"),
            alt=_alt(lead, lr, marks),
            x=window,
            panels=(
                panel_for(TOP, label, values, share=1.6, log=False if lead.scale == "logit" else None),
                rate_panel(lr.y),
            ),
            keys=(*curve_keys(lead, "train", 1, band=False), Key("smooth", "val2", _name(lr))),
            ends=(
                end_label(TOP, lead, "train"),
                End(RATE, float(lr.y[-1]), f"lr\n{value_text(float(lr.y[-1]))}", "val2"),
            ),
            marks=marks,
            roles={lead.tag: "train", lr.tag: "val2"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Two panels on one axis."""
        return paint(prepared, theme)


def rate_panel(lr: Array) -> Panel:
    """The panel of the learning rate: log where it spans more than a factor of 10 before it ends at zero.

    A schedule that decays linearly or as a cosine to zero would span any factor, so the tenth of its
    positive values that is lowest does not count, and what lies below 1e-4 of the peak is not shown.
    """
    positive = lr[lr > 0]
    if not len(positive) or float(lr.min()) < 0:
        return panel_for(RATE, "lr", [lr], log=False)
    floor, peak = float(np.quantile(positive, 0.1)), float(positive.max())
    if peak / floor <= 10.0:
        return panel_for(RATE, "lr", [lr], log=False)
    low = max(float(positive.min()), ZERO_FLOOR * peak)
    return panel_for(RATE, "lr", [np.array([low, peak])], log=True)


def _name(lr: Series) -> str:
    return f"{legible(display_name(lr.tag, 44), 'learning rate')}, peak {value_text(float(lr.y.max()))}"


def _alt(lead: Series, lr: Series, marks: Sequence[Mark]) -> str:
    return (
        f"{display_name(lead.tag)} from {value_text(float(lead.y[0]))} to {value_text(float(lead.y[-1]))}; below, "
        f"{display_name(lr.tag)}, peak {value_text(float(lr.y.max()))}, last {value_text(float(lr.y[-1]))}."
        + marked_sentence([m.text for m in marks])
    )
