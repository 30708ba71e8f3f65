"""Throttling: devices that lower their clocks under load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.counters.series import CounterSeries, device_series
from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status, Where, jsonable
from afterrun.analyzer.prose import number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained
from afterrun.analyzer.view import RunView

HOT_BITS = 0x8 | 0x20 | 0x40
"""NVML clock event reasons: hardware slowdown, software thermal, hardware thermal."""

POWER_BITS = 0x4 | 0x80
"""Software power cap, hardware power brake."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Throttled(Pass):
    """Clocks below their own level while the device works, and the reason that is recorded."""

    code: ClassVar[str] = "throttled"
    title: ClassVar[str] = "Throttled clocks"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("samples",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The device ran at lower clocks than it can while it had work, because it was hot or at its power limit. The same step takes longer, and in a job of many ranks all wait for it.",
        rule="Among samples in use (utilisation of at least busy_pct): clocks below (100 - drop_pct) % of their 95 % quantile in at least min_share_pct of the time. Confirmed when throttle reasons name heat or power in most of these samples, or "
        "when they are hotter than the others by hot_margin_c and at least hot_c; else possible. A power cap, or a drop without a recorded reason, that lowers clocks less than power_drop_pct is how boost clocks work and is information.",
        abstains="Without samples of the SM clock.",
        confused_with="Low clocks of an idle device; application clocks set by the administrator, which are constant; the boost that ends as a device warms up, a few per cent.",
        remedies=(
            "Look at cooling: inlet temperature, fans, the neighbour in the chassis; compare with other nodes.",
            "Raise the power limit where the rack allows it, or set equal limits on all ranks.",
            "Take the node out of the job if it stays slower than the others.",
        ),
        sources=("NVML documentation: clock event reasons", "NVIDIA DCGM documentation: violation counters"),
    )

    busy_pct: float = threshold(50.0, "utilisation from which a sample counts as in use", unit="%")
    drop_pct: float = threshold(5.0, "drop of the clock below its usual level that counts", unit="%")
    power_drop_pct: float = threshold(
        15.0, "drop under a power cap, or without a recorded reason, that is a warning", unit="%"
    )
    min_share_pct: float = threshold(5.0, "share of the time in use that must be slowed down", unit="%")
    hot_c: float = threshold(
        75.0, "temperature from which heat explains a drop without recorded reasons", unit="C"
    )
    hot_margin_c: float = threshold(
        3.0, "by how much slowed samples must be hotter than the others", unit="C"
    )
    min_samples: int = threshold(20, "fewer samples in use are not judged", unit="samples")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device with clocks."""
        samples = view.tables.samples
        clocks = device_series(samples, "sm_clock_hz") or device_series(samples, "graphics_clock_hz")
        others = {
            name: {(s.rank, s.host, s.device): s for s in device_series(samples, name)}
            for name in ("gpu_util_pct", "temp_c", "throttle_reasons")
        }
        told = 0
        for clock in clocks:
            beside = {name: of.get((clock.rank, clock.host, clock.device)) for name, of in others.items()}
            found = self._of(view, clock, beside)
            if found is not None:
                told += 1
                yield found
        if not told:
            missing = ("samples of the SM clock of a working device",)
            yield abstained(
                self, view, "Not assessable: no clocks of a working device are recorded.", missing
            )

    def _of(
        self, view: RunView, clock: CounterSeries, beside: dict[str, CounterSeries | None]
    ) -> Finding | None:
        util, temp, reasons = (
            _beside(clock, beside[n]) for n in ("gpu_util_pct", "temp_c", "throttle_reasons")
        )
        busy: Mask = np.ones(len(clock), bool) if util is None else util >= self.busy_pct
        if busy.sum() < self.min_samples:
            return None
        usual = float(np.quantile(clock.value[busy], 0.95))
        slow: Mask = busy & (clock.value < (1 - self.drop_pct / 100) * usual)
        time_busy = float(clock.weight_s[busy].sum())
        share = 100.0 * float(clock.weight_s[slow].sum()) / time_busy if time_busy else 0.0
        drop = 100.0 * (1 - float(np.median(clock.value[slow])) / usual) if slow.any() else 0.0
        values: dict[str, Any] = {
            "usual_hz": usual,
            "slow_hz": float(np.median(clock.value[slow])) if slow.any() else None,
            "drop_pct": drop,
            "slow_share_pct": share,
            "temp_slow_c": _mean(temp, slow),
            "temp_other_c": _mean(temp, busy & ~slow),
            "samples_in_use": int(busy.sum()),
            "reason": _reason(reasons, slow),
        }
        if share < self.min_share_pct:
            title = f"{_name(clock)} kept its clock of {number(usual / 1e6)} MHz while it worked."
            return self._finding(view, clock, slow, ("refuted", "info", title), values)
        return self._finding(view, clock, slow, self._verdict(clock, values), values)

    def _verdict(self, clock: CounterSeries, values: dict[str, Any]) -> tuple[Status, Severity, str]:
        reason = values["reason"]
        slow_c, other_c = values["temp_slow_c"], values["temp_other_c"]
        hot = slow_c is not None and slow_c >= self.hot_c
        hotter = hot and (other_c is None or slow_c - other_c >= self.hot_margin_c)
        lowered = f"{_name(clock)} ran {percent(values['drop_pct'])} below its clock of {number(values['usual_hz'] / 1e6)} MHz in {percent(values['slow_share_pct'])} of its working time"
        if reason == "heat" or (reason is None and hotter):
            said = "the throttle reasons name heat" if reason else f"at {number(slow_c)} C"
            return "confirmed", "warning", f"{lowered}: {said}."
        if reason == "power":
            severity: Severity = "warning" if values["drop_pct"] >= self.power_drop_pct else "info"
            return "confirmed", severity, f"{lowered}: it was at its power limit."
        boost = values["drop_pct"] < self.power_drop_pct
        return "possible", "info" if boost else "warning", f"{lowered}; no reason is recorded."

    def _finding(
        self,
        view: RunView,
        clock: CounterSeries,
        slow: Mask,
        verdict: tuple[Status, Severity, str],
        values: dict[str, Any],
    ) -> Finding:
        at = np.flatnonzero(slow)
        ends = (int(at[0]), int(at[-1])) if len(at) and clock.t_ns is not None else None
        alarm = verdict[0] != "refuted"
        lost = float(clock.weight_s[slow].sum()) * values["drop_pct"] / 100 if clock.interval_s else None
        return Finding(
            code=self.code,
            status=verdict[0],
            severity=verdict[1],
            run=view.name,
            rank=clock.rank,
            where=Where(
                t_start_ns=None if ends is None or clock.t_ns is None else int(clock.t_ns[ends[0]]),
                t_end_ns=None if ends is None or clock.t_ns is None else int(clock.t_ns[ends[1]]),
                device=clock.device,
            ),
            title=verdict[2],
            effect=Effect(
                value=values["drop_pct"], unit="% below the usual clock", method="median of slowed samples"
            ),
            evidence=(
                Evidence(
                    source=clock.source,
                    tag=clock.counter,
                    value=values["slow_hz"],
                    note="median clock while slowed, Hz",
                ),
            )
            if alarm
            else (),
            parameters=self.parameters(),
            wasted_gpu_s=lost if alarm else None,
            advice=self.explain.remedies if alarm else (),
            values=jsonable(values),
        )


def _beside(clock: CounterSeries, other: CounterSeries | None) -> npt.NDArray[np.float64] | None:
    """The values of another counter at the times of the clock's samples; None where it was not recorded with it."""
    if other is None or not len(other):
        return None
    if clock.t_ns is None or other.t_ns is None:
        return other.value if len(other) == len(clock) else None
    i = np.clip(np.searchsorted(other.t_ns, clock.t_ns, side="right") - 1, 0, None)
    return np.asarray(other.value[i])


def _mean(values: npt.NDArray[np.float64] | None, where: Mask) -> float | None:
    return float(values[where].mean()) if values is not None and where.any() else None


def _reason(reasons: npt.NDArray[np.float64] | None, slow: Mask) -> str | None:
    """What most of the slowed samples name: ``heat``, ``power``, ``other``; None where reasons are not recorded."""
    if reasons is None or not slow.any():
        return None
    bits = reasons[slow].astype(np.int64)
    if ((bits & HOT_BITS) != 0).mean() > 0.5:
        return "heat"
    return "power" if ((bits & POWER_BITS) != 0).mean() > 0.5 else "other"


def _name(clock: CounterSeries) -> str:
    device = "GPU" if clock.device is None else f"GPU {clock.device}"
    return f"{device} of rank {clock.rank}" if clock.rank is not None else device
