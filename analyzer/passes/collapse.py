"""Collapse: a score that had been reached (a reward, a training accuracy) is lost for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afterrun.analyzer.curves.rise import onset, rise
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

TOLD_BY = ("divergence", "level-shift")
"""Findings about the training loss that tell the same story."""


@dataclass(frozen=True, kw_only=True)
class Collapse(Pass):
    """Most of what a score had gained is lost again and not regained before the end."""

    code: ClassVar[str] = "collapse"
    title: ClassVar[str] = "Collapse of a score"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = TOLD_BY
    explain: ClassVar[Explanation] = Explanation(
        meaning="A score that training had raised, such as the reward of an agent or the accuracy on training data, fell back and stayed down. "
        "In reinforcement learning this is the failure that the loss does not show: the policy forgot what it could do.",
        rule="The curve is cut into about fifty blocks, turned so that lower is better; their medians are compared. What was gained is the way from the first "
        "block to the best one. The score collapsed when the best of the blocks in the last stay_share of the run lies at least lost_pct of the gain, and "
        "noise_factor standard errors of a difference of two blocks, below the best block of all. The onset is the corner of a two-line fit around the "
        "last visit to the best level. Where the training loss diverges or shifts too, that finding tells the story and this one is information.",
        abstains="Without a reward or a training score whose better direction is known, or with fewer than min_points finite values.",
        confused_with="Exploration noise that the policy recovers from; a curriculum that makes the task harder; an evaluation on other data; overfitting, which lowers "
        "the score on held-out data alone.",
        remedies=(
            "Go back to the last checkpoint before the onset, and keep the best one by this score from now on.",
            "Make updates smaller: lower the learning rate, the clip range or the number of epochs on one batch of experience.",
            "Look at the divergence of the policy from the old one (approximate KL) and at the entropy around the onset.",
            "Look for a change of the environment, the data or the reward at the onset.",
        ),
        sources=(
            "Schulman et al. (2017), arXiv 1707.06347: large updates of a policy are destructive",
            "Dohare et al. (2024), Nature 632: policy collapse in long trainings",
        ),
    )

    lost_pct: float = threshold(60.0, "share of the gain that must be lost again", unit="% of the gain")
    noise_factor: float = threshold(
        5.0,
        "the fall must also be this many standard errors of a difference of two blocks",
        unit="standard errors",
    )
    stay_share: float = threshold(
        0.1, "final part of the run in which the score must stay down throughout", unit="share of the points"
    )
    min_points: int = threshold(20, "finite values below which a curve is not judged", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the score that lost most, or one that none did."""
        scores = list(_scores(view))
        judged = [s for s in scores if len(s.y) >= self.min_points]
        if not judged:
            hint = view.map_hint("reward", "none")
            missing = (
                f"a reward or a training score: {hint}" if not scores else f"{self.min_points} finite values"
            )
            title = "Collapse: no score of training is recorded."
            if scores:
                title = f"Collapse: {scores[0].tag} holds {count(len(scores[0].y), 'finite value')}."
            yield abstained(self, view, title, (missing,))
            return
        found = [f for s in judged if (f := self._of(view, s)) is not None]
        if found:
            yield max(found, key=lambda f: float(f.values["lost_pct"]))
        else:
            tags = ", ".join(s.tag for s in judged[:3])
            yield refuted(
                self, view, f"No collapse: {tags} kept what it gained.", {"tags": [s.tag for s in judged]}
            )

    def _of(self, view: RunView, s: Series) -> Finding | None:
        r = rise(s.cost, self.stay_share)
        gain, kept_off = r.start - r.low, r.least - r.low
        if gain <= self.noise_factor * r.se or kept_off < max(
            self.lost_pct / 100 * gain, self.noise_factor * r.se
        ):
            return None
        o = onset(s.cost, r)
        start, best, end = (_level(s, cost) for cost in (r.start, r.low, r.end))
        lost = 100.0 * (best - end) / (best - start) if best != start else 100.0
        folded = any(f.is_alarm for code in TOLD_BY for f in view.earlier.get(code, ()))
        values = {
            "tag": s.tag,
            "start_level": start,
            "best_level": best,
            "best_step": s.step_at(r.bottom),
            "end_level": end,
            "lost_pct": lost,
            "onset_step_low": s.step_at(o.low),
            "onset_step_high": s.step_at(o.high),
            "told_by_loss": folded,
        }
        at = place(s, s.xf[o.at])
        whole = "all" if lost >= 99.5 else percent(lost)
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info" if folded else "critical" if s.metric == "reward" else "warning",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(o.at),
                step_end=s.step_at(len(s.y) - 1),
                t_start_ns=s.wall_at(o.at),
                t_end_ns=s.wall_at(len(s.y) - 1),
            ),
            title=f"{s.tag} lost {whole} of what it had gained from {at} on: from {number(best)} back to {number(end)} (it began at {number(start)}).",
            effect=Effect(
                value=lost, unit="% of the gain lost", method="medians of blocks: first, best, and last"
            ),
            evidence=(
                s.evidence(s.row_of(r.bottom), "inside the best block"),
                s.evidence(s.row_of(o.at), "onset"),
                s.evidence(s.row_of(len(s.y) - 1), "last finite value"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=None if folded else view.gpu_s_between(float(s.xf[o.at]), float(s.xf[-1])),
            advice=(f"Go back to the last checkpoint before {at}.", *self.explain.remedies[1:]),
            values=jsonable(values),
        )


def _scores(view: RunView) -> Iterator[Series]:
    """Curves of training whose rise is the goal: the reward wherever it was measured, scores on training data."""
    reward = view.pick("reward", "train", "none", "val")
    if reward is not None:
        yield reward
    for s in view.lead:
        if (
            s.kind == "quality"
            and s.split in ("train", "none")
            and s.better is not None
            and s.metric != "reward"
            and len(s.y)
        ):
            yield s


def _level(s: Series, cost: float) -> float:
    u = -cost if s.better == "max" else cost
    return float(s.from_work(np.array([u]))[0])
