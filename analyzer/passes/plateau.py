"""Plateau: the training loss stopped falling while the run still had learning rate and time to use."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from afterrun.analyzer.curves.carry_forward import real_points
from afterrun.analyzer.curves.descent import Descent
from afterrun.analyzer.curves.flatness import Stretch, last_window, stretch
from afterrun.analyzer.curves.lr_schedule import Schedule, schedule_beside
from afterrun.analyzer.curves.plateau_cause import REMEDIES
from afterrun.analyzer.curves.plateau_text import lifted_title, measures, moving_title, size
from afterrun.analyzer.curves.rest import (
    Lifted,
    Rest,
    descent_of,
    flat_since,
    lifted_by_drops,
    stalled,
)
from afterrun.analyzer.curves.rest_finding import rest_finding, stretch_where
from afterrun.analyzer.finding import Effect, Finding, jsonable
from afterrun.analyzer.prose import count
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

STILL_FALLING_P = 0.01
"""A stretch that surely still falls, however little, is not confirmed as a stall."""


@dataclass(frozen=True, kw_only=True)
class Plateau(Pass):
    """Training loss at rest, and why."""

    code: ClassVar[str] = "plateau"
    title: ClassVar[str] = "Plateau"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("not-learning",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="The training loss stopped falling although the learning rate was still high and the run went on. "
        "A loss that is flat because the schedule ended or because nothing is left to learn is reported as information, not as a problem.",
        rule="Two questions, of a loss that has moved at all (not-learning asks that first). Did it run into a wall? L = c + A (1 + xi t / s)^(-1/xi) is fitted "
        "to the training loss and its held-out curve together: xi >= 0 slows down smoothly (exponential, power law, any mixture of them), xi < 0 stops at a finite step. "
        "The stop must be more likely (2 ln of the likelihood ratio above possible_support or confirmed_support; open_support suffices for 'possible' where less than half of the loss was lost and most of the run rests at peak rate), leave at least min_share of the run after it with a learning rate above high_lr of its peak, "
        "and gain no more than rest_share of the earlier fall. Is it proven flat (95 % interval of the Theil-Sen slope on block means within flat_tolerance_pct over the whole stretch) for flat_share of the run at peak rate? "
        "Then the last window, max(window_share, window_points, but at most a third of the points), is tested for equivalence in the same way. The cause is read from learning rate, gradient norm, parameters and shape.",
        abstains="Without a training loss or with fewer than min_points values. Without a learning rate a stall is at most 'possible'.",
        confused_with="The flat end of a cosine or linear schedule, convergence, a power law that goes on falling slowly, noise that hides a slow fall, a value repeated on every row.",
        remedies=(
            "Read the cause first: the remedies differ, and a learning rate that is too low is only one of eight.",
            "Stalled at peak rate: lower the rate by 3 to 10 from a checkpoint before the onset, or start the decay at the onset.",
            "Swinging: the rate is too high. Gradient norm near zero: initialisation, dead units or a saturated loss.",
            "Flat at the end of the schedule: plan fewer steps, or a schedule that ends later.",
        ),
        sources=(
            "Pickands (1975): generalised Pareto distribution, the family of the descent",
            "Theil (1950), Sen (1968), Gilbert (1987): slope and its interval; two one-sided tests for equivalence (Schuirmann 1987)",
            "Kass and Raftery (1995): 2 ln ratio of 2, 6, 10 as positive, strong, very strong evidence",
            "Google tuning playbook: warm-up length, saturation; torch ReduceLROnPlateau",
        ),
    )

    min_points: int = threshold(
        12, "values of the training loss below which the pass abstains", unit="points"
    )
    window_points: int = threshold(200, "least length of the last window", unit="points")
    window_share: float = threshold(0.2, "least length of the last window", unit="share of the points")
    tolerance_pct: float = threshold(0.5, "a change over a stretch smaller than this is none", unit="%")
    confirmed_support: float = threshold(
        10.0,
        "2 ln likelihood ratio of a stop over a smooth descent for 'confirmed'",
        source="Kass and Raftery 1995",
    )
    possible_support: float = threshold(2.0, "the same for 'possible'", source="Kass and Raftery 1995")
    open_support: float = threshold(
        -1.5,
        "the same where the loss lost less than half and rests for half of the run at peak rate: the shape leaves it open",
    )
    min_share: float = threshold(
        0.25, "least share at rest with a high learning rate", unit="share of the run"
    )
    high_lr: float = threshold(0.5, "a learning rate above this is high", unit="share of its peak")
    rest_share: float = threshold(
        0.2, "a stalled run surely gains less than this", unit="share of the earlier fall"
    )
    flat_share: float = threshold(
        0.6,
        "a loss proven flat for so long at peak rate is 'possible' whatever its shape",
        unit="share of the run",
    )
    flat_tolerance_pct: float = threshold(
        1.0, "a loss that surely gained less than this in all that time is flat for long", unit="%"
    )
    lifted_share: float = threshold(
        0.1,
        "least length of a flat stretch before a drop of the rate that is worth a note",
        unit="share of the points",
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the end of the run, and a note for each long flat stretch that an lr drop ended."""
        s = view.train_loss
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Plateau: no training loss is recorded.", (f"a training loss: {hint}",)
            )
            return
        s, _ = real_points(s)
        if len(s.y) < self.min_points:
            title = f"Plateau: not enough data, {s.tag} has {count(len(s.y), 'value')}."
            yield abstained(
                self, view, title, (f"{self.min_points} values of {s.tag}",), {"points": len(s.y)}
            )
            return
        if any(f.is_alarm for f in view.earlier.get("not-learning", ())):
            yield refuted(self, view, f"No plateau: {s.tag} never moved (not-learning).", {"tag": s.tag})
            return
        schedule = schedule_beside(view, s)
        descent = descent_of(view, s)
        rest = self._rest(s, schedule, descent)
        if schedule is not None:
            for lifted in lifted_by_drops(s, schedule, self._long_tolerance, self.lifted_share)[:3]:
                yield self._note(view, s, lifted)
        if rest is None:
            yield self._at_work(view, s, descent)
        else:
            yield rest_finding(self, view, s, rest, schedule, descent)

    @property
    def _tolerance(self) -> float:
        return math.log1p(self.tolerance_pct / 100.0)

    @property
    def _long_tolerance(self) -> float:
        return math.log1p(self.flat_tolerance_pct / 100.0)

    def _rest(self, s: Series, schedule: Schedule | None, descent: Descent | None) -> Rest | None:
        if descent is not None:
            wall = stalled(s, descent, schedule, min_share=self.min_share, high_lr=self.high_lr)
            limit = max(self._tolerance, self.rest_share * descent.fall)
            rests = wall is not None and -limit < wall.low < self._tolerance and wall.high < limit
            if wall is not None and rests and descent.support >= self._needed(s, wall, descent, schedule):
                sure = descent.support >= self.confirmed_support and wall.p_improving > STILL_FALLING_P
                return Rest(
                    kind="stalled",
                    status="confirmed" if sure and schedule is not None else "possible",
                    stretch=wall,
                    onset_low=descent.end_low,
                    onset_high=descent.end_high,
                )
        long = flat_since(s, self._long_tolerance)
        if long is not None and schedule is not None and self._at_peak(s, long, schedule, self.flat_share):
            return Rest(kind="flat for long", status="possible", stretch=long)
        last = last_window(s, self.window_share, self.window_points)
        if last.course(self._tolerance) != "flat":
            return None
        return Rest(
            kind="flat at the end",
            status="confirmed",
            stretch=min((x for x in (flat_since(s, self._tolerance), last) if x), key=lambda x: x.start),
        )

    def _needed(self, s: Series, wall: Stretch, descent: Descent, schedule: Schedule | None) -> float:
        """Support that 'possible' needs: less where little was gained and most of the run rests at peak rate."""
        little = descent.fall < math.log(2.0)
        if little and schedule is not None and self._at_peak(s, wall, schedule, 0.5):
            return self.open_support
        return self.possible_support

    def _at_peak(self, s: Series, part: Stretch, schedule: Schedule, share: float) -> bool:
        """Whether the stretch is at least ``share`` of the run, and that at peak rate."""
        start, end = float(s.xf[part.start]), float(s.xf[-1])
        return end - start >= share * s.span and schedule.share_above(0.9, start, end) >= 0.95

    def _at_work(self, view: RunView, s: Series, descent: Descent | None) -> Finding:
        """Nothing found: what the last window showed."""
        last = last_window(s, self.window_share, self.window_points)
        course = last.course(self._tolerance)
        said = moving_title(s, last, course, self.tolerance_pct)
        return refuted(
            self, view, said, jsonable({"tag": s.tag, "course": course, **measures(s, last, descent)})
        )

    def _note(self, view: RunView, s: Series, lifted: Lifted) -> Finding:
        """A flat stretch that a drop of the learning rate ended: an earlier drop would have saved it."""
        flat = stretch(s, lifted.start, lifted.end)
        a, b = float(s.xf[lifted.start]), float(s.xf[lifted.end - 1])
        share = 100.0 * (b - a) / max(s.span, 1e-12)
        return Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            rank=s.rank,
            where=stretch_where(s, lifted.start, lifted.end - 1),
            title=lifted_title(s, lifted),
            effect=Effect(
                value=size(s, lifted.fall),
                unit="% fall within a tenth of the run after the drop",
                method="medians",
            ),
            evidence=(
                s.evidence(s.row_of(lifted.start), "flat from here"),
                s.evidence(s.row_of(lifted.end - 1), "last value before the drop"),
            ),
            parameters=self.parameters(),
            advice=REMEDIES["lr_too_high"],
            values=jsonable(
                {
                    "tag": s.tag,
                    "kind": "lifted by a drop",
                    "cause": "lr_too_high",
                    "onset_step": s.step_at(lifted.start),
                    "share_of_run_pct": share,
                    "lr_before": lifted.lr_before,
                    "lr_after": lifted.lr_after,
                    "fall_pct": size(s, lifted.fall),
                    **measures(s, flat, None),
                }
            ),
        )
