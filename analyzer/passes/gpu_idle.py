"""GPU idle time: how much of a device's time nothing ran, and what the host was doing meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.idle import IDLE_CAUSES, Idle
from afterrun.analyzer.trace.steps import Steps
from afterrun.analyzer.trace.words import CAUSE_WORDS, device_name, short_name
from afterrun.analyzer.verdicts import about_device, abstained
from afterrun.analyzer.view import RunView

LISTED = 20
"""Longest gaps that a finding lists."""

_ADVICE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "dataloader": (
            "Raise num_workers and prefetch_factor, and keep workers alive (persistent_workers=True).",
            "Move decoding and augmentation off the critical path: cache, pre-decode, or do it on the GPU.",
        ),
        "sync": (
            "Look for .item(), .cpu(), print or logging of tensors in every step; read values back every N steps.",
            "Replace data-dependent control flow on the host (nonzero, boolean indexing) with masks.",
        ),
        "memcpy": (
            "Pin host memory (pin_memory=True) and copy with non_blocking=True.",
            "Copy the next batch on a side stream while the current one computes.",
        ),
        "launch": (
            "Capture the step in CUDA graphs, or compile it (torch.compile, mode='reduce-overhead').",
            "Fuse small operators and optimizers (fused or foreach), or raise the batch size.",
        ),
        "checkpoint": ("Write checkpoints asynchronously, or less often.",),
        "eval": ("Evaluate less often or on a subset; use a separate job for full evaluations.",),
        "compile": ("Warm up and cache compilation; keep shapes static so that nothing is compiled again.",),
        "gc": (
            "Call gc.freeze() after start-up and gc.collect() at a time of your choice, alike on all ranks.",
        ),
        "comm_wait": ("Look for the rank that arrives last at the barrier.",),
        "allocator": ("Keep allocation sizes stable; expandable_segments:True avoids cudaMalloc retries.",),
        "other": ("Move Python work between operators out of the step, or into the loader's workers.",),
        "unobserved": (
            "Profile again with the host in sight: with_stack=True, NVTX ranges, or nsys -t cuda,nvtx,osrt.",
        ),
        "kernel_gap": (
            "Nothing is lost on the host here; fuse kernels or use CUDA graphs to shorten the gaps.",
        ),
    }
)


@dataclass(frozen=True)
class GpuIdle(Pass):
    """Idle time of each device, gap by gap, with the host's reason."""

    code: ClassVar[str] = "gpu-idle"
    title: ClassVar[str] = "Idle GPU"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="Between the first and the last activity of a device nothing ran on it for a notable part of the time: no kernel, no copy, no graph. "
        "Each gap is charged to what the host did meanwhile.",
        rule="Busy is the union of kernels, copies, sets and graph replays of all streams of one device; what lies between is idle. For each gap: when the launch of the next activity had ended before the gap "
        "began, the work was queued and the time is kernel_gap; else the device had run dry, and each nanosecond up to that launch goes to one class of what the launching thread recorded, by precedence "
        "(checkpoint, eval, dataloader, comm_wait, compile, gc, allocator, memcpy, sync, launch), short holes to other, long ones to the operating-system calls inside them or to unobserved. "
        "A gap that begins in a blocking call is that call's, with its refill. The classes sum to the gap. Warning from warn_pct of the span, critical from critical_pct, not counting kernel_gap.",
        abstains="Without device activity in the trace (a CPU-only capture), which is neither 0 nor 100 % idle. Without launch calls the time is unobserved.",
        confused_with="Low sampled utilisation, which counts any period with one kernel as busy; gaps of one stream while another runs; the sum of kernel times, which counts overlap twice; "
        "a CUDA graph traced as a whole, whose kernels are not in the trace.",
        remedies=(
            "Start with the largest cause: it names the thread and the call.",
            "A ceiling of the gain is printed with each cause; gains of several causes do not add up.",
            "When most is unobserved, profile again with host ranges.",
        ),
        sources=(
            "NVIDIA-NeMo/Megatron-Bridge, skill for nsys analysis: three-way split of gaps (starved, queued, latency)",
            "AMD-AGI/TraceLens: idle above 15 % is flagged; TensorRT-LLM performance skill: GPU idle ratio above 30 %",
            "HolisticTraceAnalysis, breakdown of idle time: host wait, kernel wait, other",
        ),
    )

    info_pct: float = threshold(3.0, "idle share of the span below which nothing is said", unit="%")
    warn_pct: float = threshold(
        15.0, "removable idle share of the span that is a warning", unit="%", source="TraceLens"
    )
    critical_pct: float = threshold(
        30.0, "removable idle share of the span that is critical", unit="%", source="TensorRT-LLM"
    )
    min_span_ms: float = threshold(
        1.0, "a shorter stretch of activity is told as information only", unit="ms"
    )
    empty_steps_pct: float = threshold(
        20.0,
        "share of the marked steps without any GPU event from which the idle figure is not relied on",
        unit="%",
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device."""
        trace = view.trace
        if not trace.devices:
            title = (
                "No GPU activity is recorded in the trace: idle time is not assessable (neither 0 nor 100 %)."
            )
            yield abstained(self, view, title, ("kernels, copies or graph launches in the trace",))
            return
        for device in trace.devices:
            yield self._finding(view, device, trace.idle(device), trace.steps(device))

    def _finding(self, view: RunView, device: DeviceTrace, idle: Idle, steps: Steps | None) -> Finding:
        values = _values(device, idle, steps)
        empty = values["steps_without_gpu_events"]
        if empty and 100 * empty >= self.empty_steps_pct * values["steps"]:
            title = (
                f"{empty} of {count(values['steps'], 'step')} hold no event of {device_name(device)}: the capture missed them, "
                f"so its idle share ({percent(values['idle_pct'])}) is not reliable."
            )
            advice = ("Look at dropped records of the profiler and profile again with fewer steps.",)
            return self._of(view, device, values, ("possible", "warning"), (title, advice))
        main = values["main_cause"]
        if values["idle_pct"] < self.info_pct:
            title = f"{device_name(device)} was busy {percent(100 - values['idle_pct'])} of {span_time(device.span_ns)}."
            return self._of(view, device, values, ("refuted", "info"), (title, ()))
        said = (_title(device, values, main), _ADVICE[main])
        return self._of(view, device, values, ("confirmed", self._severity(values)), said)

    def _severity(self, values: Mapping[str, Any]) -> Severity:
        if values["span_ns"] < self.min_span_ms * 1e6:
            return "info"
        if values["removable_pct"] >= self.critical_pct:
            return "critical"
        return "warning" if values["removable_pct"] >= self.warn_pct else "info"

    def _of(
        self,
        view: RunView,
        device: DeviceTrace,
        values: dict[str, Any],
        verdict: tuple[Status, Severity],
        said: tuple[str, tuple[str, ...]],
    ) -> Finding:
        healthy = verdict[0] == "refuted"
        share = Effect(
            value=values["idle_pct"], unit="% of the span idle", method="union of all activity, exact"
        )
        return about_device(
            self,
            view,
            device,
            verdict,
            title=said[0],
            advice=said[1],
            effect=share,
            evidence=() if healthy else _evidence(device, values),
            wasted_gpu_s=None if healthy else values["removable_ns"] / 1e9,
            values=values,
        )


def _values(device: DeviceTrace, idle: Idle, steps: Steps | None) -> dict[str, Any]:
    by_cause = dict.fromkeys(IDLE_CAUSES, 0) | idle.by_cause_ns
    removable = device.idle_ns - by_cause["kernel_gap"]
    main = max(by_cause, key=lambda name: by_cause[name])
    span = max(device.span_ns, 1)
    return {
        "idle_ns": device.idle_ns,
        "busy_ns": device.busy.total_ns,
        "span_ns": device.span_ns,
        "idle_pct": 100.0 * device.idle_ns / span,
        "removable_ns": removable,
        "removable_pct": 100.0 * removable / span,
        "by_cause_ns": dict(sorted(by_cause.items(), key=lambda kv: -kv[1])),
        "main_cause": main,
        "by_size_ns": idle.by_size_ns,
        "gaps": len(idle.gaps),
        "longest": _longest(device, idle),
        "ceiling_speedup": span / max(span - by_cause[main], 1),
        "launches_known_pct": 100.0 * idle.launches_known,
        "streams": device.rows["track"].n_unique(),
        **_step_values(device, idle, steps),
    }


def _step_values(device: DeviceTrace, idle: Idle, steps: Steps | None) -> dict[str, Any]:
    if steps is None:
        return {"steps": None, "steps_without_gpu_events": None, "idle_ns_per_step": None}
    begun = np.searchsorted(device.start, steps.end, side="left") - np.searchsorted(
        device.start, steps.start, side="left"
    )
    running = device.busy.covered(steps.start, steps.end) > 0
    whole = slice(0, len(steps) - 1 if steps.last_is_cut else len(steps))
    inside = idle.gaps.covered(steps.start[whole], steps.end[whole])
    return {
        "steps": len(steps),
        "steps_without_gpu_events": int(((begun == 0) & ~running).sum()),
        "idle_ns_per_step": int(np.median(inside)) if len(inside) else None,
    }


def _longest(device: DeviceTrace, idle: Idle) -> list[dict[str, Any]]:
    """The longest gaps: when, how long, why, and between which activities."""
    order = np.argsort(-idle.gaps.durations, kind="stable")[:LISTED]
    names = device.rows["name"].cast(pl.String)
    before = np.searchsorted(device.start, idle.gaps.start[order], side="left") - 1
    return [
        {
            "start_ns": int(idle.gaps.start[g]),
            "dur_ns": int(idle.gaps.durations[g]),
            "cause": IDLE_CAUSES[idle.cause[g]],
            "before": short_name(names[int(before[k])]),
            "after": short_name(names[int(idle.next_row[g])]),
            "thread": int(idle.thread[g]) if idle.thread[g] >= 0 else None,
        }
        for k, g in enumerate(order)
    ]


def _title(device: DeviceTrace, values: Mapping[str, Any], main: str) -> str:
    share = values["by_cause_ns"][main] / max(values["idle_ns"], 1)
    longest = values["longest"][0]
    alone = ""
    if values["gaps"] > 1 and longest["dur_ns"] > 0.5 * values["idle_ns"]:
        alone = f", {span_time(longest['dur_ns'])} of it in one gap"
    return (
        f"{device_name(device)} was idle {percent(values['idle_pct'])} of {span_time(values['span_ns'])} "
        f"({span_time(values['idle_ns'])} in {count(values['gaps'], 'gap')}{alone}); {percent(100 * share)} of that: {CAUSE_WORDS[main]}."
    )


def _evidence(device: DeviceTrace, values: Mapping[str, Any]) -> tuple[Evidence, ...]:
    source = str(device.rows["source"].cast(pl.String)[0])
    return tuple(
        Evidence(
            source=source,
            value=gap["dur_ns"],
            note=f"{span_time(gap['dur_ns'])} idle, {span_time(gap['start_ns'] - device.low_ns)} after the first activity: {CAUSE_WORDS[gap['cause']]}, between {gap['before']} and {gap['after']}",
        )
        for gap in values["longest"][:5]
    )
