"""Stragglers: one rank that the others wait for, again and again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import count, percent, span_time
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.trace.collectives import Collectives
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.lateness import reasons
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True)
class Straggler(Pass):
    """Whether one rank comes last to the collectives persistently, and what that costs the others."""

    code: ClassVar[str] = "straggler"
    title: ClassVar[str] = "Straggling rank"
    about: ClassVar[str] = "gpu"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="In synchronous training every collective lasts until the last rank has come. One rank comes last nearly always, and all others wait for it inside their collective kernels, which look busy.",
        rule="Collectives are matched over the ranks, clocks are aligned on their common ends, and in each the rank that starts last is late by its distance to the next to last: the time that would be won if it "
        "alone were on time. A rank is the straggler when it holds at least lateness_share of all lateness, comes last in at least last_share of the collectives, and costs at least warn_pct of the span.",
        abstains="With traces of fewer than two ranks, or fewer than min_collectives matched ones: equal step times hide the culprit.",
        confused_with="A rank that is slow in a different step each time (imbalance, not a straggler); an offset between the clocks of hosts; the rank with the longest collectives, which is the one that waits.",
        remedies=(
            "Look at the reason named here: a rank that loads slower wants its storage and workers looked at, one that computes slower its clocks, temperature and other processes on the node.",
            "Swap the node and see whether the lateness moves with it.",
            "Where sequence lengths differ, balance tokens over ranks.",
        ),
        sources=(
            "AMD-AGI/TraceLens, straggler summary: the straggler waits least and arrives last most",
            "Understanding Stragglers in Large Model Training (OSDI 2025): cost as the difference to a run without the slow rank",
        ),
    )

    warn_pct: float = threshold(2.0, "cost of one rank as a share of the span that is a warning", unit="%")
    critical_pct: float = threshold(
        15.0, "cost of one rank as a share of the span that is critical", unit="%"
    )
    lateness_share: float = threshold(0.6, "share of all lateness that a straggler holds", unit="share")
    last_share: float = threshold(
        0.5, "share of the collectives to which a straggler comes last", unit="share"
    )
    min_collectives: int = threshold(6, "fewer matched collectives are not judged", unit="collectives")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run: the worst rank."""
        matched = view.trace.collectives
        if matched is None or len(matched) < self.min_collectives:
            found = 0 if matched is None else len(matched)
            title = f"Not assessable: {count(found, 'collective')} could be matched over the ranks."
            missing = ("traces of at least two ranks of one job, with their collectives",)
            yield abstained(self, view, title, missing, {"collectives": found})
            return
        yield self._judged(view, matched)

    def _judged(self, view: RunView, matched: Collectives) -> Finding:
        late = matched.lateness
        cost, total = late.sum(axis=0), float(late.sum())
        span = max(d.span_ns for d in matched.devices)
        worst = int(np.argmax(cost))
        last = np.bincount(matched.last, minlength=late.shape[1]) / len(matched)
        share = 100.0 * float(cost[worst]) / max(span, 1)
        values: dict[str, Any] = {
            "collectives": len(matched),
            "unmatched": matched.unmatched,
            "cost_ns": cost,
            "wait_ns": np.nansum(matched.wait, axis=0),
            "last_share": last,
            "ranks": [rank_of(d) for d in matched.devices],
            "lateness_share": float(cost[worst]) / total if total else 0.0,
            "cost_pct": share,
            "span_ns": span,
            "clock_offset_ns": matched.offset_ns,
            "clock_residual_ns": matched.residual_ns,
        }
        device = matched.devices[worst]
        persistent = values["lateness_share"] >= self.lateness_share and last[worst] >= self.last_share
        if not persistent or share < self.warn_pct:
            title = f"No rank is late persistently: the latest, rank {rank_of(device)}, costs {percent(share)} of the time."
            return refuted(self, view, title, jsonable(values))
        why = reasons(view.trace, matched, worst)
        values |= {"reason": why.name, "reason_share": why.share, "excess_ns": why.excess_ns}
        return self._found(view, device, values, share, str(why.words))

    def _found(
        self, view: RunView, device: DeviceTrace, values: dict[str, Any], share: float, because: str
    ) -> Finding:
        ranks = len(values["ranks"])
        own = values["ranks"].index(rank_of(device))
        lost_ns = float(values["cost_ns"][own])
        return Finding(
            code=self.code,
            status="confirmed",
            severity="critical" if share >= self.critical_pct else "warning",
            run=view.name,
            rank=rank_of(device),
            where=Where(t_start_ns=device.low_ns, t_end_ns=device.high_ns, device=device.device),
            title=f"Rank {rank_of(device)} comes last to {percent(100 * float(values['last_share'][own]))} of {values['collectives']} collectives; "
            f"the other {ranks - 1} wait {span_time(lost_ns)} for it, {percent(share)} of the time. {because}",
            effect=Effect(
                value=share,
                unit="% of the span lost to one rank",
                method="lateness against the next to last rank",
            ),
            parameters=self.parameters(),
            wasted_gpu_s=lost_ns * (ranks - 1) / 1e9,
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def rank_of(device: DeviceTrace) -> int:
    """The rank of a device; its own number where the trace of a node knows no ranks."""
    return device.device if device.rank is None else device.rank
