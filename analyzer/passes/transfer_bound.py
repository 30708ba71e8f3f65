"""Transfer bound: copies between host and device that no computation hides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.finding import Effect, Finding
from afterrun.analyzer.prose import percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.exposed import copy_time
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class TransferBound(Pass):
    """Share of the time in which a device copies and computes nothing, or waits for the host to wait on a copy."""

    code: ClassVar[str] = "transfer-bound"
    title: ClassVar[str] = "Bound by copies"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The device spends a notable part of its time copying between host and device while no kernel runs. Utilisation counts that as busy, so it shows in no idle figure.",
        rule="Exposed copies are the union of copies of at least 64 KiB between host and device minus the union of kernels, copies inside checkpoint and evaluation ranges left out. "
        "Added to it is idle time in which the host blocked on such a copy. Warning from warn_pct of the span, critical from critical_pct.",
        abstains="Without device activity in the trace.",
        confused_with="A data-loading stall, in which nothing is copied because no batch is ready; the saving of checkpoints; values read back by .item(), which are too small to cost by size.",
        remedies=(
            "Pin host memory (pin_memory=True in the loader) and copy with non_blocking=True: pageable memory is staged and blocks the host.",
            "Prefetch the next batch to the device on a side stream while the current one computes.",
            "Send less: uint8 images normalised on the device, smaller dtypes, only the columns that the model uses.",
        ),
        sources=(
            "xprof, input pipeline analysis: host-to-device transfer above 10 % of the input time is significant",
            "NVIDIA CUDA C++ Best Practices Guide, section 10.1: pinned memory and overlap of transfers",
        ),
    )

    warn_pct: float = threshold(15.0, "exposed copies as a share of the span that are a warning", unit="%")
    critical_pct: float = threshold(40.0, "exposed copies as a share of the span that are critical", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        if not view.trace.devices:
            yield abstained(self, view, "Not assessable: the trace holds no GPU activity.", NO_DEVICE)
        for device in view.trace.devices:
            yield self._of(view, device)

    def _of(self, view: RunView, device: DeviceTrace) -> Finding:
        copies = copy_time(device, view.trace.host(device))
        blocked = view.trace.idle(device).by_cause_ns.get("memcpy", 0)
        lost = copies.exposed_ns + blocked
        share = 100.0 * lost / max(device.span_ns, 1)
        kinds = [name for name, ns in copies.by_name_ns.items() if ns]
        values = {
            "exposed_ns": copies.exposed_ns,
            "blocked_idle_ns": blocked,
            "copies_ns": copies.total_ns,
            "bytes": copies.bytes,
            "exposed_pct": share,
            "span_ns": device.span_ns,
            "by_copy_ns": copies.by_name_ns,
        }
        if share < self.warn_pct:
            title = f"{device_name(device)}: copies that nothing hides take {percent(share)} of the time."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        title = (
            f"{device_name(device)} spends {percent(share)} of {span_time(device.span_ns)} on copies that no kernel hides"
            f"{f', most of it {kinds[0]}' if kinds else ''} ({span_time(lost)})."
        )
        return about_device(
            self,
            view,
            device,
            ("confirmed", "critical" if share >= self.critical_pct else "warning"),
            title=title,
            effect=Effect(
                value=share, unit="% of the span in exposed copies", method="difference of unions, exact"
            ),
            advice=self.explain.remedies,
            wasted_gpu_s=lost / 1e9,
            values=values,
        )
