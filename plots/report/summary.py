"""One run in a few numbers: what ``findings.json``, ``summary.csv``, the page and the Markdown all read."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView
from afterrun.loaders.collection import RunInfo
from afterrun.plots.report.story import State, run_cost, state, verdict, worst_first

MAIN_CURVES = 8
"""Curves summarised for each run: the objective and the held-out curves, then other quality metrics."""


class CurveSummary(msgspec.Struct, frozen=True, kw_only=True):
    """First, last and best of one curve. ``best`` is null where the direction of the metric is unknown."""

    tag: str
    metric: str | None
    split: str
    points: int
    """Surviving points, non-finite ones included."""
    non_finite: int
    first_step: int | None
    last_step: int | None
    last: float | None
    """The last surviving value, NaN and infinities included."""
    best: float | None
    best_step: int | None
    better: str | None


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Null means not recorded."""

    name: str
    path: str
    grouped_by: str
    notes: tuple[str, ...]
    """How the run was formed, where that was not plain."""
    attempts: int
    outcome: str
    formats: tuple[str, ...]
    started_ns: int | None
    ended_ns: int | None
    devices: int | None
    points: int
    """Metric values that survive restarts."""
    first_step: int | None
    last_step: int | None
    metrics: tuple[CurveSummary, ...]
    """Main curves: the training objective first, then held-out curves."""
    statuses: dict[str, int]
    """Findings by status."""
    severities: dict[str, int]
    """Confirmed and possible findings by severity."""
    state: State
    verdict: str
    worst: str | None
    """Title of the worst confirmed or possible finding."""
    wasted_gpu_s: float | None
    """The dearest single finding: the costs of several findings overlap and are never added up."""

    @property
    def train(self) -> CurveSummary | None:
        """The training objective."""
        return next((c for c in self.metrics if c.split in ("train", "none")), None)

    @property
    def held_out(self) -> CurveSummary | None:
        """The first held-out curve: of the objective where there is one."""
        return next((c for c in self.metrics if c.split in ("val", "test")), None)


def summarize(analysis: Analysis) -> dict[str, RunSummary]:
    """Every run by name, in the order of the ``runs`` table."""
    by_run: dict[str, list[Finding]] = {name: [] for name in analysis.views}
    for f in analysis.findings:
        by_run.setdefault(f.run, []).append(f)
    return {
        name: _one(view, analysis.collection.runs.get(name), by_run[name])
        for name, view in analysis.views.items()
    }


def _one(view: RunView, info: RunInfo | None, findings: list[Finding]) -> RunSummary:
    tables = view.tables
    alarms = worst_first(f for f in findings if f.is_alarm)
    alive = tables.metrics.filter(~pl.col("superseded") & pl.col("value").is_not_null())
    row = tables.runs.row(0, named=True) if len(tables.runs) else {}
    formats = tables.sources["format"].cast(pl.String).drop_nulls().unique().sort()
    attempts = tables.metrics["attempt"].n_unique() or 1
    return RunSummary(
        name=view.name,
        path=info.path if info else str(row.get("path") or view.name),
        grouped_by=info.grouped_by if info else "",
        notes=info.notes if info else (),
        attempts=info.attempts if info else attempts,
        outcome=view.outcome,
        formats=tuple(formats),
        started_ns=row.get("started_ns"),
        ended_ns=row.get("ended_ns"),
        devices=view.devices,
        points=len(alive),
        first_step=_int(alive["step"].min()),
        last_step=_int(alive["step"].max()),
        metrics=tuple(curve_summary(s) for s in main_curves(view)),
        statuses=dict(sorted(Counter(f.status for f in findings).items())),
        severities=dict(sorted(Counter(f.severity for f in alarms).items())),
        state=state(view, findings),
        verdict=verdict(view, findings),
        worst=alarms[0].title if alarms else None,
        wasted_gpu_s=run_cost(findings),
    )


def _int(x: object) -> int | None:
    return x if isinstance(x, int) else None


def main_curves(view: RunView) -> list[Series]:
    """The training objective, its held-out curves, then pairs of other metrics; each once.

    Where no curve is a known objective, the longest curve of a known direction, else the longest of all.
    """
    found = [view.train_loss] if view.train_loss is not None else []
    pairs = [s for p in view.pairs for s in (p.val, p.train)]
    held = [s for s in view.lead if s.split in ("val", "test") and s.better and len(s.y)]
    for s in [*pairs, *held]:
        if all(s is not other for other in found):
            found.append(s)
    if not found:
        known = [s for s in view.lead if s.better] or list(view.lead)
        found = [max(known, key=len)] if known else []
    return found[:MAIN_CURVES]


def curve_summary(s: Series) -> CurveSummary:
    """The numbers of one curve."""
    best: float | None = None
    best_step: int | None = None
    if s.better is not None and len(s.y):
        i = int(np.argmin(s.y) if s.better == "min" else np.argmax(s.y))
        best, best_step = float(s.y[i]), s.step_at(i)
    return CurveSummary(
        tag=s.tag,
        metric=s.metric,
        split=s.split,
        points=len(s),
        non_finite=int((~s.finite).sum()),
        first_step=int(s.x[0]) if s.has_step else None,
        last_step=int(s.x[-1]) if s.has_step else None,
        last=float(s.value[-1]),
        best=best,
        best_step=best_step,
        better=s.better,
    )
