"""Exploding gradients: a norm that leaps by an order of magnitude above what it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.excursions import Excursion, Rule, upward
from afterrun.analyzer.curves.spikes import tail
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import count, number, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

SHOWN = 5
LOUDER = ("divergence", "non-finite", "spike", "restart")
"""Findings that tell the same event by what it did to the loss."""
NEAR_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class GradExploding(Pass):
    """Leaps of the total gradient norm."""

    code: ClassVar[str] = "grad-exploding"
    title: ClassVar[str] = "Exploding gradients"
    about: ClassVar[str] = "gradients"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = LOUDER
    explain: ClassVar[Explanation] = Explanation(
        meaning="The gradient norm leapt far above its level. One such step without clipping can undo the training; with clipping it shows batches or weights that are not in order.",
        rule="On the logarithm of the norm: robust z of at least z_min above the level that its own past predicts, and at least factor_min times that level; a norm that stays up is counted too. "
        "The leaps must stand apart from the tail of the noise. A warm-up at the start is left out. Where the loss spiked, diverged or turned NaN at the same place, that finding tells the story and this one is a note to it.",
        abstains="Without a gradient norm, or with fewer than min_run_points values.",
        confused_with="A gradient norm that grows slowly late in training while the loss falls, which is common and harmless; overflow steps of a float16 loss scaler, which are skipped.",
        remedies=(
            "Look at the batches of these steps: damaged samples, empty targets, very long sequences.",
            "Clip the gradient norm (1.0 is usual); if it is clipped, look whether the norm that is logged is the one before clipping.",
            "Lower the peak learning rate or lengthen the warm-up if leaps cluster at the highest rate.",
            "Skip steps whose norm is far above its running mean.",
        ),
        sources=(
            "Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural networks",
            "ZClip (arXiv 2504.02507): z-score on an exponential mean of the gradient norm",
        ),
    )

    z_min: float = threshold(
        7.0, "robust z above the predicted level", unit="sd", source="OLMo 2 spike score"
    )
    factor_min: float = threshold(10.0, "times the level; smaller leaps are the noise of batches", unit="x")
    min_run_points: int = threshold(30, "gradient norms needed", unit="points")
    min_points: int = threshold(20, "values before a leap needed to know the level", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding for the total norm, listing its leaps."""
        norm = view.grad_norm
        if norm is None or int((norm.y > 0).sum()) < self.min_run_points:
            hint = view.map_hint("grad_norm", "train")
            missing = (f"a gradient norm ({self.min_run_points} values: {hint})",)
            yield abstained(self, view, "Exploding gradients: no gradient norm is recorded.", missing)
            return
        positive = np.flatnonzero(norm.y > 0)
        u = np.log(norm.y[positive])
        rule = Rule(
            z_min=self.z_min,
            rise_min=math.log(self.factor_min),
            min_points=self.min_points,
            max_points=max(self.min_points, len(u) // 20),
        )
        leaps = upward(u, rule)
        noise = tail(u, rule, leaps)
        leaps = [e for e in leaps if e.held > 1 or noise.apart(min(e.z, 1e9))]
        if not leaps:
            top = float(np.exp(u.max() - np.median(u)))
            yield refuted(
                self,
                view,
                f"{norm.tag} does not leap; its largest value is {number(top)} times the median.",
                {"tag": norm.tag, "largest_over_median": top},
            )
            return
        yield self._finding(view, norm, leaps, positive)

    def _finding(
        self, view: RunView, norm: Series, leaps: Sequence[Excursion], positive: np.ndarray[Any, Any]
    ) -> Finding:
        top = max(leaps, key=lambda e: e.height)
        first = int(positive[leaps[0].start])
        last = int(positive[min(leaps[-1].end, len(positive)) - 1])
        told = _told(view, norm, first)
        times = float(math.exp(min(top.height, 700.0)))
        stays = [e for e in leaps if not e.returned]
        others = f" and leaps {count(len(leaps) - 1, 'more time')}" if len(leaps) > 1 else ""
        peak = int(positive[top.peak])
        what = (
            "and stays up" if stays and top is stays[-1] else f"from a level of {number(math.exp(top.level))}"
        )
        title = f"{norm.tag} leaps to {number(float(norm.y[peak]))} at {place(norm, norm.xf[peak])}, {number(times)} times its level, {what}{others}."
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info" if told else "warning",
            run=view.name,
            rank=norm.rank,
            where=Where(
                step_start=norm.step_at(first),
                step_end=norm.step_at(last),
                t_start_ns=norm.wall_at(first),
                t_end_ns=norm.wall_at(last),
            ),
            title=title,
            effect=Effect(value=times, unit="times the level before", method="largest leap"),
            evidence=tuple(
                norm.evidence(norm.row_of(int(positive[e.peak])), f"level {number(math.exp(e.level))}")
                for e in sorted(sorted(leaps, key=lambda e: -e.height)[:SHOWN], key=lambda e: e.start)
            ),
            parameters=self.parameters(),
            advice=(f"Read the finding {told} first: it is the same event.", *self.explain.remedies)
            if told
            else self.explain.remedies,
            values=jsonable(
                {
                    "tag": norm.tag,
                    "leaps": len(leaps),
                    "steps": [norm.step_at(int(positive[e.start])) for e in leaps],
                    "largest_factor": times,
                    "largest_robust_z": top.z,
                    "stays_up": bool(stays),
                    "part_of": told,
                }
            ),
        )


def _told(view: RunView, norm: Series, first: int) -> str | None:
    """The code of a finding about the loss at the same place."""
    near = NEAR_SHARE * norm.span
    x = float(norm.xf[first])
    for code in LOUDER:
        for f in view.earlier.get(code, ()):
            start = f.where.step_start
            if f.status in ("confirmed", "possible") and start is not None and norm.has_step:
                end = f.where.step_end if f.where.step_end is not None else start
                if start - near <= x <= end + near:
                    return code
    return None
