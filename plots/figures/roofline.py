"""What limits each profiled kernel: computing against memory, as shares of their peaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.passes.kernel_limit import KernelLimit, sol_table
from afterrun.analyzer.prose import count, span_time
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
NAME_CHARS = 28


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
            rows("main", "shade", "compute", [limits.high_pct], x_end=[100.0]),
            rows(
                "main",
                "smooth",
                "bound",
                [0.0, limits.low_pct, limits.low_pct],
                y=[limits.low_pct, limits.low_pct, 0.0],
            ),
            rows("main", "dots", "kernel", table["compute_pct"].to_numpy(), y=table["memory_pct"].to_numpy()),
            rows("main", "best", "kernel", named["compute_pct"].to_numpy(), y=named["memory_pct"].to_numpy()),
        ]
        frames += [
            rows("main", "label", _words(k), [float(k["compute_pct"])], y=[float(k["memory_pct"])])
            for k in named.to_dicts()
        ]
        top = table.row(0, named=True)
        return Prepared(
            frame=stack(frames),
            title=run_title(view, "what limits the profiled kernels"),
            note=f"{count(len(table), 'launch', 'launches')} under ncu; below {limits.low_pct:g} % on both axes neither is the limit (latency)",
            alt=f"{count(len(table), 'launch', 'launches')}; the longest, {short_name(top['name'])}, uses {top['compute_pct']:.0f} % of the computing and {top['memory_pct']:.0f} % of the memory peak.",
            x=XAxis("computing, % of peak", 0.0, 100.0, whole=False),
            panels=(Panel("main", "memory, % of peak", 0.0, 100.0),),
            keys=(
                Key("dots", "train", "launch"),
                Key("best", "ink", "longest of its name"),
                Key("smooth", "quiet", "limited by latency below"),
                Key("shade", "compute", "limited by computing"),
            ),
            marks=notes_of(findings, self.codes),
            roles={"kernel": "train", "bound": "quiet", "compute": "compute"},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Dots between the bounds."""
        return paint(prepared, theme)


def _words(kernel: dict[str, object]) -> str:
    length = kernel["duration_ns"]
    name = display_name(short_name(str(kernel["name"])), NAME_CHARS)
    return f" {name}, {span_time(float(str(length)))}" if length is not None else f" {name}"
