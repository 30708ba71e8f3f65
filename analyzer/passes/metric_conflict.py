"""Conflicts: sources that tell different values of one curve, and metrics that name different best checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Evidence, Finding, Where, jsonable
from afterrun.analyzer.prose import count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import running_median
from afterrun.analyzer.verdicts import refuted
from afterrun.analyzer.view import RunView
from afterrun.loaders.joining.conflicts import Conflict, from_marks

WINDOW = 3
"""Evaluations of the running median whose best one counts: one lucky evaluation is no best."""


@dataclass(frozen=True, kw_only=True)
class MetricConflict(Pass):
    """What does not fit together. Information: which side is right only a person can tell."""

    code: ClassVar[str] = "metric-conflict"
    title: ClassVar[str] = "Metrics that contradict each other"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="Two records of one run say different things: the same metric has other values in two sources, or the held-out loss and a held-out score are best at different checkpoints.",
        rule="Sources are compared where they are joined, at every step that both have; they conflict where they differ by more than the rounding of both. Held-out loss and held-out scores are compared by the step at which their running median (3 evaluations) "
        "is best: they conflict when the steps lie at least apart_pct of the run apart and the metric at the other's best lies at least worse_pct from its own.",
        abstains="Never: without a second source or metric nothing contradicts.",
        confused_with="Values averaged over other windows in two sources; a loss that rises from over-confidence while accuracy still gains, which is the usual case of the second kind.",
        remedies=(
            "Two sources: look which of them averages, over what, and at which step it writes; keep the one that the trainer wrote first.",
            "Two metrics: choose the checkpoint by the metric that counts, and save the best one by it.",
        ),
        sources=("Guo et al. (2017), arXiv 1706.04599: likelihood overfits before accuracy does",),
    )

    min_evals: int = threshold(10, "evaluations of both metrics", unit="evaluations")
    apart_pct: float = threshold(10.0, "distance of the two best checkpoints", unit="% of the run")
    worse_pct: float = threshold(
        1.0, "what choosing by the other metric costs: percent of a loss, percentage points of a share"
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding for each conflict of sources, and one for the metrics that disagree most."""
        found = [self._of_sources(view, c) for c in from_marks(view.tables.marks)]
        found += list(self._of_metrics(view))[:1]
        if not found:
            found = [refuted(self, view, "Nothing recorded of this run contradicts anything else.")]
        yield from found

    def _of_sources(self, view: RunView, c: Conflict) -> Finding:
        share = 100.0 * c.differing / max(c.shared, 1)
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            rank=c.rank,
            where=Where(step_start=c.step),
            title=f"{c.sentence()}.",
            effect=Effect(
                value=share, unit="% of the shared steps", method="compared beyond the rounding of both"
            ),
            evidence=(
                Evidence(source=c.source, tag=c.tag, step=c.step, value=jsonable(c.value)),
                Evidence(source=c.other_source, tag=c.other_tag, step=c.step, value=jsonable(c.other_value)),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies[:1],
            values=jsonable({"kind": "sources", "differing": c.differing, "shared": c.shared}),
        )

    def _of_metrics(self, view: RunView) -> Iterator[Finding]:
        held = [
            s
            for s in view.lead
            if s.split in ("val", "test")
            and s.better is not None
            and len(s.y) >= self.min_evals
            and s.kind in ("loss", "quality")
        ]
        loss = next((s for s in held if s.metric == "loss"), None)
        scores = [s for s in held if s.kind == "quality" and loss is not None and s.split == loss.split]
        for score in sorted(scores, key=lambda s: s.tag):
            assert loss is not None
            if score.has_step != loss.has_step:
                continue
            by_loss, by_score = _best(loss), _best(score)
            apart = 100.0 * abs(by_loss - by_score) / max(loss.span, 1e-12)
            at_loss, at_score = (float(np.interp(x, score.xf, _smooth(score))) for x in (by_loss, by_score))
            cost = _cost(score, at_loss, at_score)
            if apart < self.apart_pct or cost < self.worse_pct:
                continue
            yield Finding(
                code=self.code,
                status="confirmed",
                severity="info",
                run=view.name,
                where=Where(
                    step_start=int(min(by_loss, by_score)) if loss.has_step else None,
                    step_end=int(max(by_loss, by_score)) if loss.has_step else None,
                ),
                title=f"{loss.tag} is best at {place(loss, by_loss)}, {score.tag} at {place(score, by_score)}: chosen by the loss, {score.tag} is {number(_level(score, at_loss))} instead of {number(_level(score, at_score))}.",
                effect=Effect(
                    value=apart, unit="% of the run between the best checkpoints", method="running medians"
                ),
                evidence=(
                    loss.evidence(loss.row_of(int(np.searchsorted(loss.xf, by_loss))), "best loss"),
                    score.evidence(score.row_of(int(np.searchsorted(score.xf, by_score))), "best score"),
                ),
                parameters=self.parameters(),
                advice=self.explain.remedies[1:],
                values=jsonable(
                    {
                        "kind": "metrics",
                        "loss_tag": loss.tag,
                        "score_tag": score.tag,
                        "best_by_loss_step": by_loss,
                        "best_by_score_step": by_score,
                        "apart_pct": apart,
                        "cost": cost,
                        "said": f"{count(len(score.y), 'evaluation')}, {percent(apart)} of the run apart",
                    }
                ),
            )


def _smooth(s: Series) -> np.ndarray:
    return running_median(s.cost, WINDOW)


def _best(s: Series) -> float:
    return float(s.xf[int(np.argmin(_smooth(s)))])


def _level(s: Series, cost: float) -> float:
    return float(s.from_work(np.array([-cost if s.better == "max" else cost]))[0])


def _cost(s: Series, there: float, best: float) -> float:
    """What a checkpoint costs against the best one: points of a share, else percent."""
    a, b = _level(s, there), _level(s, best)
    return 100.0 * abs(a - b) if s.scale == "logit" else 100.0 * abs(a - b) / max(abs(b), 1e-12)
