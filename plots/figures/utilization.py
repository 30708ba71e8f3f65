"""Counters of the devices over time: utilisation, memory, clock, temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from afterrun.analyzer.counters.memory import device_label
from afterrun.analyzer.counters.series import CounterSeries, counter_series
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import number
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.decimate import envelope
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import display_name
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import MAX_ROWS, notes_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Panel, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

POINTS = 2400
ROLES = ("train", "val", "val2", "val3", "val4", "val5", "accent", "other")


class Shown(NamedTuple):
    """One panel: counter, label, factor to its unit, fixed top or None."""

    counter: str
    label: str
    factor: float
    top: float | None


PANELS = (
    Shown("gpu_util_pct", "utilisation, %", 1.0, 100.0),
    Shown("mem_used_bytes", "memory, GiB", 2.0**-30, None),
    Shown("sm_clock_hz", "clock, MHz", 1e-6, None),
    Shown("temp_c", "temp., °C", 1.0, None),
)


class Utilization(Figure):
    """Up to four counters of each device on one clock."""

    name = "utilization"
    title = "Counters of the GPUs"
    codes: ClassVar[tuple[str, ...]] = (
        "low-utilization",
        "throttled",
        "memory-growth",
        "memory-limit",
        "batch-headroom",
        "undersampled",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """The series of each counter; holes in the record stay holes."""
        found = [
            (
                p,
                [
                    s
                    for s in counter_series(view.tables.samples, p.counter)
                    if s.device is not None and len(s) > 1
                ],
            )
            for p in PANELS
        ]
        found = [(p, series[:MAX_ROWS]) for p, series in found if series]
        if not found:
            return Skip("no counters of devices are recorded")
        timed = all(s.t_ns is not None for _, series in found for s in series)
        origin = min((int(s.t_ns[0]) for _, series in found for s in series if s.t_ns is not None), default=0)
        longest = max(_hours(s, origin, timed=timed).max() for _, series in found for s in series)
        unit, per = ("h", 1.0) if longest >= 2 else ("min", 60.0)
        parts, panels = [], []
        for p, series in found:
            top = 0.0
            for s in series:
                x, y = _with_holes(
                    _hours(s, origin, timed=timed) * (per if timed else 1.0), s.value * p.factor, s
                )
                kept = envelope(x, y, POINTS)
                parts.append(
                    rows(
                        p.counter,
                        "smooth" if len(series) == 1 else "line",
                        _name(s),
                        x[kept],
                        y=y[kept],
                    )
                )
                top = max(top, float(np.nanmax(y)))
            panels.append(Panel(p.counter, p.label, 0.0, 1.05 * (p.top or top or 1.0)))
        labels = list(dict.fromkeys(_name(s) for _, series in found for s in series))
        roles = {name: ROLES[i % len(ROLES)] for i, name in enumerate(labels)}
        means = "; ".join(
            f"{p.label.split(',')[0]} of {_name(s[0])} {number(s[0].mean * p.factor)} on average"
            for p, s in found
        )
        return Prepared(
            frame=stack(parts),
            title=run_title(view, "counters of the GPUs"),
            alt=f"{means}.",
            x=XAxis(
                f"time since the first sample, {unit}" if timed else "sample",
                0.0,
                max(longest * (per if timed else 1.0), 1e-9),
                whole=False,
            ),
            panels=tuple(panels),
            keys=tuple(Key("smooth", roles[name], name) for name in labels),
            marks=notes_of(findings, self.codes),
            roles=roles,
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """One panel a counter."""
        return paint(prepared, theme)


def _name(s: CounterSeries) -> str:
    """The device, and what tells several series of it apart."""
    return device_label(s) + (f", {display_name(s.series, 24)}" if s.series else "")


def _hours(s: CounterSeries, origin: int, *, timed: bool) -> np.ndarray:
    if not timed or s.t_ns is None:
        return np.arange(len(s), dtype=np.float64)
    return np.asarray((s.t_ns - origin) / 3.6e12)


def _with_holes(x: np.ndarray, y: np.ndarray, s: CounterSeries) -> tuple[np.ndarray, np.ndarray]:
    """A NaN in every hole of the record, so that no line is drawn across it."""
    return np.insert(x, s.holes + 1, x[s.holes]), np.insert(y, s.holes + 1, np.nan)
