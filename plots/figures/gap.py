"""Training and held-out curve on one axis, and below it the gap between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import polars as pl

from afterrun.analyzer.curves.matching import Matched, match, stand_ins
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import Pair, RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import count_text, display_name, value_text
from afterrun.plots.content.compose import (
    curve_keys,
    curve_rows,
    end_labels,
    marked_sentence,
    run_title,
    split_words,
)
from afterrun.plots.content.layers import MAX_LOG, Axis, axis_for, lane_rows, metric_label, panel_for
from afterrun.plots.content.marks import Placer, marks_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import End, Key, Mark, Panel, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

TOP, GAP = "main", "gap"

LEAST_EVALS = 3
"""Fewer evaluations show no course of the gap."""

PATIENCE = 5
"""Evaluations without improvement that most people let pass before they stop."""


class GapCurve(NamedTuple):
    """The gap at the evaluations; shapes (k,). Positive = worse on held-out data."""

    x: Array
    gap: Array
    unit: str
    """``%`` of the training value, ``pp`` (percentage points), or empty: the unit of the metric."""


class Gap(Figure):
    """Both curves, the best held-out point, the onset with its interval, and the gap in percent."""

    name = "gap"
    title = "Train and held-out gap"
    codes: ClassVar[tuple[str, ...]] = ("overfit", "overtrained", "val-drift", "gap-growing")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """The pair that the findings speak of, else the first pair, matched evaluation by evaluation."""
        own = [f for f in findings if f.code in self.codes and f.status in ("confirmed", "possible")]
        pair = _pair(view, own)
        if pair is None:
            return Skip(
                "no metric is recorded for training and for held-out data; name one with --pair TRAIN=VAL"
            )
        matched = match(pair)
        if isinstance(matched, str):
            return Skip(f"{display_name(pair.train.tag)} and {display_name(pair.val.tag)} need {matched}")
        if len(matched.val) < LEAST_EVALS:
            return Skip(
                f"{display_name(pair.val.tag)} has {count_text(len(matched.val), 'finite value')}: no course"
            )
        axis, shown = axis_for(pair.train, [matched.pair.val])
        if not shown:
            return Skip(
                f"{display_name(pair.train.tag)} and {display_name(pair.val.tag)} have no axis in common"
            )
        return _prepared(matched, own, Placer(axis, (pair.train, matched.pair.val), view))

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Two panels on one axis."""
        return paint(prepared, theme)


def gap_curve(matched: Matched, axis: Axis) -> GapCurve:
    """Held-out against training value at each evaluation, turned so that positive is worse on held-out data.

    100 (exp(u_val - u_train) - 1) where both are on the log scale, the difference in percentage points
    for shares, else the plain difference.
    """
    train, val = matched.pair.train, matched.pair.val
    x = axis.of(val)[val.finite]
    if train.scale == val.scale == "log":
        worse = np.minimum(matched.val_cost - matched.train_cost, MAX_LOG)
        return GapCurve(x, 100.0 * np.expm1(worse), "%")
    worse = (matched.val - matched.train) * (-1.0 if val.better == "max" else 1.0)
    return GapCurve(x, 100.0 * worse, "pp") if train.scale == val.scale == "logit" else GapCurve(x, worse, "")


def _pair(view: RunView, findings: Sequence[Finding]) -> Pair | None:
    tags = {f.values.get("val_tag") for f in findings}
    named = [p for p in (*view.pairs, *stand_ins(view)) if p.val.tag in tags]
    return next(iter([*named, *view.pairs]), None)


def _interval(findings: Sequence[Finding], placer: Placer) -> tuple[float, float] | None:
    """The interval of the onset of overfitting on the axis, where the finding carries one."""
    for f in findings:
        low, high = f.values.get("onset_low_step"), f.values.get("onset_high_step")
        if f.code == "overfit" and isinstance(low, int) and isinstance(high, int) and low < high:
            a, b = placer.place(low, f), placer.place(high, f)
            return None if a is None or b is None else (a, b)
    return None


