"""Memory limit: devices that were nearly full."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.counters.memory import DeviceMemory, device_label, device_memory, gib
from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status, Where, jsonable
from afterrun.analyzer.prose import percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class MemoryLimit(Pass):
    """How near to its capacity the memory of each device came."""

    code: ClassVar[str] = "memory-limit"
    title: ClassVar[str] = "Memory nearly full"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The memory of a device was nearly full: one longer sequence or one fragmented moment more, and the run ends out of memory.",
        rule="Peak of used memory over the total: information from near_pct, possible warning from warn_pct. It stays possible, for caching allocators and JAX's preallocation hold memory that they do not need.",
        abstains="Without samples of used and total memory.",
        confused_with="Memory that a caching allocator has reserved and not allocated; preallocation (XLA_PYTHON_CLIENT_MEM_FRACTION).",
        remedies=(
            "Compare reserved with allocated memory (torch.cuda.memory_summary): the difference can be given back.",
            "Checkpoint activations, shard optimizer states, or shorten the longest sequences.",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lowers fragmentation.",
        ),
        sources=("TraceML: 92 and 97 % of the device", "torch-tb-profiler: above 90 % of the memory"),
    )

    near_pct: float = threshold(92.0, "peak over total from which it is told", unit="%", source="TraceML")
    warn_pct: float = threshold(97.0, "peak over total that is a warning", unit="%", source="TraceML")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        known = [m for m in device_memory(view.tables.samples) if m.peak_pct is not None]
        for m in known:
            yield self._of(view, m, m.peak_pct or 0.0)
        if not known:
            missing = ("samples of used and total device memory",)
            yield abstained(self, view, "Not assessable: used or total memory is not recorded.", missing)

    def _of(self, view: RunView, m: DeviceMemory, peak: float) -> Finding:
        status: Status = "refuted" if peak < self.near_pct else "possible"
        severity: Severity = "warning" if peak >= self.warn_pct else "info"
        at = int(m.used.value.argmax())
        t = None if m.used.t_ns is None else int(m.used.t_ns[at])
        of = f"{percent(peak)} of its {gib(m.total_bytes or 0.0)}"
        return Finding(
            code=self.code,
            status=status,
            severity=severity,
            run=view.name,
            rank=m.used.rank,
            where=Where(t_start_ns=t, t_end_ns=t, device=m.used.device),
            title=f"{device_label(m.used)} used {of} at most.",
            effect=Effect(value=peak, unit="% of the device's memory at peak", method="maximum of samples"),
            evidence=(Evidence(source=m.used.source, tag=m.used.counter, value=m.peak, note="peak, bytes"),),
            parameters=self.parameters(),
            advice=() if status == "refuted" else self.explain.remedies,
            values=jsonable(
                {"peak_bytes": m.peak, "total_bytes": m.total_bytes, "peak_pct": peak, "samples": len(m.used)}
            ),
        )
