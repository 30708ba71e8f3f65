"""How a run died: the message that came first, what followed from it, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from afterrun.analyzer.failures import advice_for, memory_numbers
from afterrun.analyzer.finding import Evidence, Finding, Severity, Status, Where
from afterrun.analyzer.prose import count, gpu_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView
from afterrun.loaders.textlog.incidents import Incident, Sign, incidents, primary

_ON_PURPOSE = frozenset({"interrupted from the keyboard", "the job was cancelled"})
_OUTSIDE = frozenset({"time_limit", "preempted"})


@dataclass(frozen=True, slots=True)
class _Loss:
    """Work that no checkpoint holds. ``checkpoint``: its step; None where none is told."""

    checkpoint: int | None
    steps: int | None
    gpu_s: float | None


@dataclass(frozen=True)
class Crash(Pass):
    """Failures that the text logs of a run tell of."""

    code: ClassVar[str] = "crash"
    title: ClassVar[str] = "Crashes and their first cause"
    about: ClassVar[str] = "job"
    explain: ClassVar[Explanation] = Explanation(
        meaning="A text log of the run holds the message of a failure: out of memory, a dead worker, a lost GPU, a signal, an exception. "
        "The finding names the message that came first and tells it apart from those that merely followed.",
        rule="Lines are held against a list of messages, each a root (it can be the first cause), a cascade (what others feel: watchdogs, broken connections, a bare "
        "Killed) or a confirmation (the kernel or the scheduler says why). The earliest root of an incident wins. Without a root the first cascade is named, as a possibility. "
        "A killed process ran out of host memory where a confirmation says so. Of several logs the earliest sure cause speaks. An incident is fatal where no metric lines "
        "follow in its log; the run was started again where they follow at the same step or before; it was survived where they go on, which is information. Lost work reaches from the last checkpoint "
        "that a log tells of to the last step. Advice in a message is no cause, and neither are messages in a listing of source code.",
        abstains="When no text log or other record of the end is there, when a log ends without a failure and without a word about its end, and while a run is still being written.",
        confused_with="Errors that were caught, messages after the end of training, a watchdog taken for the cause, and a job that was cancelled on purpose.",
        remedies=(
            "Read the log at the line of the finding; what stands below it mostly follows from it.",
            "For a job of many ranks look for the rank that stopped first.",
            "Save checkpoints often enough, and on SIGTERM.",
            "Keep the scheduler's output beside the logs of the training: it tells of limits, preemption and kills.",
        ),
        sources=(
            "NVIDIA/nvidia-resiliency-ext, docs/design/attribution: root candidates, cascades, confirmations",
            "NVIDIA, XID errors",
            "Slurm documentation: job states and signals",
        ),
    )

    shown_incidents: int = threshold(
        5,
        "incidents that were survived or restarted from, each told by a finding of its own",
        unit="incidents",
    )
    shown_lines: int = threshold(8, "lines of a log that stand in the evidence", unit="lines")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the end, and one for each earlier incident."""
        if view.outcome == "running":
            yield abstained(self, view, "Still running.", ("the end of the run: it was still being written",))
            return
        found = incidents(view.tables.marks)
        fatal = [i for i in found if i.fate == "fatal"]
        ended = _recorded_end(view)
        recorded = view.tables.marks.filter(pl.col("kind") == "crash")
        if fatal and not _finished(view):
            yield self._finding(view, primary(fatal), fatal, _values(view, found))
        elif len(recorded) and view.outcome == "crashed":
            yield self._recorded(view, recorded.row(-1, named=True))
        elif not any(i.fate == "restarted" for i in found):
            yield self._no_crash(view, found, ended)
        for incident in [i for i in found if i.fate in ("restarted", "survived")][: self.shown_incidents]:
            yield self._finding(view, incident, [incident], _values(view, found))

    def _no_crash(self, view: RunView, found: list[Incident], ended: pl.DataFrame) -> Finding:
        values = _values(view, found)
        if len(ended):
            row = ended.row(-1, named=True)
            where = f" at line {row['line']:,}" if row["line"] is not None else ""
            late = [i for i in found if i.fate in ("after the end", "fatal")]
            after = f" What failed after it ({late[0].cause.what}) cost no training." if late else ""
            return refuted(self, view, f"The run recorded its end{where}: {row['text']}.{after}", values)
        logs = view.tables.sources.filter(pl.col("format") == "text-log")
        if logs.is_empty():
            title = "Not assessable: no text log is there, and no record of how the run ended."
            return abstained(self, view, title, ("a text log of the run",), values)
        title = "The log tells of no failure that ended the run, and of no end either."
        return abstained(
            self, view, title, ("a record of the end, or the scheduler's output of the job",), values
        )

    def _recorded(self, view: RunView, mark: dict[str, Any]) -> Finding:
        """A tracker recorded that the process failed, and no text log tells of what."""
        return Finding(
            code=self.code,
            status="confirmed",
            severity="warning",
            run=view.name,
            where=Where(step_start=mark["step"], step_end=mark["step"], t_start_ns=mark["t_ns"]),
            title=f"Ended by a failure: {mark['text']}; no text log tells what happened.",
            evidence=(
                Evidence(source=str(mark["source"]), line=mark["line"], step=mark["step"], note=mark["text"]),
            ),
            parameters=self.parameters(),
            advice=("Look for the output of the job; the last lines of it tell what happened.",),
            values={
                **_values(view, []),
                "kind": "crash",
                "sure": True,
                "fate": "fatal",
                "last_step": mark["step"],
            },
        )

    def _finding(
        self, view: RunView, incident: Incident, together: Sequence[Incident], counts: dict[str, Any]
    ) -> Finding:
        cause = incident.cause
        loss = _loss(view, incident)
        status, severity = _verdict(incident)
        signs = _ordered(incident, together)
        fatal = incident.fate == "fatal"
        return Finding(
            code=self.code,
            status=status,
            severity=severity,
            run=view.name,
            where=Where(
                step_start=cause.step, step_end=cause.step, t_start_ns=cause.t_ns, t_end_ns=cause.t_ns
            ),
            title=_title(incident, loss),
            evidence=tuple(_evidence(s, s is cause) for s in signs[: self.shown_lines]),
            parameters=self.parameters(),
            wasted_gpu_s=loss.gpu_s if fatal else None,
            advice=advice_for(incident) if incident.fate != "survived" else _survived_advice(incident),
            values={
                **counts,
                "kind": cause.kind,
                "what": cause.what,
                "sure": incident.sure,
                "fate": incident.fate,
                "source": cause.source,
                "line": cause.line,
                "text": cause.text,
                "last_step": cause.step,
                "resumed_step": incident.resumed_step,
                "checkpoint_step": loss.checkpoint,
                "steps_lost": loss.steps,
                "cascade": [_line(s) for s in incident.of_role("cascade")[: self.shown_lines]],
                "confirmation": [_line(s) for s in incident.of_role("confirmation")[: self.shown_lines]],
                **memory_numbers(cause.text),
            },
        )


