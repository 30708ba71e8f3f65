"""Exposed communication: collectives that run while nothing is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.finding import Effect, Finding
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.exposed import CommTime, comm_time
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class ExposedComm(Pass):
    """Share of the time in which collectives run and no computation hides them."""

    code: ClassVar[str] = "exposed-comm"
    title: ClassVar[str] = "Exposed communication"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="Collectives between ranks run while the device computes nothing, so the step is longer by that time. Part of a collective's time may be waiting for a slower rank, which is not communication.",
        rule="Exposed is the union of collective kernels minus the union of all other kernels of the device. With traces of several ranks the collectives are matched and the part before the last rank "
        "arrived is waiting; what remains is moving. The verdict is on moving where it is known (confirmed), else on all of it (possible). Warning from warn_pct of the span, critical from critical_pct.",
        abstains="Without device activity in the trace; refuted where no kernel of a collective is recorded.",
        confused_with="Waiting for a straggler inside a collective, which looks the same in the trace of one rank; collectives that overlap with computation and cost nothing.",
        remedies=(
            "Overlap with the backward pass: DDP buckets (bucket_cap_mb), FSDP prefetch (backward_prefetch), gradient accumulation with no_sync().",
            "Send less: bf16 gradients, hierarchical or sharded collectives.",
            "Check the fabric: NCCL_DEBUG=INFO shows the ring and the transport; compare the bus bandwidth with the link's.",
        ),
        sources=(
            "AMD-AGI/TraceLens: exposed communication above 5 %; torch-tb-profiler: communication above 10 % of the step; xprof: collectives 3 % and 15 %",
        ),
    )

    warn_pct: float = threshold(
        10.0, "exposed share of the span that is a warning", unit="%", source="torch-tb-profiler"
    )
    critical_pct: float = threshold(30.0, "exposed share of the span that is critical", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device that takes part in collectives."""
        if not view.trace.devices:
            yield abstained(self, view, "Not assessable: the trace holds no GPU activity.", NO_DEVICE)
            return
        talking = [d for d in view.trace.devices if len(d.of_lanes("comm"))]
        if not talking:
            yield refuted(self, view, "The trace holds no kernel of a collective.", {"collectives": 0})
        for device in talking:
            yield self._of(view, device, comm_time(device, view.trace.collectives))

    def _of(self, view: RunView, device: DeviceTrace, comm: CommTime) -> Finding:
        span = max(device.span_ns, 1)
        lost = comm.exposed_ns if comm.moving_ns is None else comm.moving_ns
        share = 100.0 * lost / span
        values = {
            "collectives": comm.collectives,
            "comm_ns": comm.total_ns,
            "exposed_ns": comm.exposed_ns,
            "exposed_pct": 100.0 * comm.exposed_ns / span,
            "waiting_ns": comm.waiting_ns,
            "moving_ns": comm.moving_ns,
            "span_ns": device.span_ns,
            "hidden_pct": 100.0 * (1 - comm.exposed_ns / max(comm.total_ns, 1)),
        }
        if share < self.warn_pct:
            title = f"{device_name(device)}: exposed communication takes {percent(share)} of the time."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        what = "collectives run with nothing to hide them"
        known = comm.moving_ns is not None
        apart = (
            f", waiting for other ranks left out ({span_time(comm.waiting_ns or 0)})"
            if known
            else ", waiting for other ranks included"
        )
        title = (
            f"{device_name(device)}: {what} {percent(share)} of {span_time(device.span_ns)} "
            f"({count(comm.collectives, 'collective')}{apart})."
        )
        return about_device(
            self,
            view,
            device,
            ("confirmed" if known else "possible", "critical" if share >= self.critical_pct else "warning"),
            title=title,
            effect=Effect(
                value=share,
                unit="% of the span in exposed communication",
                method="difference of unions, exact",
            ),
            advice=self.explain.remedies,
            wasted_gpu_s=lost / 1e9,
            values=values,
        )
