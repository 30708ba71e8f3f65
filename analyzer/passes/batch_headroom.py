"""Batch headroom: memory that a larger batch could use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.counters.memory import DeviceMemory, device_label, device_memory, gib
from afterrun.analyzer.counters.series import steady
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class BatchHeadroom(Pass):
    """Whether a device had room for a larger batch throughout."""

    code: ClassVar[str] = "batch-headroom"
    title: ClassVar[str] = "Room for a larger batch"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="A good part of the device's memory was never used. A larger batch, or less recomputation, could use it.",
        rule="The 95 % quantile of used memory over the steady part stays below used_pct of the device. The batch could grow at least by (safe_pct x total) / used, for what the model itself takes does not grow with the batch. Information only.",
        abstains="Without samples of used and total memory.",
        confused_with="A batch that is small on purpose (generalisation, a schedule tuned to it); memory that a later phase needs.",
        remedies=(
            "Raise the batch size and scale the learning rate; or switch activation checkpointing off, which costs time.",
            "Keep the batch and use a smaller device, or share it.",
        ),
        sources=("SageMaker Debugger, BatchSize: 95 % quantiles of CPU, GPU and memory below 70 %",),
    )

    used_pct: float = threshold(
        70.0, "used memory below which there is room", unit="%", source="SageMaker Debugger"
    )
    safe_pct: float = threshold(92.0, "share of the device that a batch may fill", unit="%", source="TraceML")
    min_samples: int = threshold(20, "fewer samples are not judged", unit="samples")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device in use."""
        known = [m for m in device_memory(view.tables.samples) if m.total_bytes]
        told = 0
        for m in known:
            found = self._of(view, m, m.total_bytes or 0.0)
            if found is not None:
                told += 1
                yield found
        if not told:
            missing = ("samples of used and total memory of a device in use",)
            yield abstained(
                self, view, "Not assessable: too little is recorded of used and total memory.", missing
            )

    def _of(self, view: RunView, m: DeviceMemory, total: float) -> Finding | None:
        work = steady(m.used, 0.5 * m.peak)
        if work is None or len(work) < self.min_samples:
            return None
        used = work.quantile(0.95)
        share = 100.0 * used / total
        ratio = self.safe_pct / 100 * total / used if used else None
        room = share < self.used_pct
        label = device_label(m.used)
        title = (
            f"{label} used {percent(share)} of its {gib(total)}: the batch could grow about {number(ratio, 2)} times."
            if room
            else f"{label} used {percent(share)} of its {gib(total)}."
        )
        return Finding(
            code=self.code,
            status="possible" if room else "refuted",
            severity="info",
            run=view.name,
            rank=m.used.rank,
            where=Where(device=m.used.device),
            title=title,
            effect=Effect(
                value=share, unit="% of the device's memory in use", method="95 % quantile over time"
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies if room else (),
            values=jsonable(
                {"used_p95_bytes": used, "total_bytes": total, "used_pct": share, "batch_ratio": ratio}
            ),
        )
