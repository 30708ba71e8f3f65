"""Low utilisation: devices that are held but little used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from afterrun.analyzer.counters.memory import device_memory, gib
from afterrun.analyzer.counters.series import CounterSeries, device_series, steady
from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status, Where, jsonable
from afterrun.analyzer.prose import count, number, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.words import CAUSE_WORDS, device_name
from afterrun.analyzer.verdicts import about_device, abstained
from afterrun.analyzer.view import RunView

UNNAMED = ("other", "unobserved")
"""Causes of idle time that no pass of its own speaks of."""


@dataclass(frozen=True)
class LowUtilization(Pass):
    """Sampled utilisation over the steady part of a job; in a trace, idle time that no named cause explains."""

    code: ClassVar[str] = "low-utilization"
    title: ClassVar[str] = "Low utilisation"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ("gpu-idle",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="A device that the job holds is used for a small part of the time.",
        rule="From counters: utilization.gpu is the share of the last sampling period in which at least one kernel ran, an upper bound of use. Over the steady part (first to last sample of at least start_pct), weighted by time, "
        "a mean below low_pct is possible, for samples say that a device was little used and not that the job lost by it; critical below very_low_pct when it also stays below low_pct in 95 % of the time. A device that never reaches "
        "start_pct is unused; beside one that works it is told, as a warning where at least held_bytes of its memory are in use. From a trace: idle share of at least trace_idle_pct with most of it in Python or unobserved host work; information where the trace is shorter than min_span_ms.",
        abstains="Without utilisation samples and without GPU activity in a trace; for a device of a trace whose capture missed steps (gpu-idle).",
        confused_with="Waiting for collectives, whose kernels count as use; a sampler slower than the stalls; a second device that the job never meant to use.",
        remedies=(
            "Take a trace of a few steps: afterrun names the host's reason for each gap.",
            "Look at memory and power beside it: memory full and use low speaks for the loader or tiny kernels, use high and power low for waiting on the network.",
            "Raise the batch size where memory allows, or put two jobs on one device.",
        ),
        sources=(
            "NVML documentation: nvmlUtilization_t, share of time in which one or more kernels ran",
            "SageMaker Debugger, LowGPUUtilization: 95 % quantile below 70; TraceML: below 30 % low, to 70 % moderate",
        ),
    )

    low_pct: float = threshold(
        70.0, "utilisation below which a device counts as little used", unit="%", source="SageMaker Debugger"
    )
    very_low_pct: float = threshold(
        30.0, "mean utilisation below which the finding is critical", unit="%", source="TraceML"
    )
    start_pct: float = threshold(5.0, "utilisation from which a device counts as in use", unit="%")
    min_samples: int = threshold(20, "fewer samples are not judged", unit="samples")
    min_unused: int = threshold(10, "samples of a device from which 'never used' is said", unit="samples")
    held_bytes: float = threshold(
        2.0**30, "memory in use from which something holds a device that is never used", unit="bytes"
    )
    trace_idle_pct: float = threshold(30.0, "idle share of a trace without a named cause", unit="%")
    min_span_ms: float = threshold(
        1.0, "a shorter stretch of activity in a trace is told as information only", unit="ms"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device with samples, and one a device of a trace."""
        series = device_series(view.tables.samples, "gpu_util_pct")
        busiest = max((s for s in series if len(s) >= self.min_unused), key=lambda s: s.mean, default=None)
        for one in series:
            yield self._of_samples(view, one, busiest)
        for device in view.trace.devices:
            yield self._of_trace(view, device)
        if not series and not view.trace.devices:
            missing = ("samples of GPU utilisation (nvidia-smi, DCGM, W&B system metrics), or a trace",)
            yield abstained(self, view, "Not assessable: no utilisation is recorded.", missing)

    def _of_samples(self, view: RunView, s: CounterSeries, busiest: CounterSeries | None) -> Finding:
        name = "GPU" if s.device is None else f"GPU {s.device}"
        work = steady(s, self.start_pct)
        if (
            work is None
            and busiest is not None
            and busiest.mean >= self.low_pct
            and len(s) >= self.min_unused
        ):
            return self._unused(view, s, busiest)
        if work is None or len(work) < self.min_samples:
            idle = work is None and len(s) >= self.min_samples
            title = (
                f"{name} was never used in {count(len(s), 'sample')} (below {percent(self.start_pct)})."
                if idle
                else f"{name}: too few samples of a working device to judge ({0 if work is None else len(work)})."
            )
            return self._finding(
                view, s, ("refuted" if idle else "abstained", "info"), title, {"samples": len(s)}
            )
        mean, p5, p95 = work.mean, work.quantile(0.05), work.quantile(0.95)
        values = {
            "mean_pct": mean,
            "p5_pct": p5,
            "p50_pct": work.quantile(0.5),
            "p95_pct": p95,
            "samples": len(work),
            "interval_s": work.interval_s,
            "seconds": float(work.seconds[-1]),
        }
        if mean >= self.low_pct:
            title = f"{name} was in use {percent(mean)} of the time at most."
            return self._finding(view, s, ("refuted", "info"), title, values)
        severity: Severity = "critical" if mean < self.very_low_pct and p95 < self.low_pct else "warning"
        swing = f", between {number(p5, 2)} and {number(p95, 2)} %" if p95 - p5 > 20 else ""
        seconds = "" if work.interval_s is None else f" of {span_time(work.seconds[-1] * 1e9)}"
        title = f"{name} was in use at most {percent(mean)}{seconds} (sampled utilisation{swing})."
        return self._finding(view, s, ("possible", severity), title, values)

    def _unused(self, view: RunView, s: CounterSeries, busiest: CounterSeries) -> Finding:
        """A device that was never used beside one that worked: a warning only where something holds its memory."""
        held = next(
            (
                m
                for m in device_memory(view.tables.samples)
                if m.used.device == s.device and m.used.host == s.host
            ),
            None,
        )
        at_work = "another" if busiest.device is None else f"GPU {busiest.device}"
        title = (
            f"GPU {s.device} was never used while {at_work} was in use {percent(busiest.mean)} of the time"
        )
        values = {
            "mean_pct": s.mean,
            "busiest_device": busiest.device,
            "busiest_mean_pct": busiest.mean,
            "held_bytes": None if held is None else held.peak,
            "samples": len(s),
            "interval_s": s.interval_s,
            "seconds": float(s.seconds[-1]),
        }
        if held is None or held.peak < self.held_bytes:
            memory = "" if held is None else f", with {gib(held.peak)} of its memory in use"
            return self._finding(
                view,
                s,
                ("possible", "info"),
                f"{title}{memory}: perhaps the job never meant to use it.",
                values,
            )
        return self._finding(
            view,
            s,
            ("possible", "warning"),
            f"{title}, though {gib(held.peak)} of its memory were held.",
            values,
        )

    def _finding(
        self,
        view: RunView,
        s: CounterSeries,
        verdict: tuple[Status, Severity],
        title: str,
        values: dict[str, Any],
    ) -> Finding:
        alarm = verdict[0] in ("confirmed", "possible") and verdict[1] != "info"
        lost = values["seconds"] * (1 - values["mean_pct"] / 100) if alarm and values["interval_s"] else None
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
            effect=Effect(value=values.get("mean_pct"), unit="% mean utilisation", method="weighted by time"),
            evidence=(
                Evidence(
                    source=s.source,
                    tag=s.counter,
                    value=values.get("mean_pct"),
                    note="mean over the steady part",
                ),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=lost,
            advice=self.explain.remedies if alarm else (),
            values=jsonable(values),
            missing=("more samples of a working device",) if verdict[0] == "abstained" else (),
        )

    def _of_trace(self, view: RunView, device: DeviceTrace) -> Finding:
        by_cause = view.trace.idle(device).by_cause_ns
        span = max(device.span_ns, 1)
        idle_pct = 100.0 * (device.idle_ns - by_cause.get("kernel_gap", 0)) / span
        unnamed = sum(by_cause.get(name, 0) for name in UNNAMED)
        values = {
            "busy_pct": 100 - 100.0 * device.idle_ns / span,
            "unnamed_idle_ns": unnamed,
            "span_ns": device.span_ns,
        }
        if _capture_missed_steps(view, device):
            title = f"{device_name(device)}: the capture missed steps, so how much of the trace it was busy is not known."
            missing = ("GPU activity of all steps",)
            return about_device(
                self, view, device, ("abstained", "info"), title=title, values=values, missing=missing
            )
        if idle_pct < self.trace_idle_pct or 2 * unnamed < device.idle_ns:
            title = f"{device_name(device)} was busy {percent(values['busy_pct'])} of the trace, or its idle time has a named cause."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        main = max(UNNAMED, key=lambda name: by_cause.get(name, 0))
        severity: Severity = "critical" if values["busy_pct"] < self.very_low_pct else "warning"
        if device.span_ns < self.min_span_ms * 1e6:
            severity = "info"
        title = f"{device_name(device)} was busy {percent(values['busy_pct'])} of {span_time(device.span_ns)}; most of the rest is {CAUSE_WORDS[main]}."
        return about_device(
            self,
            view,
            device,
            ("confirmed", severity),
            title=title,
            effect=Effect(
                value=values["busy_pct"], unit="% of the span busy", method="union of all activity, exact"
            ),
            advice=self.explain.remedies,
            wasted_gpu_s=unnamed / 1e9,
            values=values,
        )


def _capture_missed_steps(view: RunView, device: DeviceTrace) -> bool:
    """Whether ``gpu-idle`` does not rely on the idle share of this device."""
    return any(
        f.status == "possible"
        and (f.rank, f.where.device, f.where.t_start_ns) == (device.rank, device.device, device.low_ns)
        for f in view.earlier.get("gpu-idle", ())
    )
