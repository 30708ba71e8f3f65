"""Hangs: stretches of wall clock in which a run wrote nothing, though it had been writing steadily."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import duration
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class Hang(Pass):
    """Holes in the wall clock of one attempt."""

    code: ClassVar[str] = "hang"
    title: ClassVar[str] = "Hang"
    about: ClassVar[str] = "steps"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="For a long stretch of wall clock within one attempt nothing was logged, though rows came steadily before and after: a collective that waited, storage that did not answer, a suspended process.",
        rule="The distance of two rows of the same attempt, per step between them, is at least ratio times the median and at least min_s in all; no other curve of the run has a row inside. Possible warning. Holes that come at equal distances are evaluation or saving and belong to the step outliers.",
        abstains="Without a wall clock beside the rows.",
        confused_with="A validation or checkpoint that takes long and logs nothing; a resume in the same file; a laptop that slept.",
        remedies=(
            "Look at the text log and the system log of that time; NCCL_DEBUG and TORCH_NCCL_BLOCKING_WAIT say where a collective waits.",
            "Set timeouts (init_process_group(timeout=...)) so that a hang becomes a crash that restarts.",
        ),
        sources=(
            "SageMaker Debugger, StalledTrainingRule: 1,800 s",
            "algorithms section 10: gap above max(10 x median, 300 s)",
        ),
    )

    ratio: float = threshold(10.0, "distance per step over its median", unit="times")
    min_s: float = threshold(300.0, "shortest hole that counts", unit="s")
    max_holes: int = threshold(5, "more holes than this are a rhythm, not hangs", unit="holes")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run: its longest hole."""
        s = view.train_loss or max(view.curves, key=len, default=None)
        if s is None or s.wall_ns is None or len(s) < 10:
            missing = ("a wall clock with each row of a curve",)
            yield abstained(self, view, "Not assessable: no curve with a wall clock is recorded.", missing)
            return
        yield self._of(view, s, s.wall_ns)

    def _of(self, view: RunView, s: Series, wall: np.ndarray) -> Finding:
        gap_s = np.diff(wall) / 1e9
        steps = np.maximum(np.diff(s.x), 1) if s.has_step else np.ones(len(gap_s))
        same = np.diff(s.attempt) == 0
        usual = float(np.median(gap_s[same] / steps[same])) if same.any() else 0.0
        hole = same & (gap_s >= self.min_s) & (gap_s / steps >= self.ratio * max(usual, 1e-9))
        found = [
            int(i)
            for i in np.flatnonzero(hole)
            if not _written_between(view, int(wall[i]), int(wall[i + 1]), s)
        ]
        values: dict[str, Any] = {
            "holes": len(found),
            "usual_s_per_step": usual,
            "longest_gap_s": float(gap_s[same].max()) if same.any() else None,
        }
        if not found or len(found) > self.max_holes:
            title = "Rows came steadily; no hole in the wall clock stands out."
            return refuted(self, view, title, jsonable(values))
        worst = max(found, key=lambda i: float(gap_s[i]))
        lost = float(gap_s[worst] - usual * steps[worst])
        values |= {"lost_s": lost, "total_lost_s": float(sum(gap_s[i] - usual * steps[i] for i in found))}
        devices = view.devices
        return Finding(
            code=self.code,
            status="possible",
            severity="warning",
            run=view.name,
            attempt=int(s.attempt[worst]),
            where=Where(
                step_start=s.step_at(worst),
                step_end=s.step_at(worst + 1),
                t_start_ns=int(wall[worst]),
                t_end_ns=int(wall[worst + 1]),
            ),
            title=f"Nothing was written for {duration(float(gap_s[worst]))} at {_place(s, worst)}, where rows usually come every {duration(usual * float(steps[worst]))}.",
            effect=Effect(value=lost, unit="s without a row", method="wall clock"),
            evidence=(
                Evidence(
                    source=s.source,
                    tag=s.tag,
                    step=s.step_at(worst),
                    value=float(gap_s[worst]),
                    note="seconds to the next row",
                ),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=values["total_lost_s"] * devices if devices else None,
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _written_between(view: RunView, low_ns: int, high_ns: int, but: Series) -> bool:
    """Whether any other curve has a row well inside the hole."""
    inset = (high_ns - low_ns) // 10
    return any(
        o.wall_ns is not None and bool(((o.wall_ns > low_ns + inset) & (o.wall_ns < high_ns - inset)).any())
        for o in view.curves
        if o is not but
    )


def _place(s: Series, i: int) -> str:
    return f"step {int(s.x[i]):,}" if s.has_step else f"point {i + 1:,}"
