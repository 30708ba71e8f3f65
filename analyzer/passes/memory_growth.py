"""Memory growth: used memory whose floor rises to the end of the record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from afterrun.analyzer.counters.growth import BLOCKS, MIN_BLOCK, Growth, growth
from afterrun.analyzer.counters.memory import device_label, device_memory, gib
from afterrun.analyzer.counters.series import CounterSeries, counter_series
from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status, Where, jsonable
from afterrun.analyzer.prose import duration, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained
from afterrun.analyzer.view import RunView

COUNTERS = ("mem_used_bytes", "mem_alloc_bytes", "rss_bytes", "host_mem_used_bytes")


@dataclass(frozen=True)
class MemoryGrowth(Pass):
    """Whether memory of a device or of the host leaks."""

    code: ClassVar[str] = "memory-growth"
    title: ClassVar[str] = "Growing memory"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The memory that remains after frees rises through the whole record. Left alone it ends in an out-of-memory error.",
        rule=f"The first tenth is left out. {BLOCKS} equal stretches give their minimum (the floor after frees); the floors must rise by a one-sided rank test with p < p_max, with Sen's 99 % interval above zero, by more than rise_pct of the device's "
        "memory and rise_of_used_pct of the floor. When the slope of the last third is at least late_ratio of the whole slope, the growth goes on: confirmed, with the time that is left. Else it slows down: possible, information.",
        abstains="Without samples of memory, or with too few of them.",
        confused_with="A saw of allocations and frees, whose floor stays; a cache or pool that fills and then stops; longer sequences or larger batches late in the run.",
        remedies=(
            "Look for tensors kept across steps: losses summed without .item() or .detach(), lists of outputs, hooks.",
            "On the host: datasets that hold Python objects are copied page by page into every worker; use arrays.",
            "Take two memory snapshots some steps apart (torch.cuda.memory._record_memory_history) and compare.",
        ),
        sources=(
            "SageMaker Debugger, GPUMemoryIncrease; TraceML, creeping memory",
            "pytorch issue 13246: copy-on-read of Python objects in loader workers",
        ),
    )

    p_max: float = threshold(0.001, "one-sided p value of the rank test on floors", unit="")
    rise_pct: float = threshold(1.0, "rise of the floor over the memory of the device", unit="%")
    rise_of_used_pct: float = threshold(2.0, "rise of the floor over the floor itself", unit="%")
    late_ratio: float = threshold(
        0.7, "slope of the last third over the whole slope from which growth goes on", unit=""
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a series of memory."""
        total = {(m.used.host, m.used.device): m.total_bytes for m in device_memory(view.tables.samples)}
        series = counter_series(view.tables.samples, *COUNTERS)
        judged = 0
        for s in series:
            found = growth(s)
            if found is not None:
                judged += 1
                yield self._of(
                    view, s, found, total.get((s.host, s.device)) if s.device is not None else None
                )
        if not judged:
            few = f"at least {BLOCKS * MIN_BLOCK} samples of used memory of one device"
            yield abstained(
                self, view, "Not assessable: too few samples of memory.", (few,), {"series": len(series)}
            )

    def _of(self, view: RunView, s: CounterSeries, g: Growth, total: float | None) -> Finding:
        label = device_label(s)
        floor = max(self.rise_pct / 100 * (total or 0.0), self.rise_of_used_pct / 100 * max(g.first, 0.0))
        rises = g.p < self.p_max and g.low_per_s > 0 and g.rise > floor
        left_s = (total - g.last) / g.per_s if rises and total and s.interval_s and g.per_s > 0 else None
        values: dict[str, Any] = {
            "counter": s.counter,
            "floor_first_bytes": g.first,
            "floor_last_bytes": g.last,
            "rise_bytes": g.rise,
            "total_bytes": total,
            "bytes_per_s": g.per_s if s.interval_s else None,
            "late_ratio": g.late,
            "p": g.p,
            "samples": g.samples,
            "seconds_until_full": left_s,
        }
        if not rises:
            title = f"{s.counter} of {label} does not grow (floor {gib(g.first)} to {gib(g.last)})."
            return self._finding(view, s, ("refuted", "info"), title, values)
        more = f"{gib(g.first)} to {gib(g.last)} ({percent(100 * g.rise / max(g.first, 1.0))})"
        if g.late < self.late_ratio:
            title = f"{s.counter} of {label} grew from {more} and slows down: a cache that fills, rather than a leak."
            return self._finding(view, s, ("possible", "info"), title, values)
        left = f"; at this rate the device is full in {duration(left_s)}" if left_s is not None else ""
        title = f"{s.counter} of {label} grows to the end of the record, from {more}{left}."
        return self._finding(view, s, ("confirmed", "warning"), title, values)

    def _finding(
        self,
        view: RunView,
        s: CounterSeries,
        verdict: tuple[Status, Severity],
        title: str,
        values: dict[str, Any],
    ) -> Finding:
        alarm = verdict == ("confirmed", "warning")
        rate = values["bytes_per_s"]
        return Finding(
            code=self.code,
            status=verdict[0],
            severity=verdict[1],
            run=view.name,
            rank=s.rank,
            where=Where(
                t_start_ns=None if s.t_ns is None else int(s.t_ns[0]),
                t_end_ns=None if s.t_ns is None else int(s.t_ns[-1]),
                device=s.device,
            ),
            title=title,
            effect=Effect(value=rate, unit="bytes/s", level=0.99, method="Theil-Sen slope of block minima")
            if rate is not None
            else None,
            evidence=(
                Evidence(
                    source=s.source,
                    tag=s.counter,
                    value=values["floor_first_bytes"],
                    note="floor at the start, bytes",
                ),
                Evidence(
                    source=s.source,
                    tag=s.counter,
                    value=values["floor_last_bytes"],
                    note="floor at the end, bytes",
                ),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies if alarm else (),
            values=jsonable(values),
        )
