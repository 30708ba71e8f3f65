"""Data-loading stalls: devices that wait for the next batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Where, jsonable
from afterrun.analyzer.loading.logged import LoggedLoading, logged_loading
from afterrun.analyzer.loading.traced import DeviceLoading, LoaderCalls, device_loading, loader_calls
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.steps.rhythm import rhythm
from afterrun.analyzer.steps.settings import parameter
from afterrun.analyzer.steps.times import step_times
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.host import classed
from afterrun.analyzer.trace.words import device_name
from afterrun.analyzer.verdicts import about_device, abstained, refuted, unseen
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class LoaderStall(Pass):
    """Time lost because no batch was ready."""

    code: ClassVar[str] = "loader-stall"
    title: ClassVar[str] = "Data-loading stall"
    about: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ()
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="The device stands idle because the host has no batch ready: workers are too few or too slow, or loading runs in the training process itself.",
        rule="From a trace with GPU activity: idle time charged to loader calls (DataLoader.__next__ and its kin, ranges named after loading, or system calls that wait where no ranges are recorded) over the span of the "
        "device, warning from warn_pct, critical from critical_pct. The first call, which starts the workers, is told apart. From a trace without GPU activity: the share of the host's time inside loader calls, possible only, for "
        "loading may have run ahead of the device. From step times: the share of data time in the time of a step, where both are logged; else, possible, slow steps whose period is the number of workers that the parameters tell.",
        abstains="Where a trace names no loader call and shows the device idle at least warn_pct of the time beside host work that it does not show. Without a trace, without a logged data time, and without step times whose period is the number of workers.",
        confused_with="The start of the workers in the first batch of an epoch; a host that reads values back, which also waits inside a step; an evaluation that loads its own data.",
        remedies=(
            "Raise num_workers until the wait is gone (about W x step time with the wait / step time without it), with prefetch_factor of 2 to 4.",
            "Set persistent_workers=True, so that workers are not started again in each epoch.",
            "Move work out of the loader: cache decoded samples, use faster decoders, augment on the device.",
            "Look at storage: many small files on a network file system want sharded archives or a local copy.",
        ),
        sources=(
            "kineto, torch-tb-profiler: a DataLoader share of the step above 5 % is flagged",
            "xprof, input pipeline analysis: input share of 5 % moderate, 20 % high; TraceML: 10 % and 20 %",
            "pytorch issue 19836: one batch per worker arrives in a burst",
        ),
    )

    info_pct: float = threshold(2.0, "share of the span below which nothing is said", unit="%")
    warn_pct: float = threshold(
        10.0, "share of the span waiting for data that is a warning", unit="%", source="TraceML"
    )
    critical_pct: float = threshold(
        20.0, "share of the span waiting for data that is critical", unit="%", source="xprof, TraceML"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding a device of a trace, else one about the host's loader calls, else one from step times."""
        if view.trace.devices:
            for device in view.trace.devices:
                yield self._of_device(view, device)
            return
        calls = None
        if not view.tables.spans.is_empty():
            calls = loader_calls(classed(view.tables.spans, view.tables.spans.clear()))
        if calls is not None:
            yield self._of_host(view, calls)
            return
        logged = logged_loading(view)
        if logged is not None:
            yield self._of_log(view, logged)
            return
        beat = self._of_rhythm(view)
        if beat is not None:
            yield beat
            return
        missing = ("a profiler trace with loader calls, or a logged data time beside the step time",)
        yield abstained(self, view, "Not assessable: nothing recorded tells loading from training.", missing)

    def _of_device(self, view: RunView, device: DeviceTrace) -> Finding:
        found = device_loading(view.trace, device)
        calls = loader_calls(view.trace.host(device))
        values = _values(found, calls) | {"span_ns": device.span_ns, "device_idle_ns": device.idle_ns}
        if found.share_pct < self.info_pct:
            hidden = unseen(self, view, device, self.warn_pct, values) if calls is None else None
            if hidden is not None:
                return hidden
            title = f"{device_name(device)} waits for data {percent(found.share_pct)} of the time."
            return about_device(self, view, device, ("refuted", "info"), title=title, values=values)
        severity: Severity = (
            "critical"
            if found.share_pct >= self.critical_pct
            else "warning"
            if found.share_pct >= self.warn_pct
            else "info"
        )
        every = f", every {found.period} steps" if found.period else ""
        stalls = f" in {count(found.stalls, 'stall')}" if found.stalls else ""
        inside = (
            f"{percent(found.inside_calls_pct)} of its idle time lies inside loader calls"
            if found.inside_calls_pct
            else f"{percent(found.gap_share_pct)} of its idle time"
        )
        title = (
            f"{device_name(device)} waits for data {percent(found.share_pct)} of {span_time(device.span_ns)}: "
            f"{span_time(found.idle_ns)}{stalls}{every}; {inside}."
        )
        return about_device(
            self,
            view,
            device,
            ("confirmed", severity),
            title=title,
            effect=Effect(
                value=found.share_pct, unit="% of the span waiting for data", method="gaps by cause, exact"
            ),
            advice=self.explain.remedies,
            wasted_gpu_s=found.idle_ns / 1e9,
            values=values,
        )

    def _of_host(self, view: RunView, calls: LoaderCalls) -> Finding:
        share = calls.share_pct
        values = jsonable(_values(None, calls))
        if share < self.warn_pct:
            title = f"Loader calls take {percent(share)} of the host's time; the trace holds no GPU activity."
            return refuted(self, view, title, values)
        return Finding(
            code=self.code,
            status="possible",
            severity="critical" if share >= self.critical_pct else "warning",
            run=view.name,
            where=Where(),
            title=f"The host spends {percent(share)} of its recorded time in {count(calls.calls, 'loader call')}; the trace holds no GPU activity, so whether a device waited is not recorded.",
            effect=Effect(
                value=share, unit="% of the host's time in loader calls", method="union of calls, exact"
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=values,
        )

    def _of_rhythm(self, view: RunView) -> Finding | None:
        """Slow steps at the distance of the number of workers: each worker's batch arrives late, the others at once."""
        times = step_times(view)
        if times is None or times.origin != "logged step time" or times.every != 1:
            return None
        found = rhythm(times.seconds)
        workers = parameter(view, "num_workers")
        if found is None or workers is None or found.period != workers:
            return None
        alarm = found.excess_pct >= self.warn_pct
        return Finding(
            code=self.code,
            status="possible",
            severity="info"
            if not alarm
            else "critical"
            if found.excess_pct >= self.critical_pct
            else "warning",
            run=view.name,
            where=Where(step_start=int(times.step[found.phase]), step_end=int(times.step[-1])),
            title=f"Every {found.period} steps, the number of loader workers, one takes longer: {percent(found.excess_pct)} of the time goes into these ({times.origin}).",
            effect=Effect(
                value=found.excess_pct,
                unit="% of the time in slow steps of the period",
                method="fold of step times against shuffled ones",
            ),
            evidence=(
                Evidence(
                    source=times.source, tag=times.tag, value=found.period, note="period of slow steps, steps"
                ),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies if alarm else (),
            values=jsonable(
                {
                    "period_steps": found.period,
                    "num_workers": workers,
                    "excess_pct": found.excess_pct,
                    "strength": found.strength,
                }
            ),
        )

    def _of_log(self, view: RunView, logged: LoggedLoading) -> Finding:
        share = logged.share_pct
        alarm = share >= self.warn_pct
        lost = view.gpu_s_between(logged.first_step, logged.last_step)
        return Finding(
            code=self.code,
            status="confirmed" if share >= self.info_pct else "refuted",
            severity="critical" if share >= self.critical_pct else "warning" if alarm else "info",
            run=view.name,
            where=Where(step_start=int(logged.first_step), step_end=int(logged.last_step)),
            title=f"Waiting for data takes {percent(share)} of the step time ({logged.data_tag} against {logged.step_tag}).",
            effect=Effect(
                value=share, unit="% of the step time waiting for data", method="sum of logged times"
            ),
            evidence=(
                Evidence(
                    source=logged.source, tag=logged.data_tag, value=logged.data_s, note="median data time, s"
                ),
                Evidence(
                    source=logged.source, tag=logged.step_tag, value=logged.step_s, note="median step time, s"
                ),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=lost * share / 100 if lost is not None and alarm else None,
            advice=self.explain.remedies if alarm else (),
            values=jsonable(
                {"share_pct": share, "data_s": logged.data_s, "step_s": logged.step_s, "rows": logged.rows}
            ),
        )


def _values(found: DeviceLoading | None, calls: LoaderCalls | None) -> dict[str, Any]:
    of_calls = (
        {
            "calls": calls.calls,
            "calls_ns": calls.total_ns,
            "first_call_ns": calls.first_ns,
            "median_call_ns": calls.median_ns,
            "host_share_pct": calls.share_pct,
        }
        if calls
        else {"calls": 0}
    )
    if found is None:
        return of_calls
    return {
        "data_idle_ns": found.idle_ns,
        "data_idle_pct": found.share_pct,
        "data_share_of_idle_pct": found.gap_share_pct,
        "gap_inside_loader_pct": found.inside_calls_pct,
        "longest_stall_ns": found.longest_ns,
        "stalls": found.stalls,
        "period_steps": found.period,
        **of_calls,
    }
