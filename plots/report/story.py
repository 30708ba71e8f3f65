"""What happened, in sentences: one a run and one for all runs, the same on the page and in the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import SEVERITY_ORDER, STATUS_ORDER, Finding, rank_order
from afterrun.analyzer.view import RunView
from afterrun.plots.report import format as fmt
from afterrun.plots.report.text import segments

State = Literal["faulty", "unassessed", "partly", "healthy"]
"""``partly`` = nothing wrong in what could be checked, but a check that every verdict needs could not look."""

STATE_ORDER: dict[str, int] = {"faulty": 0, "unassessed": 1, "partly": 2, "healthy": 3}

DECISIVE = ("non-finite", "divergence", "overfit")
"""Codes that must have looked before a run is called healthy."""

OF_THE_RECORD = frozenset({"log-bloat", "lossy-export", "perturbed", "undersampled"})
"""Codes about the record itself: that they found nothing says nothing about the run."""

ENDED_BADLY = {
    "crashed": "crashed",
    "killed": "was killed",
    "nan": "stopped on NaN",
    "oom": "ran out of memory",
}

OUTCOME_WORDS = {
    "finished": "finished",
    "running": "end not recorded (newest run)",
    "crashed": "crashed",
    "killed": "killed",
    "nan": "stopped on NaN",
    "oom": "out of memory",
    "stopped": "stopped",
    "unknown": "not recorded",
}

STATUS_WORDS = {
    "confirmed": "Confirmed by the evidence",
    "possible": "Possible: the evidence leaves room for chance",
    "refuted": "Looked, and found fine",
    "abstained": "Could not look",
}


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """In the order of ``rank_order``; among equals the decisive codes lead, whatever their spelling."""
    return sorted(
        findings, key=lambda f: (*rank_order(f)[:3], _weight(f.code), *rank_order(f)[3:], f.run, f.title)
    )


def _weight(code: str) -> int:
    return DECISIVE.index(code) if code in DECISIVE else len(DECISIVE)


def _looked(findings: Sequence[Finding]) -> set[str]:
    """Codes that could judge the run."""
    return {f.code for f in findings if f.status != "abstained" and f.code not in OF_THE_RECORD}


def state(view: RunView, findings: Sequence[Finding]) -> State:
    """How the run stands, from its findings and its end."""
    if view.outcome in ENDED_BADLY or any(f.is_alarm for f in findings):
        return "faulty"
    if not _looked(findings):
        return "unassessed"
    blind = {f.code for f in findings if f.status == "abstained"} - _looked(findings)
    return "partly" if blind & set(DECISIVE) else "healthy"


def verdict(view: RunView, findings: Sequence[Finding]) -> str:
    """One line about one run, as it could be pasted into a ticket. Never calm about what nobody saw."""
    kind = state(view, findings)
    if kind == "faulty":
        text = _faulty(view, findings)
    elif kind == "unassessed":
        text = f"not assessable: {_why_not(view, findings)}"
    else:
        text = _healthy(view, findings, kind)
    return text + _losses(view)


def _faulty(view: RunView, findings: Sequence[Finding]) -> str:
    alarms = worst_first(f for f in findings if f.is_alarm)
    end = ENDED_BADLY.get(view.outcome)
    if not alarms:
        return f"{end}; {_healthy(view, findings, 'healthy') if _looked(findings) else 'not assessable'}"
    worst = alarms[0]
    text = sentence(worst)
    others = list(dict.fromkeys(f.code for f in alarms if f.code != worst.code))
    if others:
        text += f"; also {', '.join(others[:3])}" + (f" and {len(others) - 3} more" if others[3:] else "")
    told = {f.code for f in alarms} & {"incomplete", "non-finite", "crash"}
    return f"{text}; {end}" if end and not told else text


def sentence(f: Finding) -> str:
    """A finding as part of a line: its code, its doubt, its title without the full stop."""
    return f"{'possible ' if f.status == 'possible' else ''}{f.code}: {f.title.strip().rstrip('.')}"


def _healthy(view: RunView, findings: Sequence[Finding], kind: State) -> str:
    looked = _looked(findings)
    improving = any(f.status == "confirmed" and f.code == "still-improving" for f in findings)
    text = "healthy" if kind == "healthy" else f"no fault in {fmt.plural(len(looked), 'check')}"
    if view.outcome == "running":
        text += ", its end is not recorded"
    elif improving:
        text += ", still improving at the end"
    blind = [f for code in DECISIVE for f in findings if f.code == code and f.status == "abstained"]
    blind = [f for f in blind if f.code not in looked]
    if kind == "partly" and view.tables.metrics.is_empty() and (what := _beside_curves(view)):
        return f"{text} of {what}; no curves are recorded"
    return f"{text}; {blind[-1].code} not assessable: {_reason(blind[-1])}" if kind == "partly" else text


def _why_not(view: RunView, findings: Sequence[Finding]) -> str:
    if view.tables.metrics.is_empty():
        what = _beside_curves(view)
        return (
            f"only {what} are recorded, and no check could judge them" if what else "no metric was recorded"
        )
    blind = [f for f in findings if f.status == "abstained"]
    first = [f for code in DECISIVE for f in blind if f.code == code] or blind
    return _reason(first[0]) if first else "no check ran"


def _beside_curves(view: RunView) -> str:
    """What is recorded of a run that has no curves; empty where nothing is."""
    tables = view.tables
    kinds = (
        (tables.spans, "spans of a trace"),
        (tables.samples, "counters"),
        (tables.kernels, "profiles of kernels"),
        (tables.histograms, "histograms"),
    )
    return " and ".join(words for table, words in kinds if not table.is_empty())


def _reason(f: Finding) -> str:
    """Why a check could not look, with the option to paste: its title without the name of the check."""
    head, colon, tail = f.title.strip().rstrip(".").partition(": ")
    paste = [text for m in f.missing for typed, text in segments(m) if typed]
    return (tail if colon and len(head) < 40 else head + colon + tail) + (f" ({paste[0]})" if paste else "")


def _losses(view: RunView) -> str:
    """What of the input was not read whole: a verdict on part of a run says so."""
    states = view.tables.sources["status"].cast(pl.String)
    lost = int(states.is_in(["partial", "unreadable"]).sum())
    if not lost:
        return ""
    return f" ({lost:,} of {fmt.plural(len(states), 'file')} not read whole)"


def order_runs(analysis: Analysis) -> list[str]:
    """Names of all runs, worst first: by state, by their worst finding, by cost, by name."""
    by_run = group(analysis.findings)
    return sorted(analysis.views, key=lambda name: _run_key(analysis.views[name], by_run.get(name, [])))


def _run_key(view: RunView, findings: Sequence[Finding]) -> tuple[int, int, int, float, int, int, str]:
    alarms = worst_first(f for f in findings if f.is_alarm)
    worst = (STATUS_ORDER[alarms[0].status], SEVERITY_ORDER[alarms[0].severity]) if alarms else (9, 9)
    codes = {f.code for f in alarms}
    weight = min(map(_weight, codes), default=9)
    return (
        STATE_ORDER[state(view, findings)],
        *worst,
        -(run_cost(findings) or 0.0),
        weight,
        -len(codes),
        view.name,
    )


def group(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by run, order kept."""
    by_run: dict[str, list[Finding]] = {}
    for f in findings:
        by_run.setdefault(f.run, []).append(f)
    return by_run


