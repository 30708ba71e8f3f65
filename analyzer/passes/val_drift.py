"""Validation drift: the held-out loss rises while training stands still, so it is not the model that changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from afterrun.analyzer.finding import Effect, Finding
from afterrun.analyzer.registry import Explanation, Pass
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

TOLD_BY = ("divergence", "level-shift", "collapse")
"""Findings that tell why training stands still on another level."""


@dataclass(frozen=True, kw_only=True)
class ValDrift(Pass):
    """What ``overfit`` saw and could not blame on training."""

    code: ClassVar[str] = "val-drift"
    title: ClassVar[str] = "Drift of the validation"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("overfit", *TOLD_BY)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The held-out loss got worse for good although the training loss neither fell nor rose. A model that memorises lowers its training loss; here something on the side of the validation changed.",
        rule="The turn of the held-out curve is that of overfit, with the same tests. Where the training curve is flat over the same stretch (its 95 % interval within 2 %) and not at its floor, the rise is no overfitting and is told here, as possible.",
        abstains="Where overfit abstains.",
        confused_with="Overfitting (the training loss falls), divergence (it rises), a change of the validation set that was meant.",
        remedies=(
            "Evaluate an old checkpoint again with the code of the end: if it scores worse than it did, the validation changed.",
            "Look at running statistics (batch norm, exponential averages) that go on moving while the weights stand still.",
            "Check that the validation data is the same and in evaluation mode: dropout off, augmentation off.",
        ),
        sources=("Ioffe and Szegedy (2015), arXiv 1502.03167: running statistics are used at evaluation",),
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding, from what overfit measured."""
        told = list(view.earlier.get("overfit", ()))
        if not told or all(f.status == "abstained" for f in told):
            missing = told[0].missing if told else ("the verdict of overfit",)
            yield abstained(self, view, "Not assessable: no held-out curve could be judged.", missing)
            return
        drift = next((f for f in told if f.values.get("reason") == self.code), None)
        if drift is None:
            yield refuted(
                self, view, "No drift of the validation: it did not turn while training stood still."
            )
            return
        told_by = next((c for c in TOLD_BY if any(f.is_alarm for f in view.earlier.get(c, ()))), None)
        if told_by is not None:
            yield refuted(self, view, f"The held-out loss rose with the training, which {told_by} tells.")
            return
        yield self._finding(view, drift)

    def _finding(self, view: RunView, drift: Finding) -> Finding:
        values: dict[str, Any] = dict(drift.values)
        return Finding(
            code=self.code,
            status="possible",
            severity="warning",
            run=view.name,
            rank=drift.rank,
            where=drift.where,
            title=drift.title.removeprefix("No overfitting: "),
            effect=drift.effect
            or Effect(value=values.get("rise"), unit="% worse than the best level", method="as overfit"),
            evidence=drift.evidence,
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=values,
        )
