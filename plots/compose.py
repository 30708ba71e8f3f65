"""What several figures say about a curve: which one a run is about, its rows, legend entries and end label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView
from afterrun.plots.layers import FEW_POINTS, Axis, line_rows, metric_label, raw_rows, smooth_rows
from afterrun.plots.spec import End, Key
from afterrun.plots.text import count_text, display_name, legible, percent_text, value_text

SPLIT_WORDS = {"train": "train", "val": "validation", "test": "test"}


def main_curve(view: RunView) -> Series | None:
    """The curve a run is about: its training loss, else the first paired metric, else the longest known one."""
    if view.train_loss is not None:
        return view.train_loss
    if view.pairs:
        return view.pairs[0].train
    return max((s for s in view.lead if s.better and len(s.y)), key=lambda s: len(s.y), default=None)


def roles_of(curves: Sequence[Series]) -> list[str]:
    """A colour role for each curve: the main one, then the held-out ones in order, then grey."""
    numbers = ["val", "val2", "val3", "val4", "val5", "val6"]
    first = "val" if curves and curves[0].split in ("val", "test") else "train"
    rest = numbers if first == "train" else numbers[1:]
    return [first, *(rest[i] if i < len(rest) else "other" for i in range(len(curves) - 1))]


def curve_rows(panel: str, s: Series, axis: Axis, *, band: bool) -> list[pl.DataFrame]:
    """A curve in the layers that suit its number of points."""
    smoothing = s.smoothing
    if len(s.y) <= FEW_POINTS or smoothing is None:
        return [line_rows(panel, s, axis)]
    return [raw_rows(panel, s, axis), *smooth_rows(panel, s, axis, band=band)]


def curve_keys(s: Series, role: str, number: int, *, band: bool) -> list[Key]:
    """Legend entries that say what each stroke of ``curve_rows`` is."""
    tag = legible(display_name(s.tag, 44), f"tag {number}")
    points = count_text(len(s), "point")
    smoothing = s.smoothing
    if len(s.y) <= FEW_POINTS or smoothing is None:
        return [Key("line", role, f"{tag}, {points}")]
    keys = [
        Key("smooth", role, f"{tag}, mean over {smoothing.window_points:,.3g} points (EWMA)"),
        Key("raw", role, f"all {points}"),
    ]
    if band and s.sigma > 0:
        keys.append(Key("band", role, f"±1σ noise{_noise_text(s)}"))
    return keys


def _noise_text(s: Series) -> str:
    percent = noise_pct(s)
    return "" if percent is None else f", {percent_text(percent)}"


def noise_pct(s: Series) -> float | None:
    """Noise of one point in percent: 100 (exp(sigma) - 1) on the log scale; None on any other."""
    return float(100.0 * np.expm1(s.sigma)) if s.scale == "log" else None


def end_label(panel: str, s: Series, role: str) -> End:
    """Name and last value of a curve; says so where the curve ends in values that are not finite."""
    smooth = s.smoothing is not None and len(s.y) > FEW_POINTS
    last = float(s.from_work(s.smooth_u[-1:])[0]) if smooth else float(s.y[-1])
    value = value_text(last) if s.finite[-1] else f"{value_text(last)}, then {value_text(float(s.value[-1]))}"
    return End(panel, last, f"{short_name(s)}\n{value}", role)


def short_name(s: Series) -> str:
    """What a curve is called at its end: its split, else its metric."""
    return SPLIT_WORDS.get(s.split) or display_name(metric_label(s), 18)


def run_title(view: RunView, what: str) -> str:
    """``run: what``, the run named harmlessly."""
    return f"{display_name(view.name)}: {what}"


def marked_sentence(texts: Sequence[str]) -> str:
    """The sentence of an alternative text that lists the marks."""
    return f" Marked: {'; '.join(texts)}." if texts else ""
