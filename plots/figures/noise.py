"""How rough a curve is: every point as its distance from the smoothed curve, and how these are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import SIDE, paint
from afterrun.plots.canvas.text import count_text, display_name, legible, percent_text, value_text
from afterrun.plots.content.compose import main_curve, marked_sentence, run_title
from afterrun.plots.content.layers import MAX_LOG, axis_for, metric_label
from afterrun.plots.content.marks import Placer, marks_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Panel, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

PANEL = "residual"
LEAST_POINTS = 30
"""Fewer points make no histogram."""

BINS = 36
DOTS = 3000


class Noise(Figure):
    """Residuals over steps with the band of one robust sigma, and their histogram."""

    name = "noise"
    title = "Noise around the smoothed curve"
    codes: ClassVar[tuple[str, ...]] = ("noisy", "oscillation")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """Residuals of the main curve after its warm-up; in percent where the curve is positive."""
        lead = main_curve(view)
        if lead is None:
            return Skip("no loss or quality curve has a finite value; name one with --map 'TAG=loss:train'")
        smoothing = lead.smoothing
        if smoothing is None or len(lead.y) < LEAST_POINTS:
            return Skip(
                f"{display_name(lead.tag)} has {count_text(len(lead.y), 'finite point')}: too few to tell noise"
            )
        if lead.sigma == 0.0:
            return Skip(f"{display_name(lead.tag)} has no noise: most of its steps are alike")
        axis, _ = axis_for(lead, [])
        x = axis.of(lead)[lead.finite][max(lead.warmup, 1) :]
        residual, low, high, unit = residuals(lead)
        bottom, top = limits(residual, low, high)
        shown = np.clip(residual, bottom, top)
        beyond = int((shown != residual).sum())
        kept = sample(len(x))
        marks = marks_of(findings, self.codes, Placer(axis, (lead,), view))
        label = (
            f"deviation of {metric_label(lead).partition(',')[0]} from the EWMA{', ' + unit if unit else ''}"
        )
        ends, air = np.array([x[0], x[-1]]), 0.03 * (top - bottom)
        band = rows(PANEL, "band", "sigma", ends, low=np.full(2, low), high=np.full(2, high))
        sigma = percent_text(high) if unit == "%" else f"{value_text(high)} {unit}".strip()
        tail = f"; {count_text(beyond, 'point')} further out, drawn at the edge" if beyond else ""
        return Prepared(
            frame=stack(
                [
                    rows(PANEL, "dots", lead.tag, x[kept], y=shown[kept]),
                    band,
                    _histogram(lead, shown, bottom, top),
                ]
            ),
            title=run_title(view, f"noise of the {metric_label(lead)}, {sigma} per point"),
            note=_note(lead, findings) + tail,
            alt=f"Residuals of {display_name(lead.tag)} from the EWMA of the points before; one robust sigma is {sigma}."
            + marked_sentence([m.text for m in marks]),
            x=axis.window([lead]),
            panels=(Panel(PANEL, label, bottom - air, top + air, zero=True),),
            keys=(
                Key(
                    "dots",
                    "train",
                    f"{legible(display_name(lead.tag, 44), 'tag 1')}, {_shown(len(kept), len(x))} after warm-up",
                ),
                Key("band", "train", f"±1σ (robust), {sigma}"),
            ),
            marks=marks,
            roles={lead.tag: "train", "sigma": "train"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """One panel and its histogram, on one vertical axis."""
        return paint(prepared, theme, side=0.2)


def residuals(s: Series) -> tuple[Array, float, float, str]:
    """Each point after warm-up minus the EWMA of the points before it, minus and plus one sigma, the unit.

    These one-step-ahead errors are what alpha was chosen by; the point itself is not in its own mean,
    which would make noise look smaller. In percent, 100 (exp(e) - 1), on the log scale; else in the unit
    of the work scale.
    """
    start = max(s.warmup, 1)
    e = s.u[start:] - s.smooth_u[start - 1 : -1]
    if s.scale != "log":
        return e, -s.sigma, s.sigma, "logit" if s.scale == "logit" else ""
    percent = 100.0 * np.expm1(np.clip(e, -MAX_LOG, MAX_LOG))
    low, high = (float(100.0 * np.expm1(np.clip(b, -MAX_LOG, MAX_LOG))) for b in (-s.sigma, s.sigma))
    return percent, low, high, "%"


def sample(n: int) -> npt.NDArray[np.int64]:
    """Indices of at most ``DOTS`` points, ascending, drawn by chance but always the same.

    An envelope would show the extremes alone and hide where most points lie.
    """
    if n <= DOTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, DOTS, replace=False))


def limits(residual: Array, low: float, high: float) -> tuple[float, float]:
    """The stretch that is shown: 99 % of the points and twice the band, never more than there is."""
    a, b = (float(q) for q in np.quantile(residual, (0.005, 0.995)))
    return max(float(residual.min()), min(1.2 * a, 2.0 * low)), min(
        float(residual.max()), max(1.2 * b, 2.0 * high)
    )


def _histogram(s: Series, shown: Array, bottom: float, top: float) -> pl.DataFrame:
    bins = int(np.clip(np.sqrt(len(shown)), 10, BINS))
    counts, edges = np.histogram(shown, bins=bins, range=(bottom, top))
    share = 100.0 * counts / len(shown)
    return rows(SIDE, "bar", s.tag, np.zeros(bins), x_end=share, low=edges[:-1], high=edges[1:])


def _shown(dots: int, points: int) -> str:
    return count_text(points, "point") if dots == points else f"{dots:,} of {count_text(points, 'point')}"


def _note(s: Series, findings: Sequence[Finding]) -> str:
    smoothing = s.smoothing
    assert smoothing is not None
    grade = next(
        (f.values.get("grade") for f in findings if f.code == "noisy" and f.values.get("grade")), None
    )
    words = f"EWMA with α {smoothing.alpha:.3g}, a window of {smoothing.window_points:,.0f} points"
    return f"{words}; grade: {display_name(str(grade), 30)}" if grade else words
