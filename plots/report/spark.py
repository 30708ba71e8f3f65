"""A curve as one small SVG path: 60 points, spikes kept, drawn on the work scale of the metric."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.plots.report import format as fmt

WIDTH = 120.0
HEIGHT = 28.0
PAD = 2.0
"""Room above and below, so that the line is not cut at its extremes."""
BUCKETS = 30
"""Each keeps its lowest and its highest point: at most 60 points a path."""


@dataclass(frozen=True, slots=True)
class Spark:
    """Path data in a box of ``WIDTH`` x ``HEIGHT``. ``gaps`` marks where the run recorded NaN or infinity."""

    line: str
    gaps: str
    onset: str
    label: str


def spark(s: Series | None, onset_step: int | None = None) -> Spark | None:
    """The sparkline of a curve; None where it has fewer than two finite points.

    ``onset_step`` draws a mark where the worst finding of the run begins.
    """
    if s is None or len(s.y) < 2 or s.x[-1] <= s.x[0]:
        return None
    keep = extremes(s.u, BUCKETS)
    # halved, because the span of -1.7e308 to 1.7e308 is no float
    u = s.u * 0.5
    low, high = float(u.min()), float(u.max())
    base = HEIGHT - PAD if high > low else HEIGHT / 2
    xs = _across(s, s.xf[keep])
    ys = base - (u[keep] - low) / ((high - low) or 1.0) * (HEIGHT - 2 * PAD)
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    bad = np.unique(np.round(_across(s, s.x[~s.finite])))[: 2 * BUCKETS]
    gaps = "".join(f"M{x:.0f} {HEIGHT - 4:.0f}v4" for x in bad)
    inside = onset_step is not None and s.has_step and s.x[0] <= onset_step <= s.x[-1]
    onset = f"M{_across(s, np.array([float(onset_step or 0)]))[0]:.1f} 0V{HEIGHT:.0f}" if inside else ""
    what = s.metric or s.tag
    label = f"{what} from {fmt.number(float(s.y[0]))} to {fmt.number(float(s.y[-1]))}"
    return Spark(line, gaps, onset, label)


def _across(s: Series, x: Array) -> Array:
    return np.asarray((x - s.x[0]) / (s.x[-1] - s.x[0]) * WIDTH, dtype=np.float64)


def extremes(y: Array, buckets: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Indices of the lowest and the highest point of each of ``buckets`` equal parts, with first and last point."""
    n = len(y)
    if n <= 2 * buckets:
        return np.arange(n)
    edges = np.linspace(0, n, buckets + 1).astype(np.int64)
    picks = {0, n - 1}
    for a, b in pairwise(edges.tolist()):
        picks.update((a + int(np.argmin(y[a:b])), a + int(np.argmax(y[a:b]))))
    return np.array(sorted(picks), dtype=np.intp)
