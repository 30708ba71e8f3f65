"""Level shift: the training loss steps up from one point to the next and stays there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.spikes import lr_factor, value_of
from afterrun.analyzer.curves.step_up import StepUp, comes_back, step_up
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

RATE_FACTOR = 1.5
"""A learning rate that rose this much at the step is named as what changed."""


@dataclass(frozen=True, kw_only=True)
class LevelShift(Pass):
    """One step up of the training loss that does not come back."""

    code: ClassVar[str] = "level-shift"
    title: ClassVar[str] = "Level shift of the training loss"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("lr-jump",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="From one point to the next the training loss stood on a higher level, and training went on from there. Something other than learning changed: the state "
        "that was resumed, the data, the loss, the precision.",
        rule="At every point the median of the points behind (3 % of the curve, 10 to 50) is compared with the median of as many before, and with the same difference one "
        "stretch earlier and later, on the work scale u (log of a positive loss). A step is higher than rise_min_pct, z_min robust standard deviations of that excess elsewhere on the curve, and "
        "four standard deviations of a single point; most of it happens between two points; and for stay_share of the run no block of points comes back to half of its height, measured "
        "from where the curve was going. A step that goes on rising is left to divergence. A step at a planned warm restart (see lr-jump) is its answer when the loss comes back to half of "
        "it before the next restart, or when the run ends with the rate still above half of what it rose to.",
        abstains="Without a training loss, or with fewer than min_points values.",
        confused_with="A spike (comes back), a divergence (goes on rising), the jump at a learning rate that was raised (recovers), a warm restart where no learning rate is recorded, the end of a steep descent.",
        remedies=(
            "Look for what changed at the step: a resume with lost optimizer state, another data mix or sequence length, a loss weight, a change of precision.",
            "Go back to the last checkpoint before it and continue with the configuration of that time.",
            "If the change was meant (a harder data mix), compare the levels by a held-out set that did not change.",
        ),
        sources=(
            "Truong, Oudre and Vayatis (2020), Signal Processing 167: change points by a window that slides",
            "PaLM (arXiv 2204.02311): going back to a checkpoint before an instability",
        ),
    )

    rise_min_pct: float = threshold(10.0, "least height of a step", unit="% of the loss")
    z_min: float = threshold(
        6.0, "height in robust standard deviations of the same difference elsewhere", unit="sd"
    )
    stay_share: float = threshold(
        0.1, "stretch behind the step in which the loss must not come back", unit="share of the points"
    )
    min_points: int = threshold(60, "values below which a curve is not judged", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the training loss: its highest step."""
        s = view.train_loss
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Level shift: no training loss is recorded.", (f"a training loss: {hint}",)
            )
            return
        if len(s.y) < self.min_points:
            title = f"Level shift: {s.tag} holds {count(len(s.y), 'finite value')}."
            yield abstained(self, view, title, (f"{self.min_points} values of the training loss",))
            return
        answers = _answers_to_restarts(view, s)
        found = step_up(
            s.u, rise_min=self._least(s), z_min=self.z_min, stay_share=self.stay_share, known=answers
        )
        if found is None or found.climbs:
            title = f"No level shift: {s.tag} takes no step up that stays."
            if found is not None:
                title = f"No level shift: {s.tag} steps up at {place(s, s.xf[found.at])} and goes on rising."
            values = {"tag": s.tag, "points": len(s.y), "at_restarts": [s.step_at(i) for i in answers]}
            yield refuted(self, view, title, values)
            return
        yield self._finding(view, s, found)

    def _least(self, s: Series) -> float:
        if s.scale == "log":
            return math.log1p(self.rise_min_pct / 100.0)
        low, high = np.percentile(s.u, [5, 95])  # no ratio to speak of: a share of the range the curve covers
        return self.rise_min_pct / 100.0 * float(high - low)

    def _finding(self, view: RunView, s: Series, found: StepUp) -> Finding:
        at = float(s.xf[found.at])
        resumed = bool(np.diff(s.attempt[s.finite][found.at - 1 : found.at + 1]).any())
        factor = lr_factor(view.lr, at)
        cause = "resume" if resumed else "learning rate" if (factor or 0.0) >= RATE_FACTOR else None
        error = 1.96 * found.height / found.z
        log = s.scale == "log"
        values: dict[str, Any] = {
            "tag": s.tag,
            "onset_step": s.step_at(found.at),
            "before_level": value_of(s, found.before),
            "after_level": value_of(s, found.after),
            "rise_pct": change_pct(found.height) if log else None,
            "robust_z": found.z,
            "at_resume": resumed,
            "lr_factor": factor,
            "cause": cause,
        }
        return Finding(
            code=self.code,
            status="confirmed",
            severity="warning",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(found.at),
                step_end=s.step_at(len(s.y) - 1),
                t_start_ns=s.wall_at(found.at),
                t_end_ns=s.wall_at(len(s.y) - 1),
            ),
            title=_title(s, at, values),
            effect=Effect(
                value=change_pct(found.height) if log else found.height,
                low=change_pct(found.height - error) if log else found.height - error,
                high=change_pct(found.height + error) if log else found.height + error,
                unit="% above the level before" if log else "above the level before",
                method="how much the same difference moves elsewhere on the curve, normal",
            ),
            evidence=(
                s.evidence(s.row_of(found.at - 1), "last value before the step"),
                s.evidence(s.row_of(found.at), "first value on the new level"),
            ),
            parameters=self.parameters(),
            advice=_advice(s, at, cause, self.explain.remedies),
            values=jsonable(values),
        )


def _answers_to_restarts(view: RunView, s: Series) -> list[int]:
    """Points of planned warm restarts, as far as what the loss does at them is the answer to the rate."""
    told = [x for f in view.earlier.get("lr-jump", ()) for x in f.values.get("restarts", ())]
    points = [int(i) for i in np.searchsorted(s.xf, [x for x in told if x is not None]) if 0 < i < len(s.u)]
    attempt = s.attempt[s.finite]
    found = []
    for at, end in pairwise([*points, len(s.u)]):
        resumed = attempt[at] != attempt[at - 1]  # which changes more than the rate
        unfinished = end == len(s.u) and _rate_still_up(view, float(s.xf[at]))
        if not resumed and (unfinished or comes_back(s.u, at, end)):
            found.append(at)
    return found


def _rate_still_up(view: RunView, x: float) -> bool:
    """Whether the last learning rate is more than half of the highest from a place on."""
    if view.lr is None:
        return False
    since = view.lr.y[int(np.searchsorted(view.lr.xf, x)) :]
    return bool(len(since) and since[-1] > 0.5 * since.max())


def _title(s: Series, at: float, values: dict[str, Any]) -> str:
    pct = values["rise_pct"]
    size = "" if pct is None else f" ({percent(pct)} up)"
    why = {
        "resume": ", where the run was resumed",
        "learning rate": f", where the learning rate rose to {number(values['lr_factor'], 2)} times its value",
        None: "",
    }[values["cause"]]
    return (
        f"{s.tag} stepped up at {place(s, at)}{why}: from {number(values['before_level'])} to {number(values['after_level'])}{size}, "
        "and training went on from there."
    )


def _advice(s: Series, at: float, cause: str | None, remedies: tuple[str, ...]) -> tuple[str, ...]:
    first = {
        "resume": "Compare what was saved and what was restored at the resume: optimizer state, scheduler, data order, random state, precision.",
        "learning rate": "Check that the schedule was meant to rise there; a resume that builds it anew starts from its peak.",
        None: remedies[0],
    }[cause]
    return (first, f"Go back to the last checkpoint before {place(s, at)}.", *remedies[2:])
