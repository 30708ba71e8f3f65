"""Not learning: a training loss that never moved from where it began."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.curves.carry_forward import real_points
from afterrun.analyzer.curves.flatness import stretch
from afterrun.analyzer.curves.lr_schedule import schedule_beside
from afterrun.analyzer.curves.plateau_cause import REMEDIES
from afterrun.analyzer.curves.plateau_text import change, measures
from afterrun.analyzer.curves.rest import Rest, never_moved
from afterrun.analyzer.curves.rest_finding import rest_finding
from afterrun.analyzer.finding import Finding, jsonable
from afterrun.analyzer.prose import count
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True, kw_only=True)
class NotLearning(Pass):
    """A loss without progress from the first value to the last."""

    code: ClassVar[str] = "not-learning"
    title: ClassVar[str] = "No learning at all"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="From the first step to the last the training loss stayed where it began: nothing was learned. The whole run was paid for nothing.",
        rule="The improvement over the whole curve (Theil-Sen slope on block means, 95 % interval) is surely less than no_progress_pct and not surely more than tolerance_pct, and at no tenth of the run did the "
        "median lie lower than the beginning by no_progress_pct. Confirmed where it is surely less than half of that. The cause is read from learning rate, gradient norm and parameters.",
        abstains="Without a training loss, with fewer than min_points values, for a loss that crosses zero, or when the record begins in the middle of the run. Where noise leaves it open the answer is 'not shown'.",
        confused_with="A plateau, which was fallen into first; a very slow start, which a longer run would show; a fine-tuning that began at its floor; losses of adversaries and of reinforcement learning, which measure no progress.",
        remedies=REMEDIES["never_moved"],
        sources=(
            "Karpathy (2019), A Recipe for Training Neural Networks: overfit one batch first",
            "Theil (1950), Sen (1968): slope and its interval",
        ),
    )

    min_points: int = threshold(
        12, "values of the training loss below which the pass abstains", unit="points"
    )
    tolerance_pct: float = threshold(0.5, "a change smaller than this is none", unit="%")
    no_progress_pct: float = threshold(
        5.0,
        "a run that surely never gained more than this did not learn; 'confirmed' below half of it",
        unit="%",
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the training loss."""
        s = view.train_loss
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Learning: no training loss is recorded.", (f"a training loss: {hint}",)
            )
            return
        s, _ = real_points(s)
        if len(s.y) < self.min_points or s.scale == "raw":
            why = "crosses zero" if s.scale == "raw" and len(s.y) else f"has {count(len(s.y), 'value')}"
            missing = (f"{self.min_points} positive values of {s.tag}",)
            yield abstained(self, view, f"Learning: {s.tag} {why}.", missing, {"points": len(s.y)})
            return
        no_progress = math.log1p(self.no_progress_pct / 100.0)
        whole = never_moved(s, no_progress, math.log1p(self.tolerance_pct / 100.0))
        if whole is None:
            seen = stretch(s)
            title = f"{s.tag} moved, or its noise leaves it open: improvement {change(s, seen)} over the run."
            yield refuted(self, view, title, jsonable({"tag": s.tag, **measures(s, seen, None)}))
            return
        sure = whole.high < no_progress / 2.0
        rest = Rest(kind="never moved", status="confirmed" if sure else "possible", stretch=whole)
        yield rest_finding(self, view, s, rest, schedule_beside(view, s), None)
