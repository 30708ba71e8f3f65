"""The training objective and its held-out curves, with every finding where it happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView
from afterrun.plots.compose import (
    curve_keys,
    curve_rows,
    end_label,
    main_curve,
    marked_sentence,
    roles_of,
    run_title,
)
from afterrun.plots.layers import Axis, axis_for, lane_rows, metric_label, panel_for, superseded_rows
from afterrun.plots.marks import marks_of
from afterrun.plots.paint import paint
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Mark, rows, stack
from afterrun.plots.text import count_text, display_name, step_text, value_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

PANEL = "main"

HELD_OUT = 6
"""Held-out curves drawn at most: one colour each."""

PEAK_WINDOW = 0.01
"""The top of a spike is looked for within this share of the axis after its onset."""


class Curves(Figure):
    """Every point, the EWMA of all points, its noise band, held-out curves, and what is not finite in a lane."""

    name = "curves"
    title = "Training and held-out curves"
    codes: ClassVar[tuple[str, ...]] = (
        "spike",
        "divergence",
        "non-finite",
        "overfit",
        "plateau",
        "level-shift",
        "zero-loss",
        "not-learning",
        "oscillation",
        "val-drift",
        "lr-dead",
        "noisy",
        "restart",
        "incomplete",
        "still-improving",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """The main curve and the held-out curves that can share its axis."""
        lead = main_curve(view)
        if lead is None:
            return Skip("no loss or quality curve has a finite value; name one with --map 'TAG=loss:train'")
        held = [p.val for p in view.pairs if p.train.tag == lead.tag]
        axis, shown = axis_for(lead, held)
        curves = [lead, *shown[:HELD_OUT]]
        roles = roles_of(curves)
        window = axis.window([axis.of(s) for s in curves])
        marks = marks_of(findings, self.codes, axis.place)
        parts = [r for s in curves for r in superseded_rows(PANEL, s, axis)]
        for s in curves:
            parts += curve_rows(PANEL, s, axis, band=s is lead)
        values = [f["y"].to_numpy() for f in parts if f["layer"][0] != "band"]
        parts += _peaks(lead, axis, marks)
        parts += [r for s in curves for r in lane_rows(PANEL, s, axis, window)]
        label = metric_label(lead)
        return Prepared(
            frame=stack(parts),
            title=run_title(view, label if len(curves) == 1 else f"{label}, training and held out"),
            note=_left_out(held, curves),
            alt=_alt(curves, marks, axis.label),
            x=window,
            panels=(panel_for(PANEL, label, values, log=False if lead.scale == "logit" else None),),
            keys=(*_keys(curves, roles), *_superseded_key(curves)),
            ends=tuple(end_label(PANEL, s, role) for s, role in zip(curves, roles, strict=True)),
            marks=marks,
            roles=dict(zip([s.tag for s in curves], roles, strict=True)),
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """One panel, with the lane below it where there is anything to show in it."""
        return paint(prepared, theme)


def _keys(curves: Sequence[Series], roles: Sequence[str]) -> list[Key]:
    return [
        key
        for number, (s, role) in enumerate(zip(curves, roles, strict=True), start=1)
        for key in curve_keys(s, role, number, band=number == 1)
    ]


def _superseded_key(curves: Sequence[Series]) -> list[Key]:
    lost = sum(s.superseded for s in curves)
    return [Key("superseded", "other", f"{count_text(lost, 'point')} done again")] if lost else []


def _left_out(held: Sequence[Series], curves: Sequence[Series]) -> str:
    """Says which held-out curves are not there: an axis of their own cannot be guessed."""
    missing = [display_name(s.tag, 30) for s in held if s not in curves]
    if not missing:
        return ""
    names = ", ".join(missing[:2]) + (f" and {len(missing) - 2} more" if len(missing) > 2 else "")
    return f"Not drawn, counted on an axis of their own or beyond {HELD_OUT} curves: {names}"


def _peaks(s: Series, axis: Axis, marks: Sequence[Mark]) -> list[pl.DataFrame]:
    """A ring on the top of every spike."""
    x = axis.of(s)[s.finite]
    width = PEAK_WINDOW * float(x[-1] - x[0])
    places = [place for m in marks if m.code == "spike" for place in m.xs]
    tops = []
    for place in places:
        near = np.flatnonzero((x >= place) & (x <= place + width))
        if len(near):
            tops.append(int(near[np.argmax(s.cost[near])]))
    return [rows(PANEL, "peak", s.tag, x[tops], y=s.y[tops])] if tops else []


def _alt(curves: Sequence[Series], marks: Sequence[Mark], axis: str) -> str:
    told = []
    for s in curves:
        first, last = value_text(float(s.y[0])), value_text(float(s.y[-1]))
        span = f"{axis} {step_text(float(s.x[0]))} to {step_text(float(s.x[-1]))}" if axis == "step" else axis
        told.append(f"{display_name(s.tag)} from {first} to {last} over {span}, {count_text(len(s), 'point')}")
    return "; ".join(told) + "." + marked_sentence([m.text for m in marks])
