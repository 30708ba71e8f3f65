"""Restarts: where a run resumed, which work was done twice, and how long it stood still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from afterrun.analyzer.curves.restarts import Restart, reference, restarts
from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import count, duration, gpu_time, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class RestartPass(Pass):
    """Attempts of one run, and the work lost between them."""

    code: ClassVar[str] = "restart"
    title: ClassVar[str] = "Restarts and work done twice"
    about: ClassVar[str] = "job"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The run was started more than once. Steps that a later attempt made again are lost work, and time between "
        "two attempts is downtime.",
        rule="The loaders number the attempts of a run by the step order of each tag, by new files and by the wall clock; writers that overlap in time are "
        "ranks, not restarts. This pass reads one curve, the training loss where it can. Work done twice = highest step reached - first step of the new "
        "attempt + the usual distance of two records. Lost time = wall clock of the replaced rows; downtime = first record of the new attempt - last record before. "
        "A warning needs at least warn_rows replaced rows; a resume that goes on where the last attempt ended is information. An attempt that begins "
        "at the first step of all is possible only: it may be a second training in the same folder.",
        abstains="When no step is recorded and only one attempt is seen: a counter that goes back could not be noticed.",
        confused_with="Several ranks that write into one folder, tags that count in different units (batches and epochs), values logged twice at one step, and two separate "
        "trainings in one folder.",
        remedies=(
            "Save checkpoints more often: the best interval is about sqrt(2 x cost of a checkpoint x mean time between failures).",
            "Save on SIGTERM, so that a preempted job loses nothing.",
            "Check that the resume restores optimizer, schedule, data order and random state where the curve shifts.",
            "Give every training a folder of its own.",
        ),
        sources=(
            "J. W. Young, A first order approximation to the optimum checkpoint interval, 1974",
            "TensorBoard, event_accumulator.py: purging of steps after a restart",
            "AI-Hypercomputer/ml-goodput-measurement: wasted progress and infrastructure recovery",
        ),
    )

    warn_rows: int = threshold(
        2,
        "replaced rows of the reference curve from which a restart is a warning; one row at the seam may be the checkpoint itself, logged again",
        unit="rows",
    )
    shift_pct: float = threshold(
        10.0, "change of the curve by a resume from which it is named", unit="% of the value"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding for the run, listing all its restarts."""
        s = reference(view)
        if s is None:
            yield abstained(self, view, "Restarts: no curve is recorded.", ("any metric with its step",))
            return
        found = restarts(view, s)
        if found:
            yield self._finding(view, s, found)
        elif s.has_step:
            span = f"step {int(s.x[0]):,} to {int(s.x[-1]):,}"
            title = f"One attempt: {s.tag} goes from {span} without a step back."
            yield refuted(self, view, title, {"tag": s.tag, "attempts": 1})
        else:
            title = f"One attempt is seen, but {s.tag} has no step that could go back."
            yield abstained(self, view, title, ("a step beside each value",), {"tag": s.tag, "attempts": 1})

    def _finding(self, view: RunView, s: Series, found: list[Restart]) -> Finding:
        costly = [r for r in found if r.rows_redone >= self.warn_rows]
        first = (costly or found)[0]
        lost = [r.lost_s for r in found]
        lost_s = None if None in lost else float(sum(x or 0.0 for x in lost))
        gpu_s = None if lost_s is None or view.devices is None else lost_s * view.devices
        down = [r.downtime_s for r in found]
        total = sum(r.steps_redone for r in found)
        values: dict[str, Any] = {
            "tag": s.tag,
            "attempts": len(found) + 1,
            "restarts": [{**asdict(r), "downtime_s": r.downtime_s} for r in found],
            "steps_redone": total,
            "rows_redone": sum(r.rows_redone for r in found),
            "lost_s": lost_s,
            "downtime_s": None if None in down else sum(x or 0.0 for x in down),
            "devices": view.devices,
        }
        again = all(r.from_the_beginning for r in costly)
        return Finding(
            code=self.code,
            status="possible" if costly and again else "confirmed",
            severity="warning" if costly else "info",
            run=view.name,
            attempt=first.attempt,
            rank=s.rank,
            where=Where(
                step_start=first.start_step,
                step_end=first.reached_step if first.rows_redone else first.start_step,
                t_start_ns=first.stopped_ns,
                t_end_ns=first.started_ns,
            ),
            title=_title(found, costly, total, gpu_s),
            effect=Effect(
                value=float(total),
                low=float(total),
                high=float(total),
                unit="steps done twice",
                level=1.0,
                method="counted",
            ),
            evidence=tuple(_evidence(s, r) for r in found[:8]),
            parameters=self.parameters(),
            wasted_gpu_s=gpu_s,
            advice=self._advice(found, costly),
            values=values,
        )

    def _advice(self, found: list[Restart], costly: list[Restart]) -> tuple[str, ...]:
        advice = []
        if any(r.from_the_beginning for r in costly):
            advice.append(
                "If these are two trainings, give each a folder of its own; if not, save checkpoints: the job began from nothing."
            )
        if any(not r.from_the_beginning for r in costly):
            most = max(r.steps_redone for r in costly)
            advice.append(
                f"Save checkpoints more often, and on SIGTERM: up to {count(most, 'step')} were lost at once."
            )
        off = {r.attempt: r.curve_shift_pct or 0.0 for r in found if not r.from_the_beginning}
        advice += [
            f"Check what attempt {attempt} restored: its curve lies {percent(shift)} off the one before."
            for attempt, shift in off.items()
            if abs(shift) > self.shift_pct
        ]
        if any(r.steps_unrecorded for r in found):
            advice.append("Look for the missing log: steps between two attempts are not recorded.")
        return tuple(advice)


def _title(found: list[Restart], costly: list[Restart], total: int, gpu_s: float | None) -> str:
    head = count(len(found), "restart")
    cost = f" ({gpu_time(gpu_s)})" if gpu_s else ""
    if not costly:
        r = found[0]
        at = f" at step {r.start_step:,}" if r.start_step is not None else ""
        pause = f" after {duration(r.downtime_s)}" if r.downtime_s else ""
        known = (
            "no step done twice"
            if r.start_step is not None
            else "no step recorded, so lost work is not known"
        )
        return f"{head}, {known}: attempt {r.attempt} went on{at}{pause}."
    r = costly[0]
    if r.from_the_beginning:
        return (
            f"Attempt {r.attempt} starts again at step {r.start_step:,} after step {r.reached_step:,} had been reached: "
            f"a second training in the same folder, or a restart without a checkpoint{cost}."
        )
    return (
        f"{head}: attempt {r.attempt} resumed at step {r.start_step:,} after step {r.reached_step:,} had been reached; "
        f"{count(total, 'step')} in all were done twice{cost}."
    )


def _evidence(s: Series, r: Restart) -> Evidence:
    rows = s.frame.filter(s.frame["attempt"] == r.attempt)
    one = rows.sort("step", nulls_last=True, maintain_order=True).row(0, named=True)
    before = f"step {r.reached_step:,}" if r.reached_step is not None else "an unknown step"
    return Evidence(
        source=str(one["source"]),
        tag=s.tag,
        step=one["step"],
        value=jsonable(one["value"]),
        note=f"first record of attempt {r.attempt}; {before} had been reached",
    )
