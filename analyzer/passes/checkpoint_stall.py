"""Checkpoint stalls: training that stands still while it is saved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status, Where
from afterrun.analyzer.prose import count, number, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.steps.settings import parameter
from afterrun.analyzer.steps.times import step_times
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.words import NO_DEVICE, device_name
from afterrun.analyzer.verdicts import about_device, abstained, refuted, unseen
from afterrun.analyzer.view import RunView

SAVE_INTERVALS = (
    "save_steps",
    "save_interval",
    "save_every",
    "checkpoint_interval",
    "save_freq",
    "ckpt_interval",
)
MIN_SAVES = 3
"""Fewer checkpoints show no habit."""


@dataclass(frozen=True)
class CheckpointStall(Pass):
    """Time in which a device stands idle because a checkpoint is written."""

    code: ClassVar[str] = "checkpoint-stall"
    title: ClassVar[str] = "Checkpoint stall"
    about: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ()
    explain: ClassVar[Explanation] = Explanation(
        meaning="Training waits while a checkpoint is copied from the devices, serialised and written.",
        rule="Idle time charged to checkpoint ranges (torch.save, save_checkpoint, and system calls that write) over the span: confirmed. Without such ranges, steps that copy at least large_copy_mib more from the device than the "
        "median step and leave it idle for at least idle_ratio times the median idle time per step look like checkpoints: possible. From logged step times: steps at multiples of the checkpoint interval that the parameters tell take at least idle_ratio times the usual time: possible. Warning from warn_pct of the span.",
        abstains="Where a trace names neither checkpoints nor steps and shows the device idle at least warn_pct of the time beside host work that it does not show. Without device activity in a trace, and without step times beside a checkpoint interval.",
        confused_with="An evaluation, which also copies results; logging of images; the first step of a capture.",
        remedies=(
            "Write asynchronously: torch.distributed.checkpoint.async_save, or a thread that writes from pinned copies.",
            "Save less often: Young's interval is sqrt(2 x cost x mean time between failures).",
            "Write sharded checkpoints to node-local disks and upload in the background.",
        ),
        sources=(
            "J. W. Young, A first order approximation to the optimum checkpoint interval (1974)",
            "PyTorch documentation: torch.distributed.checkpoint, asynchronous saving",
        ),
    )

    warn_pct: float = threshold(5.0, "share of the span idle for checkpoints that is a warning", unit="%")
    critical_pct: float = threshold(30.0, "share of the span idle for checkpoints that is critical", unit="%")
    large_copy_mib: float = threshold(
        32.0,
        "copied from the device in one step beyond the median step that looks like a checkpoint",
        unit="MiB",
    )
    idle_ratio: float = threshold(3.0, "idle time of such a step over that of the median step", unit="times")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device of a trace, else one from the times of steps."""
        if not view.trace.devices:
            logged = self._of_steps(view)
            traced = not view.tables.spans.is_empty()
            title = (
                "the trace holds no GPU activity" if traced else "nothing recorded tells saving from training"
            )
            missing = (
                NO_DEVICE
                if traced
                else ("a trace, or step times and the interval of checkpoints (save_steps)",)
            )
            yield logged or abstained(self, view, f"Not assessable: {title}.", missing)
        for device in view.trace.devices:
            yield self._of(view, device)

    def _of(self, view: RunView, device: DeviceTrace) -> Finding:
        named = view.trace.idle(device).by_cause_ns.get("checkpoint", 0)
        copying = self._copying_steps(view, device)
        guessed = int(sum(copying["idle_ns"])) if copying else 0
        status: Status = "confirmed" if named >= guessed else "possible"
        lost = max(named, guessed)
        share = 100.0 * lost / max(device.span_ns, 1)
        values: dict[str, Any] = {
            "checkpoint_ns": named,
            "copying_steps": copying,
            "lost_ns": lost,
            "lost_pct": share,
            "span_ns": device.span_ns,
        }
        if share < self.warn_pct:
            seen = (
                view.trace.steps(device) is not None
                or (view.trace.host(device)["lane"] == "checkpoint").any()
            )
            hidden = None if seen else unseen(self, view, device, self.warn_pct, values)
            if hidden is not None:
                return hidden
            title = f"{device_name(device)} stands idle for checkpoints {percent(share)} of the time."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        steps = (
            ""
            if status == "confirmed"
            else f", judged by {count(len(copying['step']), 'step')} that copy much from the device"
        )
        severity: Severity = "critical" if share >= self.critical_pct else "warning"
        return about_device(
            self,
            view,
            device,
            (status, severity),
            title=f"{device_name(device)} stands idle while checkpoints are written {percent(share)} of {span_time(device.span_ns)} ({span_time(lost)}{steps}).",
            effect=Effect(value=share, unit="% of the span idle for checkpoints", method="gaps by cause"),
            advice=self.explain.remedies,
            wasted_gpu_s=lost / 1e9,
            values=values,
        )

    def _of_steps(self, view: RunView) -> Finding | None:
        """Steps at whole multiples of the checkpoint interval against all others; None where either is not recorded."""
        times, every = step_times(view), parameter(view, *SAVE_INTERVALS)
        if times is None or every is None or times.relative or times.every >= every:
            return None
        at = (times.step % every) < times.every
        at[0] = False
        if at.sum() < MIN_SAVES or not (~at).any():
            return None
        usual = float(np.median(times.seconds[~at]))
        lost = float(np.maximum(times.seconds[at] - usual, 0.0).sum()) * times.every
        share = 100.0 * lost / (float(times.seconds.sum()) * times.every)
        ratio = float(np.median(times.seconds[at])) / usual
        values = {
            "save_steps": every,
            "saves": int(at.sum()),
            "usual_s": usual,
            "ratio": ratio,
            "lost_s": lost,
            "lost_pct": share,
        }
        slow = ratio >= self.idle_ratio and share >= self.warn_pct
        said = f"Steps at multiples of {every:,}, where checkpoints are written, take {number(ratio, 2)} times the usual {span_time(usual * 1e9)}: {percent(share)} of the time ({times.origin})."
        if not slow:
            return refuted(self, view, said, values)
        return Finding(
            code=self.code,
            status="possible",
            severity="critical" if share >= self.critical_pct else "warning",
            run=view.name,
            where=Where(step_start=int(times.step[at][0]), step_end=int(times.step[at][-1])),
            title=said,
            effect=Effect(
                value=share,
                unit="% of the time beyond the usual step",
                method="sum over the steps at the interval",
            ),
            evidence=(
                Evidence(
                    source=times.source,
                    tag=times.tag,
                    step=int(times.step[at][0]),
                    value=float(times.seconds[at][0]),
                ),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=None if view.devices is None else lost * view.devices,
            advice=self.explain.remedies,
            values=values,
        )

    def _copying_steps(self, view: RunView, device: DeviceTrace) -> dict[str, list[int]]:
        """Steps with far more copied from the device, and far more idle time, than the others."""
        steps = view.trace.steps(device)
        if steps is None or len(steps) < 4:
            return {}
        copies = device.of_lanes("memcpy").filter(
            pl.col("name").cast(pl.String).str.contains("DtoH") & pl.col("bytes").is_not_null()
        )
        at = steps.at(copies["start_ns"].to_numpy())
        moved = np.bincount(at[at >= 0], weights=copies["bytes"].to_numpy()[at >= 0], minlength=len(steps))
        parts = view.trace.idle(device).between(steps.start, steps.end)
        names = ("unobserved", "other", "memcpy", "sync", "checkpoint")
        idle = np.sum([parts[name] for name in names], axis=0)
        large = moved > np.median(moved) + self.large_copy_mib * 2**20
        long = idle > self.idle_ratio * max(float(np.median(idle)), 1e6)
        hit = np.flatnonzero(large & long)
        if not len(hit) or len(hit) > len(steps) // 2:
            return {}
        return {
            "step": steps.number[hit].tolist(),
            "bytes": moved[hit].astype(np.int64).tolist(),
            "idle_ns": (idle[hit] - int(np.median(idle))).tolist(),
        }
