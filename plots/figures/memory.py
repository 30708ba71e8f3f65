"""Memory over time: what is used, reserved and allocated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from afterrun.analyzer.counters.memory import device_label, gib
from afterrun.analyzer.counters.series import counter_series
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.decimate import envelope
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import display_name
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of, time_unit
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Panel, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

POINTS = 3000
MOST_SERIES = 7
KINDS: Mapping[str, str] = {
    "mem_reserved_bytes": "held by the allocator",
    "mem_alloc_bytes": "in tensors",
    "mem_used_bytes": "used on the device",
    "rss_bytes": "resident on the host",
    "host_mem_used_bytes": "used on the host",
    "host_alloc_bytes": "in tensors",
}
HELD = frozenset({"mem_reserved_bytes", "mem_alloc_bytes", "host_alloc_bytes"})
"""Told by the allocator whenever they change: they stay as they are until the next sample."""

COLOURS = ("val3", "train", "val", "val2", "val4", "val5", "other")


class Memory(Figure):
    """Each kind of memory that is recorded, of each device, on one axis."""

    name = "memory"
    title = "Memory over time"
    codes: ClassVar[tuple[str, ...]] = ("memory-growth", "fragmentation", "memory-limit")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """Series in GiB."""
        series = [s for kind in KINDS for s in counter_series(view.tables.samples, kind) if len(s) > 1]
        if not series:
            return Skip("no memory is recorded over time")
        left = max(len(series) - MOST_SERIES, 0)
        series = series[:MOST_SERIES]
        timed = all(s.t_ns is not None for s in series)
        origin = min((int(s.t_ns[0]) for s in series if s.t_ns is not None), default=0)
        longest = max((int(s.t_ns[-1]) for s in series if s.t_ns is not None), default=0) - origin
        unit = time_unit(max(longest, 1))
        ends = max(longest / unit.ns if timed else float(max(len(s) for s in series) - 1), 1e-9)
        parts, keys, roles, top = [], [], {}, 0.0
        for i, s in enumerate(series):
            x = (
                (s.t_ns - origin) / unit.ns
                if timed and s.t_ns is not None
                else np.arange(len(s), dtype=np.float64)
            )
            y = s.value / 2**30
            if s.counter in HELD:
                x, y = np.append(np.repeat(x, 2)[1:], ends), np.repeat(y, 2)
            else:
                x, y = np.insert(x, s.holes + 1, x[s.holes]), np.insert(y, s.holes + 1, np.nan)
            kept = envelope(x, y, POINTS)
            name = f"{KINDS[s.counter]}, {device_label(s)}" + (
                f", {display_name(s.series, 24)}" if s.series else ""
            )
            roles[name] = COLOURS[i]
            parts.append(rows("main", "smooth", name, x[kept], y=y[kept]))
            keys.append(Key("smooth", COLOURS[i], name))
            top = max(top, float(s.value.max()) / 2**30)
        return Prepared(
            frame=stack(parts),
            title=run_title(view, "memory over time"),
            note=f"{left} more series are not drawn" if left else "",
            alt="; ".join(
                f"{k.text}: peak {gib(float(s.value.max()))}" for k, s in zip(keys, series, strict=True)
            )
            + ".",
            x=XAxis(
                f"time since the first sample, {unit.name}" if timed else "sample", 0.0, ends, whole=False
            ),
            panels=(Panel("main", "memory, GiB", 0.0, 1.06 * max(top, 1e-6)),),
            keys=tuple(keys),
            marks=notes_of(findings, self.codes),
            roles=roles,
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Curves."""
        return paint(prepared, theme)
