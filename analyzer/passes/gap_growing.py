"""Growing gap: held-out and training loss move apart although both still improve."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.matching import Matched, match
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.stats import Trend, trend
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True, kw_only=True)
class GapGrowing(Pass):
    """Trend of the generalisation gap. Information: a gap alone is no fault."""

    code: ClassVar[str] = "gap-growing"
    title: ClassVar[str] = "Growing generalisation gap"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("overfit",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="What the model gains on its training data it gains less and less on data it has not seen. As long as the held-out loss falls too this costs nothing; it says where the run is heading.",
        rule="The gap is the held-out loss less the training loss on the work scale, at every evaluation after the first tenth. It grows when its Theil-Sen trend on block means is sure (one-sided p < p_max, interval above zero) and it "
        "grew by at least min_growth_pct of the loss. Where overfit or divergence is found, that finding tells the story.",
        abstains="Without a training and a held-out curve of one metric, with fewer than min_evals evaluations, or for losses that cross zero.",
        confused_with="Overfitting (the held-out loss turns); a training loss averaged over the epoch before, which lags behind.",
        remedies=(
            "Nothing to do while the held-out loss falls; plan the end of the run near the place where it will not.",
            "More data or stronger regularisation narrows the gap; judge them by the held-out loss and not by the gap.",
        ),
        sources=(
            "Theil (1950), Sen (1968)",
            "Google tuning playbook: a gap alone is no reason to regularise",
        ),
    )

    min_evals: int = threshold(12, "evaluations below which the pass abstains", unit="evaluations")
    min_growth_pct: float = threshold(10.0, "growth of the gap that is told", unit="% of the loss")
    p_max: float = threshold(0.001, "one-sided p value of the growth")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the first pair of curves that can be judged."""
        matched = next(
            (
                m
                for p in view.pairs
                if p.val.scale == p.train.scale == "log"
                and not isinstance(m := match(p), str)
                and len(m.val) >= self.min_evals
            ),
            None,
        )
        if matched is None:
            missing = (f"{self.min_evals} evaluations of a loss that is logged for training too",)
            yield abstained(self, view, "Not assessable: no pair of curves with enough evaluations.", missing)
            return
        yield self._judge(view, matched)

    def _judge(self, view: RunView, m: Matched) -> Finding:
        first = len(m.val) // 10
        gap = (m.val_cost - m.train_cost)[first:]
        t = trend(gap, confidence=0.99)
        growth = t.slope * (len(gap) - 1)
        quarter = max(3, len(gap) // 4)
        start, end = float(np.median(gap[:quarter])), float(np.median(gap[-quarter:]))
        values: dict[str, Any] = {
            "train_tag": m.pair.train.tag,
            "val_tag": m.pair.val.tag,
            "gap_start_pct": change_pct(start),
            "gap_end_pct": change_pct(end),
            "growth_pct": change_pct(growth),
            "p": t.p_up,
            "evaluations": len(m.val),
        }
        told = next(
            (c for c in ("overfit", "divergence") if any(f.is_alarm for f in view.earlier.get(c, ()))), None
        )
        grows = t.p_up < self.p_max and t.low > 0 and growth >= math.log1p(self.min_growth_pct / 100)
        if told is not None or not grows:
            title = f"The gap between {m.pair.val.tag} and {m.pair.train.tag} does not surely grow."
            if told is not None and grows:
                title = f"The gap grows, which {told} tells."
            return refuted(self, view, title, jsonable(values))
        return self._finding(view, m, first, t, values)

    def _finding(self, view: RunView, m: Matched, first: int, t: Trend, values: dict[str, Any]) -> Finding:
        length = len(m.val) - first - 1
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            rank=m.pair.val.rank,
            where=Where(step_start=m.step_at(first), step_end=m.step_at(len(m.val) - 1)),
            title=f"{m.pair.val.tag} lay {percent(values['gap_start_pct'])} above {m.pair.train.tag} at first and {percent(values['gap_end_pct'])} at the end; the held-out loss did not turn.",
            effect=Effect(
                value=values["growth_pct"],
                low=change_pct(t.low * length),
                high=change_pct(t.high * length),
                unit="% of the loss, growth of the gap",
                level=0.99,
                method="Theil-Sen slope on block means",
            ),
            evidence=(
                m.pair.val.evidence(m.pair.val.row_of(first), "held-out, first"),
                m.pair.val.evidence(m.pair.val.row_of(len(m.val) - 1), "held-out, last"),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )
