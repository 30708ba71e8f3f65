"""Curves as rows of the drawn frame: everything that is decided about a curve before it is drawn.

Smoothing is on all points and on the work scale of the series; only its result is thinned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.series import Series
from afterrun.analyzer.smoothing import ewma
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import Pair
from afterrun.loaders.names import metric_of
from afterrun.plots.canvas.decimate import envelope, merge_close, segments
from afterrun.plots.canvas.text import display_name, step_text
from afterrun.plots.spec import Panel, XAxis, rows

RAW_LIMIT = 3000
"""Points of a raw curve at most: more than one lowest and one highest point a pixel column of a page figure."""

SMOOTH_LIMIT = 1500

FEW_POINTS = 60
"""Up to this many points a curve is drawn as it is: there is nothing to average."""

LEAST_WINDOW = 2.0
"""A chosen window of fewer points means that the best average is none."""

MAX_LOG = 700.0
"""exp() of more overflows."""

LOG_FACTOR = 10.0
"""A positive quantity that spans more than this factor is drawn on a log axis."""

LANE_MERGE = 0.004
"""Non-finite stretches closer than this share of the axis are one mark."""

SHADED_SHARE = 0.4
"""A replaced stretch is tinted up to this share of the axis; a tint of most of the panel says nothing."""

OFF_SCALE = 20.0
"""On a linear axis, points further out than this many times the central 98 % are left off it."""


class Axis(NamedTuple):
    """What the curves of a figure are drawn over."""

    kind: Literal["step", "epoch", "hours", "order"]
    lead: Series
    start_ns: int = 0
    """Where hours are counted from."""

    @property
    def label(self) -> str:
        """What stands under the axis."""
        if (
            self.kind == "step"
            and self.lead.epoch is not None
            and bool((self.lead.epoch == self.lead.x).all())
        ):
            return "epoch"  # the log counts nothing else
        return {"order": "write order", "hours": "hours since start"}.get(self.kind, self.kind)

    def say(self, x: float) -> str:
        """A place on the axis in words: ``2,990``, ``epoch 3.5``, ``0.8 h``, ``row 12``."""
        form = {"epoch": "epoch {}", "hours": "{} h", "order": "row {}"}.get(self.kind, "{}")
        return form.format(step_text(x))

    def of(self, s: Series) -> Array:
        """The axis at all points of the series, shape (n,)."""
        if self.kind == "epoch" and s.epoch is not None:
            return s.epoch
        if self.kind == "hours" and s.wall_ns is not None:
            return hours(s.wall_ns, self.start_ns)
        return s.x

    def window(self, curves: Sequence[Series]) -> XAxis:
        """The axis over everything that is drawn, with a little air."""
        ends = [x for s in curves for x in (*self.of(s)[[0, -1]], *self._replaced(s))]
        low, high = float(min(ends)), float(max(ends))
        pad = (high - low) * 0.015 or max(0.5, abs(low) * 1e-6)
        return XAxis(self.label, low - pad, high + pad, whole=self.kind in ("step", "order"))

    def _replaced(self, s: Series) -> list[float]:
        """The ends of what a restart replaced: it may have come further than what survives."""
        lost = superseded(s)
        return [] if lost.is_empty() or self.kind != "step" else [float(lost["step"][i]) for i in (0, -1)]


def superseded(s: Series) -> pl.DataFrame:
    """Rows that a restart replaced, with a step and a finite value, ordered by step.

    Copies of surviving rows (a checkpoint's history, the same curve in a table without a clock) were not
    trained twice and are left out.
    """
    if not s.superseded:
        return s.frame.clear()
    known = pl.col("superseded") & pl.col("step").is_not_null() & pl.col("value").is_finite()
    earlier = pl.col("attempt") < pl.col("attempt").max()
    clocked = pl.lit(value=True) if s.wall_ns is None else pl.col("wall_ns").is_not_null()
    return s.frame.filter(known & earlier & clocked).sort("step", maintain_order=True)


def hours(wall_ns: npt.NDArray[np.int64], start_ns: int) -> Array:
    """Hours since ``start_ns``; a clock that goes back stands still."""
    return np.asarray(np.maximum.accumulate(wall_ns - start_ns) / 3.6e12, dtype=np.float64)


def axis_for(lead: Series, others: Sequence[Series]) -> tuple[Axis, list[Series]]:
    """The axis on which ``lead`` can be drawn together with most of ``others``, and those of them.

    Steps (or the write order) where they count the same thing, else epochs, else the wall clock.
    """
    plain: Literal["step", "order"] = "step" if lead.has_step else "order"
    best, shown = Axis(plain, lead), [s for s in others if same_count(lead, s)]
    if _rising(lead.epoch):
        by_epoch = [s for s in others if _rising(s.epoch)]
        if len(by_epoch) > len(shown) or plain == "order":
            best, shown = Axis("epoch", lead), by_epoch
    if lead.wall_ns is not None:
        by_clock = [s for s in others if s.wall_ns is not None]
        if len(by_clock) > len(shown):
            firsts = [int(s.wall_ns[0]) for s in (lead, *by_clock) if s.wall_ns is not None]
            best, shown = Axis("hours", lead, min(firsts)), by_clock
    return best, shown


def same_count(lead: Series, other: Series) -> bool:
    """Whether a step of one is a step of the other, as far as their ranges tell."""
    if lead.has_step != other.has_step:
        return False
    if len(other) == 1 or len(lead) == 1:
        return bool(lead.x[0] <= other.x[-1] <= lead.x[-1] or other.x[0] <= lead.x[0] <= other.x[-1])
    return Pair(train=lead, val=other).same_axis


def _rising(epoch: Array | None) -> bool:
    return epoch is not None and bool(np.isfinite(epoch).all() and (np.diff(epoch) >= 0).all())


def raw_rows(panel: str, s: Series, axis: Axis, *, limit: int = RAW_LIMIT) -> pl.DataFrame:
    """The envelope of every surviving point, holes included."""
    x = axis.of(s)
    kept = envelope(x, s.value, limit)
    y = np.where(np.isfinite(s.value[kept]), s.value[kept], np.nan)
    return rows(panel, "raw", s.tag, x[kept], y=y)


def is_smoothed(s: Series) -> bool:
    """Whether the curve is drawn as an EWMA over its points: long enough, and an average of more than one."""
    return s.smoothing is not None and len(s.y) > FEW_POINTS and s.smoothing.window_points >= LEAST_WINDOW


def smooth_rows(panel: str, s: Series, axis: Axis, *, band: bool = True) -> list[pl.DataFrame]:
    """The EWMA of all points with its chosen alpha, and the noise band of one sigma."""
    x, u = axis.of(s)[s.finite], s.smooth_u
    y = s.from_work(u)
    kept = envelope(x, y, SMOOTH_LIMIT)
    made = [rows(panel, "smooth", s.tag, x[kept], y=y[kept])]
    if band and s.sigma > 0:
        low, high = value_at(s, u[kept] - s.sigma), value_at(s, u[kept] + s.sigma)
        made.insert(0, rows(panel, "band", s.tag, x[kept], low=low, high=high))
    return made


def value_at(s: Series, u: Array) -> Array:
    """``from_work`` that stays within float64 where noise is added to extreme values."""
    return s.from_work(np.clip(u, -MAX_LOG, MAX_LOG) if s.scale != "raw" else u)


def line_rows(panel: str, s: Series, axis: Axis) -> pl.DataFrame:
    """A curve of few points as it was recorded, holes included."""
    return raw_rows(panel, s, axis).with_columns(pl.lit("line").alias("layer"))


def superseded_rows(panel: str, s: Series, axis: Axis, window: XAxis) -> list[pl.DataFrame]:
    """What a restart replaced: one dashed line an attempt, smoothed as the curve is.

    Over a grey stretch where it is short enough to stand out. Only where steps say where it lay.
    """
    made: list[pl.DataFrame] = []
    if axis.kind != "step":
        return made
    for part in superseded(s).partition_by("attempt", maintain_order=True):
        x, y = part["step"].to_numpy().astype(np.float64), part["value"].to_numpy()
        if s.smoothing is not None and is_smoothed(s) and (s.scale != "log" or y.min() > 0):
            y = value_at(s, ewma(s.to_work(y), s.smoothing.alpha))
        if 0 < x[-1] - x[0] <= SHADED_SHARE * (window.high - window.low):
            made.append(rows(panel, "shade", "superseded", [x[0]], x_end=[x[-1]]))
        kept = envelope(x, y, SMOOTH_LIMIT)
        made.append(rows(panel, "superseded", f"{s.tag}#{part['attempt'][0]}", x[kept], y=y[kept]))
    return made


def lane_rows(panel: str, s: Series, axis: Axis, window: XAxis) -> list[pl.DataFrame]:
    """Stretches where the recorded value is NaN and where it is infinite: lanes ``NaN train``, ``∞ train``."""
    x, made = axis.of(s), []
    for word, mask in (("NaN", np.isnan(s.value)), ("∞", np.isinf(s.value))):
        first, last = segments(mask)
        if len(first):
            a, b = merge_close(x[first], x[last], LANE_MERGE * (window.high - window.low))
            lane = word if s.split == "none" else f"{word} {s.split}"
            made.append(rows(panel, "lane", lane, a, x_end=b))
    return made


def panel_for(
    name: str, label: str, values: Sequence[Array], *, share: float = 1.0, log: bool | None = None
) -> Panel:
    """Limits and scale of a panel that shows these values; log where they are positive and span a factor of 10.

    ``log=False`` keeps it linear.
    """
    y = np.concatenate([v[np.isfinite(v)] for v in values])
    low, high = float(y.min()), float(y.max())
    if log is None:
        log = low > 0 and high / low > LOG_FACTOR
    if log:
        a, b = max(math.log10(low), -300.0), min(math.log10(high), 300.0)
        pad = 0.04 * (b - a) or 0.1
        bounds = 10.0 ** max(a - pad, -305.0), 10.0 ** min(b + pad, 305.0)
        return Panel(name, f"{label} (log scale)", *bounds, log=True, share=share)
    low, high = _central(y, low, high)
    pad = 0.05 * (high - low) or max(0.05 * abs(high), 1e-6)
    bottom = 0.0 if 0 <= low < pad else low - pad
    return Panel(name, label, bottom, high + pad, share=share)


def _central(y: Array, low: float, high: float) -> tuple[float, float]:
    """The limits without points so far out that they would flatten everything else."""
    a, b = (float(q) for q in np.quantile(np.clip(y, -1e300, 1e300), (0.01, 0.99)))
    width = b - a
    if width > 0 and (high - low) / width > OFF_SCALE:
        low, high = max(low, a - width / 2), min(high, b + width / 2)
    return max(low, -1e300), min(high, 1e300)


def metric_label(s: Series) -> str:
    """The quantity on a vertical axis: the canonical metric with its unit, else the tag."""
    known = metric_of(s.metric) if s.metric else None
    name = (s.metric or display_name(s.tag, 40)).replace("_", " ")
    return f"{name}, {known.unit}" if known and known.unit else name
