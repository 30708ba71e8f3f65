"""What each device did over time: the share of computing, copying and idling in every column, idle time by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import percent, span_time
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.idle import Idle
from afterrun.analyzer.trace.trace import Trace
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import (
    ROLES,
    STATE_WORDS,
    Unit,
    left_out,
    notes_of,
    row_names,
    state_keys,
    states,
    time_unit,
    worst_first,
)
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import XAxis, row_panel, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

COLUMNS = 900
"""Columns of time; in each a device's states are stacked by their share, so nothing short is lost or blown up."""

HEIGHT = 0.8


class GpuTimeline(Figure):
    """One row a device over the whole capture."""

    name = "gpu-timeline"
    title = "What each GPU did over time"
    codes: ClassVar[tuple[str, ...]] = (
        "gpu-idle",
        "loader-stall",
        "checkpoint-stall",
        "launch-bound",
        "slow-start",
        "low-utilization",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """States of the devices by column of time."""
        devices = view.trace.devices
        if not devices:
            return Skip("the trace holds no GPU activity")
        shown = worst_first(devices)
        offsets = _clock_offsets_ns(view.trace)
        behind = [offsets.get((d.rank, d.process, d.device), 0) for d in shown]
        low = min(d.low_ns - by for d, by in zip(shown, behind, strict=True))
        high = max(d.high_ns - by for d, by in zip(shown, behind, strict=True))
        unit = time_unit(high - low)
        edges = np.unique(np.linspace(low, high, COLUMNS + 1).astype(np.int64))
        if len(edges) < 2:
            return Skip("the capture has no length")
        parts: list[pl.DataFrame] = []
        seen: set[str] = set()
        for row, (device, by) in enumerate(zip(shown, behind, strict=True)):
            drawn = _row(device, view.trace.idle(device), edges + by, row, unit)
            seen |= set(drawn)
            parts += drawn.values()
        told = "; clocks aligned on the ends of collectives" if any(behind) else ""
        marks = notes_of(findings, self.codes)
        worst = max(shown, key=lambda d: d.idle_ns / max(d.span_ns, 1))
        return Prepared(
            frame=stack(parts),
            title=run_title(view, "what each GPU did"),
            note=f"{span_time(high - low)} in {len(edges) - 1} columns, in each the share of time by state{left_out(devices, shown)}{told}",
            alt=f"{len(devices)} {'device' if len(devices) == 1 else 'devices'} over {span_time(high - low)}; the most idle one does nothing {percent(100 * worst.idle_ns / max(worst.span_ns, 1))} of the time.",
            x=XAxis(
                f"time since the first GPU activity, {unit.name}", 0.0, (high - low) / unit.ns, whole=False
            ),
            panels=(row_panel("main", row_names(shown)),),
            keys=state_keys(seen),
            marks=marks,
            roles=dict(ROLES),
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Stacked shares, a row a device."""
        return paint(prepared, theme)


def _clock_offsets_ns(trace: Trace) -> dict[tuple[int | None, int | None, int], int]:
    """How far the clock of a device is ahead of the first one's, where collectives tell it better than it varies."""
    matched = trace.collectives
    if matched is None:
        return {}
    sure = np.abs(matched.offset_ns) > matched.residual_ns
    return {
        (d.rank, d.process, d.device): int(offset)
        for d, offset, known in zip(matched.devices, matched.offset_ns, sure, strict=True)
        if known
    }


def _row(device: DeviceTrace, idle: Idle, edges: np.ndarray, row: int, unit: Unit) -> dict[str, pl.DataFrame]:
    """The areas of one device by state; states that never occur are left out."""
    times = states(device, idle, edges[:-1], edges[1:])
    width = np.diff(edges)
    base = np.full(len(width), row + HEIGHT / 2)
    x = (edges - edges[0]) / unit.ns
    out: dict[str, pl.DataFrame] = {}
    for state in STATE_WORDS:
        share = times[state] / width
        if not share.any():
            continue
        top = base - HEIGHT * share
        closed = [np.append(v, v[-1]) for v in (base, top)]
        out[state] = rows("main", "area", state, x, low=closed[0], high=closed[1])
        base = top
    return out
