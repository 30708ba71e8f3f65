"""What limits each profiled kernel: computing, memory, latency, or the launch itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from afterrun.analyzer.finding import Effect, Evidence, Finding, jsonable
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.words import short_name
from afterrun.analyzer.verdicts import abstained
from afterrun.analyzer.view import RunView

COMPUTE = (
    "Compute (SM) Throughput",
    "SM [%]",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
)
MEMORY = (
    "Memory Throughput",
    "Memory [%]",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)
DURATION = ("Duration", "gpu__time_duration.sum", "gpu__time_duration.avg")
"""Names of the details page and of the raw page for the same quantity, in order of preference."""

LISTED = 10

_WORDS = {
    "compute": "limited by computing",
    "memory": "limited by memory bandwidth",
    "latency": "limited by latency (neither units nor memory are busy)",
    "both": "near the limits of computing and memory",
    "balanced": "balanced",
    "launch": "too short to fill the device",
}


@dataclass(frozen=True)
class KernelLimit(Pass):
    """Speed-of-light classes of the kernels that Nsight Compute profiled."""

    code: ClassVar[str] = "kernel-limit"
    title: ClassVar[str] = "What limits kernels"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("kernels",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="For each profiled kernel, which resource it uses nearest to its peak, and so what a faster version would have to change.",
        rule="Compute and memory throughput as shares of their peaks (speed of light): above high_pct and the other below low_pct is computing or memory, both below low_pct latency, both above high_pct both, else balanced; "
        "shorter than launch_ns is launch. Kernels are weighed by their duration under the profiler, which is no wall-clock time: ncu replays and serialises.",
        abstains="Without compute and memory throughput of the kernels (section SpeedOfLight of ncu).",
        confused_with="Durations of a trace: ncu locks clocks and flushes caches; idle time, which ncu cannot show.",
        remedies=(
            "Memory: fuse with neighbours, keep data in shared memory, use narrower types and coalesced access.",
            "Latency: more parallelism (occupancy, larger tiles per launch), fewer dependent instructions.",
            "Computing: tensor cores, lower precision, a better algorithm.",
        ),
        sources=(
            "TensorRT-LLM performance skill for Nsight Compute: 60 and 40 %",
            "NVIDIA Nsight Compute, kernel profiling guide: speed of light",
        ),
    )

    high_pct: float = threshold(60.0, "share of the peak from which a resource is the limit", unit="%")
    low_pct: float = threshold(40.0, "share of the peak below which a resource is not the limit", unit="%")
    launch_ns: float = threshold(10_000.0, "a kernel below this is mostly launch", unit="ns")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run: kernels by class, weighed by duration."""
        table = sol_table(view.tables.kernels)
        known = table.filter(pl.col("compute_pct").is_not_null() & pl.col("memory_pct").is_not_null())
        if known.is_empty():
            missing = ("compute and memory throughput of kernels (ncu, section SpeedOfLight)",)
            found = {"launches": len(table)}
            title = "Not assessable: no throughput of kernels is recorded."
            yield abstained(self, view, title, missing, found)
            return
        rows = known.with_columns(
            pl.Series(
                "limit",
                [
                    self._limit(c, m, d)
                    for c, m, d in known.select("compute_pct", "memory_pct", "duration_ns").iter_rows()
                ],
            )
        )
        weight = (
            pl.col("duration_ns").fill_null(0).sum()
            if rows["duration_ns"].null_count() < len(rows)
            else pl.len()
        )
        by_limit = (
            rows.group_by("limit")
            .agg(weight.alias("weight"), pl.len().alias("launches"))
            .sort("weight", "limit", descending=True)
        )
        main = by_limit.row(0, named=True)
        total = float(by_limit["weight"].sum()) or 1.0
        share = 100.0 * main["weight"] / total
        top = rows.sort("duration_ns", descending=True, nulls_last=True).head(LISTED)
        first = top.row(0, named=True)
        length = "" if first["duration_ns"] is None else f" ({span_time(first['duration_ns'])})"
        values: dict[str, Any] = {
            "launches": len(table),
            "assessed": len(rows),
            "by_limit": by_limit.to_dicts(),
            "longest": top.to_dicts(),
        }
        yield Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            title=f"{percent(share)} of the profiled kernel time is {_WORDS[main['limit']]} ({count(len(rows), 'launch', 'launches')}); "
            f"the longest, {short_name(first['name'])}{length}, is {_WORDS[first['limit']]}.",
            effect=Effect(
                value=share,
                unit=f"% of the profiled kernel time {_WORDS[main['limit']]}",
                method="speed of light",
            ),
            evidence=(
                Evidence(
                    source=first["source"],
                    tag=first["name"][:120],
                    value=first["compute_pct"],
                    note="compute throughput, % of peak",
                ),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )

    def _limit(self, compute: float, memory: float, duration_ns: float | None) -> str:
        if compute < self.low_pct and memory < self.low_pct:
            return "launch" if duration_ns is not None and duration_ns < self.launch_ns else "latency"
        if compute > self.high_pct and memory > self.high_pct:
            return "both"
        if compute > self.high_pct and memory < self.low_pct:
            return "compute"
        return "memory" if memory > self.high_pct and compute < self.low_pct else "balanced"


def sol_table(kernels: pl.DataFrame) -> pl.DataFrame:
    """One row a launch: ``source``, ``name``, ``launch``, ``compute_pct``, ``memory_pct``, ``duration_ns``; null where not recorded."""
    metric = pl.col("metric").cast(pl.String)

    def first_of(names: tuple[str, ...], alias: str) -> pl.Expr:
        return pl.coalesce(pl.col("value").filter(metric == name).first() for name in names).alias(alias)

    return (
        kernels.group_by("source", "launch", "name", maintain_order=True)
        .agg(
            first_of(COMPUTE, "compute_pct"),
            first_of(MEMORY, "memory_pct"),
            first_of(DURATION, "duration_ns"),
        )
        .with_columns(pl.col("source", "name").cast(pl.String))
    )