def _patience(findings: Sequence[Finding], placer: Placer) -> list[Mark]:
    """Where the usual patience rule would have stopped, where the finding carries the table."""
    for f in findings:
        table = f.values.get("patience_table")
        for row in table if isinstance(table, (list, tuple)) else []:
            rule = (row.get("patience"), row.get("min_delta_pct")) if isinstance(row, dict) else None
            step = row.get("stop_step") if rule == (PATIENCE, 0.0) else None
            x = placer.place(step, f) if isinstance(step, int) else None
            if x is not None:
                return [
                    Mark(
                        "",
                        f"patience {PATIENCE} stops at {placer.axis.say(x)}",
                        "flag",
                        (x,),
                        "quiet",
                        certain=False,
                    )
                ]
    return []


def _prepared(matched: Matched, findings: Sequence[Finding], placer: Placer) -> Prepared:
    train, val, axis = matched.pair.train, matched.pair.val, placer.axis
    curves, roles = [train, val], ["train", "val"]
    curve, window, interval = gap_curve(matched, axis), axis.window(curves), _interval(findings, placer)
    best = int(np.argmin(matched.val_cost))
    best_text = f"best {value_text(float(matched.val[best]))} at {'step ' * (axis.kind == 'step')}{axis.say(float(curve.x[best]))}"
    drawn = [r for s in curves for r in curve_rows(TOP, s, axis, band=False)]
    keys = [k for i in (0, 1) for k in curve_keys(curves[i], roles[i], i + 1, band=False)]
    keys.append(Key("best", "ink", best_text))
    parts: list[pl.DataFrame] = []
    if interval is not None:
        parts += [rows(p, "shade", "onset", [interval[0]], x_end=[interval[1]]) for p in (TOP, GAP)]
        keys.append(Key("shade", "accent", f"onset, {axis.say(interval[0])} to {axis.say(interval[1])}"))
    parts += [
        *drawn,
        rows(TOP, "best", "best", curve.x[[best]], y=matched.val[[best]]),
        rows(GAP, "fill", "gap", curve.x, y=curve.gap),
        rows(GAP, "line", "gap", curve.x, y=curve.gap),
        *(r for s in curves for r in lane_rows(TOP, s, axis, window)),
    ]
    label, marks = metric_label(train), marks_of(findings, Gap.codes, placer)
    top = panel_for(
        TOP,
        label,
        [p["y"].to_numpy() for p in drawn],
        share=2.0,
        log=False if "logit" in (train.scale, val.scale) else None,
    )
    return Prepared(
        frame=stack(parts),
        title=run_title(placer.view, f"gap between {split_words(curves)} {label}"),
        note=_note(matched, curve),
        alt=_alt(matched, curve, best_text, marks),
        x=window,
        panels=(top, _gap_panel(curve)),
        keys=tuple(keys),
        ends=(
            *end_labels(TOP, curves, roles),
            End(GAP, float(curve.gap[-1]), f"gap\n{_gap_text(curve)}", "quiet"),
        ),
        marks=(*marks, *_patience(findings, placer)),
        roles={train.tag: "train", val.tag: "val", "gap": "quiet", "onset": "accent"},
    )


def _gap_panel(curve: GapCurve) -> Panel:
    label = f"gap, {curve.unit}" if curve.unit else "gap"
    panel = panel_for(GAP, label, [curve.gap, np.zeros(1)], log=False)
    pad = 0.08 * (panel.high - panel.low)
    return panel._replace(zero=True, low=panel.low if panel.low < 0 else -pad)


def _note(matched: Matched, curve: GapCurve) -> str:
    held = split_words([matched.pair.val]) or "held out"
    first, second = ("training", held) if matched.pair.val.better == "max" else (held, "training")
    unit = {"%": ", in % of training", "pp": ", in percentage points"}.get(curve.unit, "")
    remarks = "; matched by wall clock" if matched.axis == "wall clock" else ""
    remarks += f"; {count_text(len(matched.val), 'real evaluation')}" if matched.carried else ""
    return f"gap: {first} minus {second}, the mean since the last evaluation{unit}{remarks}"


def _gap_text(curve: GapCurve) -> str:
    return f"{value_text(float(curve.gap[-1]))} {curve.unit}".strip()


def _alt(matched: Matched, curve: GapCurve, best: str, marks: Sequence[Mark]) -> str:
    train, val = display_name(matched.pair.train.tag), display_name(matched.pair.val.tag)
    return (
        f"{train} and {val} over training, and below the gap between them, from {value_text(float(curve.gap[0]))} "
        f"to {_gap_text(curve)} (positive is worse on held-out data); {best}."
        + marked_sentence([m.text for m in marks])
    )
