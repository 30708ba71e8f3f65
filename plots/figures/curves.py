"""The training objective and its held-out curves, with every finding where it happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.curves.carry_forward import real_points
from afterrun.analyzer.curves.matching import stand_ins
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import count_text, display_name, step_text, value_text
from afterrun.plots.content.compose import (
    curve_keys,
    curve_rows,
    end_labels,
    main_curve,
    marked_sentence,
    roles_of,
    run_title,
    split_words,
)
from afterrun.plots.content.layers import (
    Axis,
    axis_for,
    lane_rows,
    metric_label,
    panel_for,
    superseded,
    superseded_rows,
)
from afterrun.plots.content.marks import Placer, marks_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Mark, Panel, rows, stack

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
        "collapse",
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
        paired = [p for p in view.pairs if p.train.tag == lead.tag]
        # losses of groups of held-out data have no training curve of their own
        beside = paired or [p for p in stand_ins(view) if p.train.tag == lead.tag and p.val.kind == "loss"]
        held = [real_points(p.val)[0] for p in beside]
        axis, shown = axis_for(lead, held)
        curves = [lead, *shown[:HELD_OUT]]
        roles = roles_of(curves)
        window = axis.window(curves)
        marks = marks_of(findings, self.codes, Placer(axis, curves, view))
        parts = [r for s in curves for r in superseded_rows(PANEL, s, axis, window)]
        for s in curves:
            parts += curve_rows(PANEL, s, axis, band=s is lead)
        values = [f["y"].to_numpy() for f in parts if f["layer"][0] != "band"]
        parts += _peaks(lead, axis, marks)
        parts += [r for s in curves for r in lane_rows(PANEL, s, axis, window)]
        label = metric_label(lead)
        panel = panel_for(PANEL, label, values, log=False if lead.scale == "logit" else None)
        return Prepared(
            frame=stack(parts),
            title=run_title(view, f"{split_words(curves)} {label}".strip()),
            note="; ".join(filter(None, (_off_scale(curves, panel), _left_out(held, shown)))),
            alt=_alt(curves, marks, axis),
            x=window,
            panels=(panel,),
            keys=(*_keys(curves, roles), *_superseded_key(curves)),
            ends=end_labels(PANEL, curves, roles),
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
    lost = sum(len(superseded(s)) for s in curves)
    return [Key("superseded", "other", f"{count_text(lost, 'point')} done again")] if lost else []


def _off_scale(curves: Sequence[Series], panel: Panel) -> str:
    """Says how many finite points lie outside the panel."""
    out = sum(int(((s.y < panel.low) | (s.y > panel.high)).sum()) for s in curves)
    return f"{count_text(out, 'point')} off the scale" if out else ""


def _left_out(held: Sequence[Series], shown: Sequence[Series]) -> str:
    """Says which held-out curves are not there, and why."""
    apart, beyond = [s for s in held if s not in shown], shown[HELD_OUT:]
    told = []
    for why, curves in (("not drawn, counted on an axis of its own", apart), ("not drawn", beyond)):
        names = ", ".join(display_name(s.tag, 30) for s in curves[:2])
        more = f" and {len(curves) - 2} more" if len(curves) > 2 else ""
        told += [f"{why}: {names}{more}"] if curves else []
    return "; ".join(told)


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


def _alt(curves: Sequence[Series], marks: Sequence[Mark], axis: Axis) -> str:
    told = []
    for s in curves:
        first, last = value_text(float(s.y[0])), value_text(float(s.y[-1]))
        x = axis.of(s)
        span = f"{axis.label} {step_text(float(x[0]))} to {step_text(float(x[-1]))}"
        points = count_text(len(s), "point")
        told.append(f"{display_name(s.tag)} from {first} to {last} over {span}, {points}")
    return "; ".join(told) + "." + marked_sentence([m.text for m in marks])
