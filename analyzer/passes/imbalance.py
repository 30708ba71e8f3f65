"""Imbalance: devices of one job that do not have the same amount of work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, jsonable
from afterrun.analyzer.prose import percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.collectives import Collectives
from afterrun.analyzer.trace.words import device_name
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class Imbalance(Pass):
    """How unevenly the devices compute, and what is lost to ranks that are slow by turns."""

    code: ClassVar[str] = "imbalance"
    title: ClassVar[str] = "Uneven load"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    after: ClassVar[tuple[str, ...]] = ("straggler",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The devices of a job compute for unequal times, or a different rank is slow in each step, so that all wait in turn.",
        rule="Skew is (largest - median) / median of the time in kernels of computation over the devices of the trace: information from info_skew, possible warning from warn_skew unless a straggler explains it. With matched collectives, the time lost to the last rank of each, whichever it is, over the span: "
        "possible information from turns_pct where no straggler holds most of it.",
        abstains="With fewer than two devices.",
        confused_with="A straggler, which is the same rank each time; pipeline stages, which differ on purpose; processes of independent jobs in one capture.",
        remedies=(
            "Balance tokens instead of samples: group by length, pack sequences.",
            "Look at the split of layers over pipeline stages, or of experts over ranks.",
        ),
        sources=("TraceML: skew above 0.2 and 0.3", "SageMaker Debugger, LoadBalancing"),
    )

    info_skew: float = threshold(0.1, "skew of computing time that is told", unit="", source="TraceML")
    warn_skew: float = threshold(0.3, "skew of computing time that is a warning", unit="", source="TraceML")
    turns_pct: float = threshold(5.0, "share of the span lost to ranks that are late by turns", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run."""
        devices = view.trace.devices
        if len(devices) < 2:
            title = "Not assessable: the trace holds fewer than two devices."
            yield abstained(self, view, title, ("traces of at least two devices or ranks of one job",))
            return
        busy = np.array([d.union_of("kernel").total_ns for d in devices], np.float64)
        median = float(np.median(busy))
        skew = (float(busy.max()) - median) / median if median else 0.0
        matched = view.trace.collectives
        turns = _turns_pct(matched)
        values: dict[str, Any] = {
            "compute_ns": busy,
            "devices": [device_name(d) for d in devices],
            "skew": skew,
            "late_by_turns_pct": turns,
        }
        named = any(f.is_alarm for f in view.earlier.get("straggler", ()))
        by_turns = turns is not None and turns >= self.turns_pct and not named
        if skew < self.info_skew and not by_turns:
            title = f"{len(devices)} devices compute for equal times within {percent(100 * skew)}."
            yield refuted(self, view, title, jsonable(values))
            return
        top = devices[int(busy.argmax())]
        title = (
            f"{device_name(top)} computes {percent(100 * skew)} longer than the median of {len(devices)} devices ({span_time(float(busy.max()))} against {span_time(median)})."
            if skew >= self.info_skew
            else f"Ranks are late by turns: {percent(turns or 0)} of the time is lost to whichever comes last, and no single rank holds most of it."
        )
        yield Finding(
            code=self.code,
            status="possible",
            severity="warning" if skew >= self.warn_skew and not named else "info",
            run=view.name,
            rank=top.rank,
            title=title,
            effect=Effect(
                value=skew, unit="(largest - median) / median of computing time", method="union of kernels"
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _turns_pct(matched: Collectives | None) -> float | None:
    if matched is None:
        return None
    span = max(d.span_ns for d in matched.devices)
    return 100.0 * float(matched.lateness.sum()) / max(span, 1)