def most_important(analysis: Analysis, n: int) -> list[Finding]:
    """At most ``n`` alarms, one for each run and code: the confirmed first, then by severity and cost.

    What is new comes before more of the same: each run and each code already told puts a finding back.
    """
    left = _one_a_kind(f for f in analysis.findings if f.is_alarm)
    chosen: list[Finding] = []
    told: Counter[str] = Counter()
    while left and len(chosen) < n:
        rank = [(STATUS_ORDER[f.status], told[f"run {f.run}"] + told[f.code], i) for i, f in enumerate(left)]
        f = left.pop(min(rank)[2])
        chosen.append(f)
        told.update((f"run {f.run}", f.code))
    return chosen


def _one_a_kind(findings: Iterable[Finding]) -> list[Finding]:
    first: dict[tuple[str, str], Finding] = {}
    for f in worst_first(findings):
        first.setdefault((f.run, f.code), f)
    return list(first.values())


def headline(analysis: Analysis) -> str:
    """What happened across these runs, in one or two sentences."""
    return " ".join(part for part in headline_parts(analysis) if part)


def headline_parts(analysis: Analysis) -> tuple[str, str]:
    """The headline as (what went wrong, how the others stand); the second may be empty."""
    by_run = group(analysis.findings)
    states = {name: state(view, by_run.get(name, [])) for name, view in analysis.views.items()}
    if not states:
        return "No run was found.", ""
    if len(states) == 1:
        (name,) = states
        return f"{name}: {verdict(analysis.views[name], by_run.get(name, []))}.", ""
    faulty = [name for name in order_runs(analysis) if states[name] == "faulty"]
    if not faulty:
        return _rest(states), ""
    share = f"{len(faulty):,} of {len(states):,}" if len(faulty) < len(states) else f"all {len(states):,}"
    first = f"Something went wrong in {share} runs: {_kinds(analysis, faulty, by_run)}"
    cost = _dearest(faulty, by_run)
    if cost is not None:
        first += f"; at least {fmt.gpu_time(cost)} lost"
    return first + ".", _rest(states)


