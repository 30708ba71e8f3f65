"""What several figures say about a curve: which one a run is about, its rows, legend entries and end label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.text import count_text, display_name, legible, percent_text, value_text
from afterrun.plots.content.layers import (
    MAX_LOG,
    Axis,
    is_smoothed,
    line_rows,
    metric_label,
    raw_rows,
    smooth_rows,
)
from afterrun.plots.spec import MARKED_POINTS, End, Key

TITLE_CHARS = 76
"""About as many fit above a page figure."""

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
    if not is_smoothed(s):
        return [line_rows(panel, s, axis)]
    return [raw_rows(panel, s, axis), *smooth_rows(panel, s, axis, band=band)]


def curve_keys(s: Series, role: str, number: int, *, band: bool) -> list[Key]:
    """Legend entries that say what each stroke of ``curve_rows`` is."""
    tag = legible(display_name(s.tag, 44), f"tag {number}")
    points = count_text(len(s), "point")
    smoothing = s.smoothing
    if smoothing is None or not is_smoothed(s):
        return [Key("line" if len(s.y) <= MARKED_POINTS else "smooth", role, f"{tag}, {points}")]
    keys = [
        Key("smooth", role, f"{tag}, EWMA over {min(smoothing.window_points, len(s.y)):,.0f} points"),
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
    return float(100.0 * np.expm1(min(s.sigma, MAX_LOG))) if s.scale == "log" else None


def end_label(panel: str, s: Series, role: str) -> End:
    """Name and last value of a curve; says so where the curve ends in values that are not finite."""
    last = float(s.from_work(s.smooth_u[-1:])[0]) if is_smoothed(s) else float(s.y[-1])
    value = value_text(last) if s.finite[-1] else f"{value_text(last)}, then {value_text(float(s.value[-1]))}"
    return End(panel, last, f"{short_name(s)}\n{value}", role)


def end_labels(panel: str, curves: Sequence[Series], roles: Sequence[str]) -> tuple[End, ...]:
    """End labels of curves in one panel; by tag where the splits do not tell them apart."""
    ends = [end_label(panel, s, role) for s, role in zip(curves, roles, strict=True)]
    names = [short_name(s) for s in curves]
    return tuple(
        e if names.count(name) == 1 else e._replace(text=_renamed(e, s))
        for e, s, name in zip(ends, curves, names, strict=True)
    )


def _renamed(end: End, s: Series) -> str:
    return f"{display_name(s.tag, 16)}\n{end.text.partition(chr(10))[2]}"


def short_name(s: Series) -> str:
    """What a curve is called at its end: its split, else its metric."""
    return SPLIT_WORDS.get(s.split) or display_name(metric_label(s), 18)


def split_words(curves: Sequence[Series]) -> str:
    """``training and validation``: the splits of these curves, each once; empty where none is known."""
    long = {"train": "training", "val": "validation", "test": "test"}
    return " and ".join(dict.fromkeys(long[s.split] for s in curves if s.split in long))


def run_title(view: RunView, what: str) -> str:
    """``run: what``, the run named harmlessly and no longer than the line allows."""
    return f"{short_path(display_name(view.name, 1000), max(24, TITLE_CHARS - len(what)))}: {what}"


def short_path(name: str, limit: int) -> str:
    """A path of at most ``limit`` characters that keeps its end, which tells runs apart: ``…/lr-3e-4/seed1``."""
    if len(name) <= limit:
        return name
    parts = name.split("/")
    kept = next((k for k in range(1, len(parts)) if len("/".join(parts[k:])) + 2 <= limit), None)
    return display_name(parts[-1], limit) if kept is None else "…/" + "/".join(parts[kept:])


def marked_sentence(texts: Sequence[str]) -> str:
    """The sentence of an alternative text that lists the marks."""
    return f" Marked: {'; '.join(texts)}." if texts else ""
