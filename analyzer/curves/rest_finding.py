"""The finding about a training loss at rest, whichever pass asks: what it rests at, since when, and why."""

from __future__ import annotations

import numpy as np

from afterrun.analyzer.curves.descent import Descent
from afterrun.analyzer.curves.lr_schedule import Schedule, lr_evidence
from afterrun.analyzer.curves.plateau_cause import REMEDIES, Scene, causes, scheduler_step
from afterrun.analyzer.curves.plateau_text import measures, rest_title, size
from afterrun.analyzer.curves.rest import Rest
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.registry import Pass
from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView


def rest_finding(
    one: Pass, view: RunView, s: Series, rest: Rest, schedule: Schedule | None, descent: Descent | None
) -> Finding:
    """The finding of a pass about a training loss at rest, its cause read from everything beside it."""
    start, end = float(s.xf[rest.stretch.start]), float(s.xf[-1])
    scene = Scene(
        view=view,
        loss=s,
        start=start,
        end=end,
        schedule=schedule,
        descent=descent if rest.kind in ("stalled", "flat at the end") else None,
    )
    found = causes(scene)
    nothing_left = found[0].name == "converged" and rest.kind != "stalled"
    alarm = rest.kind != "flat at the end" and not nothing_left
    cost = view.gpu_s_between(start, end) if s.has_step else None
    values = {
        "tag": s.tag,
        "kind": rest.kind,
        "cause": found[0].name,
        "causes": [{"name": c.name, "because": c.because} for c in found],
        "onset_step": s.step_at(rest.stretch.start),
        "onset_low_step": None if rest.onset_low is None or not s.has_step else round(rest.onset_low),
        "onset_high_step": None if rest.onset_high is None or not s.has_step else round(rest.onset_high),
        "share_of_run_pct": 100.0 * (end - start) / max(s.span, 1e-12),
        "lr_share_start": None if schedule is None else float(schedule.at(np.array([start]))[0]),
        "lr_share_end": None if schedule is None else float(schedule.at(np.array([end]))[0]),
        "gpu_s_at_rest": cost,
        "reduce_on_plateau_step": scheduler_step(view),
        **measures(s, rest.stretch, descent),
    }
    return Finding(
        code=one.code,
        status=rest.status,
        severity="warning" if alarm else "info",
        run=view.name,
        rank=s.rank,
        where=stretch_where(s, rest.stretch.start, len(s.y) - 1),
        title=rest_title(s, rest, found[0], values),
        effect=Effect(
            value=size(s, rest.stretch.improvement),
            low=size(s, rest.stretch.low),
            high=size(s, rest.stretch.high),
            unit="% improvement since the onset",
            method="Theil-Sen slope on block means, Sen's interval",
        ),
        evidence=(
            s.evidence(s.row_of(0), "first value"),
            s.evidence(s.row_of(rest.stretch.start), "onset"),
            s.evidence(s.row_of(len(s.y) - 1), "last value"),
            *lr_evidence(view.lr),
        ),
        parameters=one.parameters(),
        wasted_gpu_s=cost if alarm else None,
        advice=REMEDIES[found[0].name] if rest.kind != "never moved" else REMEDIES["never_moved"],
        values=jsonable(values),
    )


def stretch_where(s: Series, first: int, last: int) -> Where:
    """From one finite point of a curve to another."""
    return Where(
        step_start=s.step_at(first),
        step_end=s.step_at(last),
        t_start_ns=s.wall_at(first),
        t_end_ns=s.wall_at(last),
    )
