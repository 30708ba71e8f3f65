"""Where the time of the most idle device went: from the whole span down to each cause of idle time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import percent, span_time
from afterrun.analyzer.trace.words import CAUSE_WORDS, device_name
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import ROLES, busy_parts, notes_of, time_unit
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import XAxis, row_panel, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

ROOM = 1.32
"""The axis ends this much right of the span, so that words beside the longest bar have room."""

_BUSY_WORDS = {
    "compute": "computing",
    "comm": "collectives that nothing hides",
    "copy": "copies that nothing hides",
}


class GapWaterfall(Figure):
    """Busy and idle time of one device, bar by bar; the bars add up to the span."""

    name = "gap-waterfall"
    title = "Where the time of a GPU went"
    codes: ClassVar[tuple[str, ...]] = (
        "gpu-idle",
        "transfer-bound",
        "exposed-comm",
        "launch-bound",
        "loader-stall",
        "checkpoint-stall",
        "slow-start",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """One bar a state, each beginning where the one above ends."""
        devices = view.trace.devices
        if not devices:
            return Skip("the trace holds no GPU activity")
        device = max(devices, key=lambda d: d.idle_ns / max(d.span_ns, 1))
        parts = busy_parts(device)
        spent = {"compute": parts.compute.total_ns, "comm": parts.comm.total_ns, "copy": parts.copy.total_ns}
        spent |= view.trace.idle(device).by_cause_ns
        spent = {name: ns for name, ns in spent.items() if ns}
        span = max(device.span_ns, 1)
        unit = time_unit(span)
        frames, at = [], 0.0
        for i, (state, ns) in enumerate(spent.items()):
            end = at + ns / unit.ns
            words = f"{span_time(ns)}, {percent(100 * ns / span)}"
            frames.append(rows("main", "box", state, [at], x_end=[end], low=[i - 0.36], high=[i + 0.36]))
            frames.append(rows("main", "label", words, [end], y=[float(i)]))
            at = end
        names = tuple(_BUSY_WORDS.get(s) or f"idle: {CAUSE_WORDS[s].split(' (')[0]}" for s in spent)
        return Prepared(
            frame=stack(frames),
            title=run_title(view, f"where the time of {device_name(device)} went"),
            note=f"{span_time(span)} from the first to the last activity; the bars add up to it",
            alt=f"{device_name(device)}: "
            + "; ".join(
                f"{n} {percent(100 * ns / span)}" for n, ns in zip(names, spent.values(), strict=True)
            )
            + ".",
            x=XAxis(f"time, {unit.name}", 0.0, ROOM * span / unit.ns, whole=False, end=span / unit.ns),
            panels=(row_panel("main", names),),
            marks=notes_of(findings, self.codes),
            roles=dict(ROLES),
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Bars from left to right, each a step down."""
        return paint(prepared, theme)