def _dearest(names: Sequence[str], by_run: dict[str, list[Finding]]) -> float | None:
    """Sum over runs of the dearest finding of each: a lower bound, because costs of one run overlap."""
    dearest = [cost for n in names if (cost := run_cost(by_run.get(n, []))) is not None]
    return sum(dearest) if dearest else None


def run_cost(findings: Iterable[Finding]) -> float | None:
    """GPU-seconds of the dearest alarm of a run; None where no cost is recorded."""
    costs = [f.wasted_gpu_s for f in findings if f.is_alarm and f.wasted_gpu_s is not None]
    return max((c for c in costs if math.isfinite(c)), default=None)


def _kinds(analysis: Analysis, faulty: Sequence[str], by_run: dict[str, list[Finding]]) -> str:
    runs_with: dict[str, int] = {}
    for name in faulty:
        alarms = worst_first(f for f in by_run.get(name, []) if f.is_alarm)
        label = alarms[0].code if alarms else OUTCOME_WORDS[analysis.views[name].outcome]
        runs_with[label] = runs_with.get(label, 0) + 1
    ranked = sorted(runs_with.items(), key=lambda kv: -kv[1])
    rest = sum(n for _, n in ranked[4:])
    if ranked[0][1] == 1:
        return ", ".join(code for code, _ in ranked[:4]) + (f" and {rest:,} more" if rest else "")
    return ", ".join(f"{code} in {n:,}" for code, n in ranked[:4]) + (f", others in {rest:,}" if rest else "")


def _rest(states: dict[str, State]) -> str:
    """How the runs without a fault stand."""
    total = len(states)
    healthy = sum(s == "healthy" for s in states.values())
    blind = sum(s in ("partly", "unassessed") for s in states.values())
    if healthy == total:
        return f"All {total:,} runs are healthy."
    if blind == total:
        return f"No fault was found in {total:,} runs, but none of them could be checked in full."
    parts = [f"{healthy:,} {'is' if healthy == 1 else 'are'} healthy"] if healthy else []
    parts += [f"{blind:,} could not be checked in full"] if blind else []
    if not parts:
        return ""
    return f"Of {total:,} runs {', '.join(parts)}." if healthy + blind == total else f"{', '.join(parts)}."
