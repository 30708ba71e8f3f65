"""What limits each profiled kernel: computing against memory, as shares of their peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.kernel_limit import KernelLimit, sol_table
from afterrun.analyzer.prose import count, span_time
from afterrun.analyzer.trace.kernel_names import distinct_names
from afterrun.analyzer.trace.words import short_name
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.canvas.text import display_name
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Panel, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

NAMED = 4
NAME_CHARS = 34
ROOM = 1.36
"""The axis ends this much right of the peak, so that words beside a kernel near it have room."""

TINT = 0.22
WORDS_BELOW = 3.5
"""How far the words of a field stand below its upper edge, % of peak."""


class Roofline(Figure):
    """Speed of light: each dot a launch, right is computing, up is memory."""

    name = "roofline"
    title = "What limits the profiled kernels"
    codes: ClassVar[tuple[str, ...]] = ("kernel-limit",)

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """Throughputs of the launches, and the bounds between the classes."""
        table = sol_table(view.tables.kernels)
        table = table.filter(pl.col("compute_pct").is_not_null() & pl.col("memory_pct").is_not_null())
        if table.is_empty():
            return Skip("no compute and memory throughput of kernels is recorded")
        limits = KernelLimit()
        table = table.sort("duration_ns", descending=True, nulls_last=True)
        named = table.unique("name", keep="first", maintain_order=True).head(NAMED)
        frames = [
            *_regions(limits.low_pct, limits.high_pct),
            rows("main", "dots", "kernel", table["compute_pct"].to_numpy(), y=table["memory_pct"].to_numpy()),
            rows("main", "best", "kernel", named["compute_pct"].to_numpy(), y=named["memory_pct"].to_numpy()),
        ]
        frames += [
            rows("main", "label", _words(k, name), [float(k["compute_pct"])], y=[float(k["memory_pct"])])
            for k, name in zip(named.to_dicts(), distinct_names(named["name"].to_list()), strict=True)
        ]
        top = table.row(0, named=True)
        return Prepared(
            frame=stack(frames),
            title=run_title(view, "what limits the profiled kernels"),
            note=f"{count(len(table), 'launch', 'launches')} under ncu; outside the fields neither is the limit alone",
            alt=f"{count(len(table), 'launch', 'launches')}; the longest, {short_name(top['name'])}, uses {top['compute_pct']:.0f} % of the computing and {top['memory_pct']:.0f} % of the memory peak.",
            x=XAxis("computing, % of peak", 0.0, ROOM * 100.0, whole=False, end=100.0),
            panels=(Panel("main", "memory, % of peak", 0.0, 100.0),),
            keys=(
                Key("dots", "train", "launch"),
                Key("best", "ink", "longest of its name"),
            ),
            marks=notes_of(findings, self.codes),
            roles={"kernel": "train", "field": "compute"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Dots between the bounds."""
        return paint(prepared, theme)


def _words(kernel: dict[str, object], name: str) -> str:
    length = kernel["duration_ns"]
    name = display_name(name, NAME_CHARS)
    return f"  {name}, {span_time(float(str(length)))}" if length is not None else f"  {name}"


def _regions(low_pct: float, high_pct: float) -> list[pl.DataFrame]:
    """The fields in which a kernel has one limit, each with its words, as ``kernel-limit`` decides."""
    below, above = (0.0, low_pct), (high_pct, 100.0)
    fields = (
        ("latency", below, below),
        ("computing", above, below),
        ("memory", below, above),
        ("both", above, above),
    )
    frames = [
        rows("main", "heat", "field", [x[0]], x_end=[x[1]], low=[y[0]], high=[y[1]], y=[TINT])
        for _, x, y in fields
    ]
    return frames + [
        rows("main", "label", f"limited by {words}", [x[0]], y=[y[1] - WORDS_BELOW]) for words, x, y in fields
    ]
