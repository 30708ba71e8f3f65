"""Fragmentation: memory that the allocator holds and cannot use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.counters.memory import device_label, device_memory, gib
from afterrun.analyzer.counters.series import CounterSeries, counter_series
from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import count, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained
from afterrun.analyzer.view import RunView

RETRIES = "alloc_retries"


@dataclass(frozen=True)
class Fragmentation(Pass):
    """Reserved against allocated memory of the framework's allocator, and its retries."""

    code: ClassVar[str] = "fragmentation"
    title: ClassVar[str] = "Fragmented memory"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The allocator holds much more memory than tensors use, in pieces that do not fit the next request. Near the limit it frees everything and asks again (cudaMalloc retries), which is slow, or fails.",
        rule="At the peak of reserved memory: 1 - allocated / reserved of at least frag_pct, a possible warning when reserved is at least near_pct of the device or retries are recorded, else information.",
        abstains="Without allocated and reserved memory of the allocator (a memory snapshot, memory_summary, or memory events of a trace).",
        confused_with="A pool that was filled once by a peak and is reused; memory of other processes.",
        remedies=(
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
            "Keep shapes few: pad or bucket sequences, so that freed blocks fit again.",
            "Call torch.cuda.empty_cache() once between phases of different shapes, never in every step.",
        ),
        sources=("PyTorch documentation: CUDA semantics, memory management",),
    )

    frag_pct: float = threshold(30.0, "unused part of the reserved memory at its peak", unit="%")
    near_pct: float = threshold(80.0, "reserved memory over the device from which it is a warning", unit="%")
    min_reserved_mib: float = threshold(256.0, "pools smaller than this are not judged", unit="MiB")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        samples = view.tables.samples
        allocated = {
            (s.rank, s.host, s.device, s.source): s for s in counter_series(samples, "mem_alloc_bytes")
        }
        retries = {(s.rank, s.host, s.device): s.value.max() for s in counter_series(samples, RETRIES)}
        total = {m.used.device: m.total_bytes for m in device_memory(samples)}
        told = 0
        for reserved in counter_series(samples, "mem_reserved_bytes"):
            used = allocated.get((reserved.rank, reserved.host, reserved.device, reserved.source))
            if used is None or reserved.value.max() < self.min_reserved_mib * 2**20:
                continue
            told += 1
            again = float(retries.get((reserved.rank, reserved.host, reserved.device), 0.0))
            yield self._of(view, reserved, used, total.get(reserved.device), again)
        if not told:
            missing = ("allocated and reserved memory of the allocator",)
            title = "Not assessable: what the allocator holds and uses is not recorded."
            yield abstained(self, view, title, missing)

    def _of(
        self, view: RunView, reserved: CounterSeries, used: CounterSeries, total: float | None, retries: float
    ) -> Finding:
        at = int(reserved.value.argmax())
        held = float(reserved.value[at])
        allocated = float(used.value[_nearest(used, reserved, at)])
        share = 100.0 * max(1.0 - allocated / held, 0.0)
        full = None if not total else 100.0 * held / total
        values: dict[str, Any] = {
            "reserved_bytes": held,
            "allocated_bytes": allocated,
            "unused_pct": share,
            "reserved_of_device_pct": full,
            "retries": retries,
        }
        apart = share >= self.frag_pct
        pressed = retries > 0 or (full is not None and full >= self.near_pct)
        again = f" after {count(int(retries), 'retry', 'retries')} of cudaMalloc" if retries else ""
        title = f"{device_label(reserved)}: {percent(share)} of the {gib(held)} that the allocator holds at its peak is not in use{again}."
        return Finding(
            code=self.code,
            status="possible" if apart else "refuted",
            severity="warning" if apart and pressed else "info",
            run=view.name,
            rank=reserved.rank,
            where=Where(
                t_start_ns=None if reserved.t_ns is None else int(reserved.t_ns[at]), device=reserved.device
            ),
            title=title,
            effect=Effect(
                value=share, unit="% of the reserved memory unused at its peak", method="one sample"
            ),
            evidence=(
                Evidence(
                    source=reserved.source,
                    tag=reserved.counter,
                    value=held,
                    note="reserved at its peak, bytes",
                ),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies if apart else (),
            values=jsonable(values),
        )


def _nearest(used: CounterSeries, reserved: CounterSeries, at: int) -> int:
    """The sample of ``used`` that belongs to sample ``at`` of ``reserved``."""
    if used.t_ns is None or reserved.t_ns is None:
        return min(at, len(used) - 1)
    return int(np.abs(used.t_ns - reserved.t_ns[at]).argmin())
