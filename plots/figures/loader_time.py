"""How long the next batch took, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.intervals import union
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of, time_unit
from afterrun.plots.content.layers import panel_for
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Panel, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

MOST_CALLS = 2000


class LoaderTime(Figure):
    """Loader calls of a trace, with the idle time inside each; else logged data time beside the step time."""

    name = "loader-time"
    title = "Time per batch"
    codes: ClassVar[tuple[str, ...]] = ("loader-stall", "step-outliers", "throughput-drift")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """From the trace where it has loader calls, else from logged times."""
        calls = view.tables.spans.filter(pl.col("device").is_null() & (pl.col("lane") == "data")).sort(
            "start_ns"
        )
        found = _traced(view, calls) if len(calls) else _logged(view)
        if isinstance(found, Skip):
            return found
        return Prepared(
            frame=found.frame,
            title=run_title(view, found.title),
            note=found.note,
            alt=found.alt,
            x=found.x,
            panels=found.panels,
            keys=found.keys,
            marks=notes_of(findings, self.codes),
            roles=found.roles,
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Bars or curves."""
        return paint(prepared, theme)


def _traced(view: RunView, calls: pl.DataFrame) -> Prepared | Skip:
    main = (
        calls.group_by("rank", "track", maintain_order=True)
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", descending=True)
    )
    first = main.row(0, named=True)
    rank = pl.col("rank").eq_missing(pl.lit(first["rank"], pl.Int32))
    chosen = calls.filter(rank & (pl.col("track") == first["track"])).head(MOST_CALLS)
    start = chosen["start_ns"].to_numpy()
    merged = union(start, start + chosen["dur_ns"].to_numpy())
    unit = time_unit(float(np.median(merged.durations)))
    number = np.arange(1.0, len(merged) + 1)
    devices = [d for d in view.trace.devices if d.rank == first["rank"]]
    length = merged.durations / unit.ns
    idle = devices[0].gaps.covered(merged.start, merged.end) / unit.ns if devices else np.zeros(len(merged))
    parts = [
        rows(
            "main", "box", "call", number - 0.42, x_end=number + 0.42, low=np.zeros(len(number)), high=length
        )
    ]
    if devices:
        parts.append(
            rows(
                "main",
                "box",
                "idle",
                number - 0.42,
                x_end=number + 0.42,
                low=np.zeros(len(number)),
                high=idle,
            )
        )
    rest = length[1:] if len(length) > 2 else length
    high = 1.1 * float(np.quantile(rest, 0.99)) or 1.0
    off = int((length > high).sum())
    share = 100.0 * float(idle.sum()) / max(float(length.sum()), 1e-12)
    return Prepared(
        frame=stack(parts),
        title="time per batch",
        note=f"{count(len(merged), 'loader call')} of one thread; the first took {span_time(float(merged.durations[0]))}, the median {span_time(float(np.median(merged.durations)))}"
        + (f"; {off} beyond the axis" if off else ""),
        alt=f"{count(len(merged), 'loader call')}, median {span_time(float(np.median(merged.durations)))}"
        + (
            f"; the device is idle in {percent(share)} of the time inside them."
            if devices
            else "; no device is in the trace."
        ),
        x=XAxis("loader call", 0.5, len(merged) + 0.5),
        panels=(Panel("main", f"time in the call, {unit.name}", 0.0, high),),
        keys=(
            Key("box", "compute", "in the call"),
            Key("box", "dataloader", "of it, device idle"),
        )
        if devices
        else (Key("box", "compute", "in the call"),),
        roles={"call": "compute", "idle": "dataloader"},
    )


def _logged(view: RunView) -> Prepared | Skip:
    step, data = view.pick("step_time_s", "train", "none"), view.pick("data_time_s", "train", "none")
    shown = [
        (s, role, words)
        for s, role, words in ((step, "train", "step"), (data, "dataloader", "waiting for data"))
        if s is not None and len(s.y)
    ]
    if data is None or len(shown) < 2:
        return Skip("neither loader calls nor logged data and step times are recorded")
    parts = [rows("main", "line", s.tag, s.xf, y=s.y) for s, _, _ in shown]
    low, high = min(float(s.xf[0]) for s, _, _ in shown), max(float(s.xf[-1]) for s, _, _ in shown)
    return Prepared(
        frame=stack(parts),
        title="time per step and waiting for data",
        alt="; ".join(f"{words}: median {span_time(1e9 * float(np.median(s.y)))}" for s, _, words in shown)
        + ".",
        x=XAxis("step", low, max(high, low + 1)),
        panels=(panel_for("main", "time, s", [s.y for s, _, _ in shown], log=False),),
        keys=tuple(Key("line", role, f"{words} ({s.tag})") for s, role, words in shown),
        roles={s.tag: role for s, role, _ in shown},
    )
