"""Overtrained: the held-out loss had reached its level long before the end, and the rest of the run bought nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.early_stop import Replay
from afterrun.analyzer.curves.matching import Matched, match, stand_ins
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import count, gpu_time, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.stats import noise_scale, running_median
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

WINDOW_SHARE = 0.07
"""Running median over max(3, 7 %) of the evaluations, as for the turn of a curve."""


@dataclass(frozen=True, kw_only=True)
class Overtrained(Pass):
    """Evaluations after the last one that bought anything. Information: money, not a fault of the model."""

    code: ClassVar[str] = "overtrained"
    title: ClassVar[str] = "Trained past the best"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("overfit",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The held-out loss came as low as it ever would, and the run went on. The model did not get worse by it; the time after that bought nothing.",
        rule="The level is reached at the first evaluation whose running median (max(3, 7 %) of the evaluations) lies within max(tolerance_pct, sigma / sqrt(window)) of the lowest one on the work scale. "
        "It is told when at least min_share of the run lies behind it and no overfit is found; overfit tells that story where the curve turned. The patience table is that of overfit: where each rule would have "
        "stopped and what it gives up.",
        abstains="Without a held-out curve beside a training curve, or with fewer than min_evals evaluations.",
        confused_with="Overfitting (the curve rises again); the end of a decayed schedule, which moves the loss until the last step; a metric that counts and still improves, such as accuracy.",
        remedies=(
            "Stop early with the patience that the table names, or plan a shorter run with the schedule shortened to it.",
            "Spend the time on a larger model or more data: this size has given what it can.",
        ),
        sources=(
            "L. Prechelt, Early Stopping - But When? (1998)",
            "SageMaker Debugger, rule Overtraining",
        ),
    )

    min_evals: int = threshold(10, "evaluations below which the pass abstains", unit="evaluations")
    min_share: float = threshold(0.3, "part of the run behind the last gain", unit="share of the run")
    tolerance_pct: float = threshold(0.2, "a gain smaller than this is none", unit="% of the loss")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the first pair that can be judged."""
        pairs = view.pairs or stand_ins(view)
        matched = next(
            (m for p in pairs if not isinstance(m := match(p), str) and len(m.val) >= self.min_evals), None
        )
        if matched is None:
            missing = (f"{self.min_evals} evaluations of a held-out loss beside a training loss",)
            yield abstained(self, view, "Not assessable: too few evaluations are recorded.", missing)
            return
        if any(f.is_alarm for f in view.earlier.get("overfit", ())):
            title = f"{matched.pair.val.tag} turned, which overfit tells."
            yield refuted(self, view, title, {"val_tag": matched.pair.val.tag})
            return
        yield self._judge(view, matched)

    def _judge(self, view: RunView, m: Matched) -> Finding:
        window = max(3, round(WINDOW_SHARE * len(m.val)) | 1)
        smooth = running_median(m.val_cost, window)
        near = max(math.log1p(self.tolerance_pct / 100), noise_scale(m.val_cost) / math.sqrt(window))
        reached = int(np.argmax(smooth <= smooth.min() + near))
        x = m.x
        share = float(x[-1] - x[reached]) / max(float(x[-1] - x[0]), 1e-12)
        replay = Replay(view, m)
        table = replay.patience_table()
        rule = min(
            (r for r in table if r["stops"] and not r["min_delta_pct"] and (r["given_up_pct"] or 0.0) < 1.0),
            key=lambda r: r["patience"],
            default=None,
        )
        values: dict[str, Any] = {
            "val_tag": m.pair.val.tag,
            "reached_step": m.step_at(reached),
            "reached_value": float(m.val[reached]),
            "last_value": float(m.val[-1]),
            "share_behind_pct": 100 * share,
            "evaluations": len(m.val),
            "patience": None if rule is None else rule["patience"],
            "stop_step": None if rule is None else rule["stop_step"],
            "saved_pct": None if rule is None else rule["saved_pct"],
            "gpu_s_behind": replay.gpu_s_after(reached),
            "patience_table": table,
        }
        at = place(m.pair.val, float(x[reached]))
        if share < self.min_share:
            title = f"{m.pair.val.tag} was still gaining until {at}, {percent(100 * share)} before the end."
            return refuted(self, view, title, jsonable(values))
        stop = (
            ""
            if rule is None or rule["stop_step"] is None
            else f"; patience {rule['patience']} would have stopped at step {rule['stop_step']:,}"
        )
        cost = values["gpu_s_behind"]
        spent = "" if cost is None else f", {gpu_time(cost)}"
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            rank=m.pair.val.rank,
            where=Where(
                step_start=m.step_at(reached),
                step_end=m.step_at(len(m.val) - 1),
                t_start_ns=m.wall_at(reached),
                t_end_ns=m.wall_at(len(m.val) - 1),
            ),
            title=f"{m.pair.val.tag} had its level of {number(float(m.val[reached]))} by {at}; the last {percent(100 * share)} of the run{spent} bought nothing{stop}.",
            effect=Effect(
                value=100 * share,
                unit="% of the run behind the last gain",
                method="running median of the evaluations",
            ),
            evidence=(
                m.pair.val.evidence(m.pair.val.row_of(reached), "level reached"),
                m.pair.val.evidence(
                    m.pair.val.row_of(len(m.val) - 1), f"last of {count(len(m.val), 'evaluation')}"
                ),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=cost,
            advice=self.explain.remedies,
            values=jsonable(values),
        )
