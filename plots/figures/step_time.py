"""How long steps took over the run: every step, the usual time of its neighbours, and what waiting for data takes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import span_time
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array, running_median
from afterrun.analyzer.steps.times import StepTimes, step_times
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.decimate import envelope
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of, time_unit
from afterrun.plots.content.layers import panel_for
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Layer, Mark, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

PANEL = "main"
NEIGHBOURS = 51
PLACED = frozenset({"throughput-drift", "hang"})
"""Findings that begin at one step."""
POINTS = 3000


class StepTime(Figure):
    """Seconds a step from the best record there is; of a trace the stacked steps say more."""

    name = "step-time"
    title = "Time of the steps"
    codes: ClassVar[tuple[str, ...]] = (
        "step-outliers",
        "throughput-drift",
        "loader-stall",
        "hang",
        "checkpoint-stall",
    )

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """Step times and, where logged beside them, the time of waiting for data."""
        times = step_times(view)
        if times is None:
            return Skip("fewer than 20 step times are recorded")
        if times.origin == "step marks of a trace":
            return Skip("the steps of a trace stand in a figure of their own")
        data = None if times.relative else _data(view, times)
        unit = time_unit(10 * float(np.median(times.seconds)) * 1e9)
        scale = 1.0 if times.relative else 1e9 / unit.ns
        seconds = times.seconds * scale
        usual = running_median(seconds, min(NEIGHBOURS, len(seconds) // 2 * 2 - 1))
        parts, values = [], [seconds]
        for layer, name, y in _layers(seconds, usual):
            kept = envelope(times.step, y, POINTS)
            parts.append(rows(PANEL, layer, name, times.step[kept], y=y[kept]))
        keys = [
            Key("smooth", "train", f"usual of {NEIGHBOURS} neighbours"),
            Key("raw", "train", f"all {len(times):,} steps"),
        ]
        if data is not None:
            kept = envelope(data.xf, data.y, POINTS)
            parts.append(rows(PANEL, "smooth", "data", data.xf[kept], y=data.y[kept] * scale))
            keys.append(Key("smooth", "accent", "of it waiting for data"))
            values.append(data.y * scale)
        what = "step time, relative" if times.relative else f"time a step, {unit.name}"
        log = float(seconds.max()) > 20 * float(np.median(seconds))
        slowest = int(np.argmax(times.seconds))
        longest = (
            ""
            if times.relative
            else f", the longest {span_time(times.seconds[slowest] * 1e9)} at step {int(times.step[slowest]):,}"
        )
        return Prepared(
            frame=stack(parts),
            title=run_title(view, "time of the steps"),
            note=f"{times.origin}"
            + (
                f", each over {int(times.every):,} steps"
                if times.every > 1 and times.origin == "wall clock between rows"
                else ""
            ),
            alt=f"{len(times):,} step times, median {_median(times)}{longest}.",
            x=XAxis("step", float(times.step[0]), float(max(times.step[-1], times.step[0] + 1))),
            panels=(panel_for(PANEL, what, values, log=log),),
            keys=tuple(keys),
            marks=tuple(_placed(m, findings) for m in notes_of(findings, self.codes)),
            roles={"steps": "train", "usual": "train", "data": "accent"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """One panel."""
        return paint(prepared, theme)


def _placed(mark: Mark, findings: Sequence[Finding]) -> Mark:
    """A note about one place as a flag there."""
    onset = next((f.where.step_start for f in findings if f.code == mark.code and f.is_alarm), None)
    return (
        mark if mark.code not in PLACED or onset is None else mark._replace(shape="flag", xs=(float(onset),))
    )


def _layers(seconds: Array, usual: Array) -> tuple[tuple[Layer, str, Array], ...]:
    return ("raw", "steps", seconds), ("smooth", "usual", usual)


def _median(times: StepTimes) -> str:
    return "1" if times.relative else span_time(float(np.median(times.seconds)) * 1e9)


def _data(view: RunView, times: StepTimes) -> Series | None:
    """The logged time of waiting, where the step time was logged too."""
    data = view.pick("data_time_s", "train", "none")
    return data if data is not None and times.origin == "logged step time" and len(data.y) > 1 else None
