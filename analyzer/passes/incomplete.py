"""Runs that ended before their plan: planned steps or epochs against what was reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from afterrun.analyzer.curves.goal import Goal, goals
from afterrun.analyzer.finding import Effect, Evidence, Finding, Severity, Status, Where
from afterrun.analyzer.prose import number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView
from afterrun.loaders.registry import loaders

BROKEN = ("crashed", "killed", "nan", "oom")
"""Outcomes that name a reason for the early end."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is said about one end of the record."""

    status: Status
    severity: Severity
    title: str
    advice: tuple[str, ...]
    at_start: bool = False


@dataclass(frozen=True)
class Incomplete(Pass):
    """Whether the run did what it was started for, and whether its record is whole."""

    code: ClassVar[str] = "incomplete"
    title: ClassVar[str] = "Runs that ended early"
    about: ClassVar[str] = "job"
    needs: ClassVar[tuple[str, ...]] = ()
    explain: ClassVar[Explanation] = Explanation(
        meaning="The run stopped before the steps or epochs it was started for, or its record begins late or is empty. Best values then hold for the "
        "recorded part only.",
        rule="The plan is read from the parameters (max_steps, train_iters, num_train_epochs, epochs and their relatives; 0 and -1 mean not set), what was reached from the step and "
        "epoch of the curves or from the state file. A plan is met when reached >= planned - one recording interval (and one for counters that start at 0). One "
        "plan that is met is enough. Confirmed: no plan is met and no record says that the run ended. Possible: an end record stands before the plan was met, "
        "which is what early stopping looks like, or the record is the state of a checkpoint. A run without a single value, whose files were written, is a failed start. A "
        "history that begins later than late_intervals recording intervals and late_share of its end has lost its beginning.",
        abstains="When no plan is recorded and the run does not say how it ended, and while a run is still being written.",
        confused_with="Early stopping, a checkpoint's state file taken for the run's, a step counter in another unit than the plan, and a log that was cut by a log rotation or a resume.",
        remedies=(
            "Look at the end of the job's text log: out of memory, time limit, a killed node.",
            "Resume from the last checkpoint if the plan still holds.",
            "Do not compare this run with complete ones at their ends; compare at equal steps.",
            "Record the planned length (max_steps or epochs) as a parameter.",
        ),
        sources=(
            "transformers, TrainerState: global_step, max_steps, num_train_epochs",
            "Lightning issue: metrics.csv is rewritten by a resume, so that only the rows after it remain",
        ),
    )

    late_intervals: float = threshold(
        5.0, "recording intervals before the first record from which a history begins late", unit="intervals"
    )
    late_share: float = threshold(
        0.05, "share of the last step that must lie before the first record", unit="share"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the end, and one about the beginning where it is missing."""
        if view.tables.metrics.is_empty():
            yield self._nothing_written(view)
            return
        s = view.train_loss or max(view.curves, key=len, default=None)
        late = self._late(view, s) if s is not None else None
        end = self._end(view, s)
        if late is not None:
            yield late
        if late is None or end.status in ("confirmed", "possible"):
            yield end

    def _nothing_written(self, view: RunView) -> Finding:
        sources = view.tables.sources
        empty = sources.filter(
            pl.col("status") == "empty", pl.col("format").cast(pl.String).is_in(_curve_formats())
        )
        others = ("spans", "samples", "kernels", "histograms", "marks")
        other_content = empty["note"].str.contains(r"image|audio|video|mesh|histogram|text").any()
        if empty.is_empty() or other_content or any(len(getattr(view.tables, name)) for name in others):
            title = "Not assessable: no curve is recorded."
            return abstained(self, view, title, ("metric values",), {"sources": len(sources)})
        names = [str(p) for p in empty["path"]]
        return Finding(
            code=self.code,
            status="confirmed",
            severity="warning",
            run=view.name,
            title=f"No metric was ever written: {names[0]} holds no value{f', nor do {len(names) - 1} more' if len(names) > 1 else ''}.",
            evidence=tuple(Evidence(source=name, note="no observation in this file") for name in names[:8]),
            parameters=self.parameters(),
            advice=("Look at the job's text log: the process ended before its first record.",),
            values={"empty_sources": len(names), "outcome": view.outcome},
        )

    def _end(self, view: RunView, s: Series | None) -> Finding:
        plans = goals(view, s)
        values = _values(view, s, plans)
        if view.outcome == "running":
            title = "Still running; whether it completes is not known yet."
            return abstained(self, view, title, ("the end of the run: it was still being written",), values)
        met = next((g for g in plans if g.met), None)
        if met is not None:
            title = f"Complete: {number(met.reached)} of {number(met.planned)} {met.unit} ({met.key})."
            return refuted(self, view, title, values)
        if plans:
            return self._short(view, s, min(plans, key=lambda g: g.missing_pct), values)
        if view.outcome in BROKEN:
            return self._broken(view, s, values)
        if values["end_record"]:
            return refuted(self, view, "The run recorded its own end; no planned length is recorded.", values)
        missing = ("a planned length (a parameter such as max_steps or epochs)", "a record of the end")
        return abstained(self, view, "Neither a planned length nor an end is recorded.", missing, values)

    def _short(self, view: RunView, s: Series | None, plan: Goal, values: dict[str, Any]) -> Finding:
        part = f"{number(plan.reached)} of {number(plan.planned)} {plan.unit} ({percent(plan.missing_pct)} missing)"
        remedies = self.explain.remedies[:3]
        verdict = _Verdict(
            "confirmed", "warning", f"Not finished: {part}, and no record of the end.", remedies
        )
        if view.outcome in BROKEN:
            verdict = _Verdict(
                "confirmed", "warning", f"Ended early ({view.outcome}) after {part}.", remedies
            )
        elif values["end_record"]:
            title = f"Ended by its own record after {part}: early stopping, or stopped on purpose."
            advice: tuple[str, ...] = (
                "Nothing is wrong if it was stopped by early stopping or on purpose.",
                *remedies[1:],
            )
            verdict = _Verdict("possible", "info", title, advice)
        elif values["checkpoint_only"]:
            title = f"The record is the state of a checkpoint, after {part}; whether training went on is not recorded."
            advice = ("Point afterrun at the folder of the whole run if there is one.",)
            verdict = _Verdict("possible", "info", title, advice)
        return self._finding(view, s, verdict, values)

    def _broken(self, view: RunView, s: Series | None, values: dict[str, Any]) -> Finding:
        at = f" after step {values['last_step']:,}" if values["last_step"] is not None else ""
        title = f"Ended by a failure ({view.outcome}){at}; the planned length is not recorded."
        return self._finding(view, s, _Verdict("possible", "info", title, self.explain.remedies[:3]), values)

    def _late(self, view: RunView, s: Series) -> Finding | None:
        """The finding of a history whose beginning is missing, or None."""
        axis = s.x if s.has_step else s.epoch
        if axis is None or len(axis) < 3 or s.attempt[0] != 1:
            return None
        interval = float(np.median(np.diff(axis)))
        others = [float(c.x[0]) for c in view.curves if s.has_step and c.has_step]
        first = min([float(axis[0]), *others])
        if interval <= 0 or first < max(self.late_intervals * interval, self.late_share * float(axis[-1])):
            return None
        word = "step" if s.has_step else "epoch"
        epoch = f" (epoch {number(float(s.epoch[0]))})" if s.epoch is not None and s.has_step else ""
        title = (
            f"The history begins at {word} {number(first)}{epoch}, though one is recorded every {number(interval)}: "
            "best values hold for the recorded part only."
        )
        advice = ("Look for the earlier part: a resume may have rewritten the file, or the log was cut.",)
        values = {**_values(view, s, []), "first": first, "interval": interval, "axis": word}
        return self._finding(view, s, _Verdict("possible", "info", title, advice, at_start=True), values)

    def _finding(self, view: RunView, s: Series | None, verdict: _Verdict, values: dict[str, Any]) -> Finding:
        row = 0 if verdict.at_start else -1
        missing = values.get("missing_pct")
        return Finding(
            code=self.code,
            status=verdict.status,
            severity=verdict.severity,
            run=view.name,
            where=Where(
                step_start=int(s.x[row]) if s is not None and s.has_step else None,
                step_end=int(s.x[row]) if s is not None and s.has_step else None,
                t_start_ns=int(s.wall_ns[row]) if s is not None and s.wall_ns is not None else None,
                t_end_ns=int(s.wall_ns[row]) if s is not None and s.wall_ns is not None else None,
            ),
            title=verdict.title,
            effect=Effect(
                value=missing,
                low=missing,
                high=missing,
                unit="% of the plan not done",
                level=1.0,
                method="counted",
            )
            if missing is not None
            else None,
            evidence=()
            if s is None
            else (s.evidence(row % len(s), "first record" if verdict.at_start else "last record"),),
            parameters=self.parameters(),
            advice=verdict.advice,
            values=values,
        )


def _curve_formats() -> list[str]:
    """Formats that a trainer writes its metrics to: an empty trace or counter file says nothing of the training."""
    return [loader.format for loader in loaders() if loader.family in ("curves", "text")]


def _values(view: RunView, s: Series | None, plans: list[Goal]) -> dict[str, Any]:
    """What was planned and reached, and what the record says of the end."""
    kinds = view.tables.marks["kind"].cast(pl.String)
    worst = min(plans, key=lambda g: g.missing_pct, default=None)
    return {
        "outcome": view.outcome,
        "end_record": view.outcome in ("finished", "stopped") or bool((kinds == "finish").any()),
        "checkpoint_only": _checkpoint_only(view),
        "first_step": int(s.x[0]) if s is not None and s.has_step else None,
        "last_step": int(s.x[-1]) if s is not None and s.has_step else None,
        "plan": worst.key if worst else None,
        "planned": worst.planned if worst else None,
        "reached": worst.reached if worst else None,
        "unit": worst.unit if worst else None,
        "missing_pct": worst.missing_pct if worst else None,
        "plans": [{"key": g.key, "unit": g.unit, "planned": g.planned, "reached": g.reached} for g in plans],
    }


def _checkpoint_only(view: RunView) -> bool:
    """Whether all curves were read from inside a checkpoint folder: its state, not the run's."""
    used = view.tables.metrics["source"].cast(pl.String).unique()
    known = view.tables.sources.filter(pl.col("source").is_in(used.to_list()))
    paths = [str(p) for p in known["path"]]
    return bool(paths) and all(re.search(r"(^|/)checkpoint[-_]\d+/", p) for p in paths)