def _recorded_end(view: RunView) -> pl.DataFrame:
    return view.tables.marks.filter(pl.col("kind").is_in(["finish", "stop"]))


def _finished(view: RunView) -> bool:
    """Whether the run ended by its own record in spite of a message at the end of a log."""
    return view.outcome in ("finished", "stopped") and bool(len(_recorded_end(view)))


def _verdict(incident: Incident) -> tuple[Status, Severity]:
    cause = incident.cause
    if incident.fate == "survived":
        return "possible", "info"
    status: Status = "confirmed" if incident.sure else "possible"
    if cause.what in _ON_PURPOSE:
        return status, "info"
    if cause.kind in _OUTSIDE or incident.fate == "restarted":
        return status, "warning"
    return status, "critical" if incident.sure else "warning"


def _title(incident: Incident, loss: _Loss) -> str:
    cause = incident.cause
    at = f" at step {cause.step:,}" if cause.step is not None else ""
    line = f"{cause.source} line {cause.line:,}"
    head = cause.what[:1].upper() + cause.what[1:]
    if cause.what == "an exception":
        head = cause.text.split(" [", 1)[0][:120]
    if incident.fate == "survived":
        return f"{head}{at} ({line}), and training went on: the failure was caught."
    if incident.fate == "restarted":
        return (
            f"{head}{at} ({line}); the run was started again and went on at step {incident.resumed_step:,}."
        )
    lost = ""
    if loss.steps:
        cost = f" ({gpu_time(loss.gpu_s)})" if loss.gpu_s else ""
        lost = f"; {count(loss.steps, 'step')} after the last checkpoint are lost{cost}"
    doubt = "" if incident.sure else ": what came before it is not in the log"
    return f"Died{at}: {head} ({line}){doubt}{lost}."


def _survived_advice(incident: Incident) -> tuple[str, ...]:
    return (
        f"Check that what was skipped does not matter: see line {incident.cause.line} of {incident.source}.",
    )


def _loss(view: RunView, incident: Incident) -> _Loss:
    """Steps between the last checkpoint that the log of the incident tells of and its last step."""
    cause = incident.cause
    marks = view.tables.marks.filter(
        (pl.col("kind") == "checkpoint")
        & (pl.col("source") == cause.source)
        & (pl.col("line") < cause.line)
        & pl.col("step").is_not_null()
    ).sort("line")
    if cause.step is None or marks.is_empty():
        return _Loss(None, None, None)
    saved = int(marks["step"][-1])
    if saved > cause.step:
        return _Loss(saved, None, None)
    return _Loss(saved, cause.step - saved, view.gpu_s_between(saved, cause.step))


def _ordered(incident: Incident, together: Sequence[Incident]) -> list[Sign]:
    """The cause first, then the other signs of its log, then those of other logs; the same words once."""
    others = [s for i in together if i is not incident for s in (i.cause,)]
    found: list[Sign] = []
    seen: set[tuple[str, str]] = set()
    for sign in (incident.cause, *incident.signs, *others):
        key = (sign.source, sign.what if sign.what != "an exception" else sign.text)
        if key not in seen:
            seen.add(key)
            found.append(sign)
    return found


def _evidence(sign: Sign, is_cause: bool) -> Evidence:
    role = "first cause" if is_cause else sign.role
    return Evidence(source=sign.source, line=sign.line, step=sign.step, note=f"{role}: {sign.text}")


def _line(sign: Sign) -> dict[str, Any]:
    return {"source": sign.source, "line": sign.line, "kind": sign.kind, "what": sign.what, "text": sign.text}


def _values(view: RunView, found: list[Incident]) -> dict[str, Any]:
    fates = Counter(i.fate for i in found)
    return {
        "outcome": view.outcome,
        "incidents": len(found),
        "sources": len({i.source for i in found}),
        "survived": fates["survived"],
        "restarted": fates["restarted"],
    }
