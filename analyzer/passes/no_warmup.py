"""No warm-up: the full learning rate from the first step, and a loss that blew up at the start."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.lr_schedule import Schedule, schedule_beside
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import mad_sd, running_median
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

MEDIAN_POINTS = 5

WANDER_POINTS = 25
"""Least width of the course from which the noise of the later curve is measured."""


@dataclass(frozen=True, kw_only=True)
class NoWarmup(Pass):
    """A loss that rose far above its start in the first steps, at a learning rate that began at its peak."""

    code: ClassVar[str] = "no-warmup"
    title: ClassVar[str] = "No learning-rate warm-up"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("divergence",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The first steps were taken at the full learning rate, and the loss blew up before it fell: the statistics of the optimizer were not there yet. Runs of this kind settle late, and end "
        "worse or diverge.",
        rule="The first recorded rate is at least start_share of the peak, so there is no warm-up. In the first early_share of the run the running median of the loss (5 points) rises above its first "
        "value by more than blow_up_pct, and by noise_factor standard deviations of a point more than the later noise, waves included, would bring it up in as many points; the loss ends below its start. How long it took to come back to the start is "
        "what the missing warm-up cost. A full rate from the first step without a blow-up is no finding: small models and stochastic gradient descent bear it.",
        abstains="Without a learning rate or a training loss on one axis, with fewer than min_points values, or when the record begins in the middle of a run (first step beyond late_start_share of the last).",
        confused_with="A hump at the end of a warm-up, which is there; a loss that is noisy at the start; a divergence that never comes back.",
        remedies=(
            "Warm the learning rate up over the first 1 to 5 % of the steps, or over 2 / (1 - beta2) steps of Adam (2,000 for 0.999).",
            "Lower the peak rate if a warm-up cannot be had.",
            "Clip the gradient norm at 1.0 from the first step on.",
        ),
        sources=(
            "Ma and Yarats (2021), arXiv 1910.04209: a linear warm-up over 2 / (1 - beta2) steps",
            "Goyal et al. (2017), arXiv 1706.02677: gradual warm-up for large batches",
        ),
    )

    start_share: float = threshold(
        0.9, "first recorded rate as a share of the peak from which there is no warm-up"
    )
    early_share: float = threshold(
        0.1, "part of the run in which the blow-up must happen", unit="share of the points"
    )
    blow_up_pct: float = threshold(15.0, "rise above the start", unit="% of the loss")
    noise_factor: float = threshold(
        3.0,
        "the rise in standard deviations of a point, above the highest that noise alone reaches",
        unit="sd",
    )
    late_start_share: float = threshold(
        0.05, "first recorded step as a share of the last, beyond which the start is not recorded"
    )
    min_points: int = threshold(40, "values of the loss below which the start is not judged", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the start of the run."""
        loss = view.train_loss
        schedule = None if loss is None else schedule_beside(view, loss)
        if loss is None or schedule is None:
            hint = view.map_hint("loss", "train") if loss is None else view.map_hint("lr", "train")
            what = "training loss" if loss is None else "learning rate beside the training loss"
            yield abstained(self, view, f"Warm-up: no {what} is recorded.", (f"a {what}: {hint}",))
            return
        missing = self._unseen(loss)
        if missing:
            yield abstained(self, view, f"Warm-up: {missing[0]}.", (missing[1],))
            return
        yield self._judge(view, loss, schedule)

    def _unseen(self, loss: Series) -> tuple[str, str] | None:
        if len(loss.y) < self.min_points or loss.scale != "log":
            said = (
                f"{loss.tag} holds {count(len(loss.y), 'value')}"
                if loss.scale == "log"
                else f"{loss.tag} crosses zero"
            )
            return said, f"{self.min_points} positive values of the training loss"
        if loss.has_step and loss.xf[0] > self.late_start_share * loss.xf[-1]:
            said = f"the record begins at {place(loss, loss.xf[0])} of {int(loss.xf[-1]):,}"
            return said, "the first steps of the run"
        return None

    def _judge(self, view: RunView, loss: Series, schedule: Schedule) -> Finding:
        first = float(schedule.relative[0])
        early = max(MEDIAN_POINTS, int(self.early_share * len(loss.u)))
        start = float(loss.u[0])
        smooth = running_median(loss.u, MEDIAN_POINTS)
        top = int(np.argmax(smooth[:early]))
        rise = float(smooth[top]) - start
        back = np.flatnonzero(smooth[top:] <= start)
        values: dict[str, Any] = {
            "lr_tag": schedule.series.tag,
            "first_lr": float(schedule.series.y[0]),
            "first_lr_pct_of_peak": 100 * first,
            "start_level": float(np.exp(start)),
            "top_level": float(np.exp(smooth[top])),
            "top_step": loss.step_at(top),
            "rise_pct": change_pct(rise),
            "back_step": loss.step_at(top + int(back[0])) if len(back) else None,
        }
        if first < self.start_share:
            title = f"{schedule.series.tag} warms up: its first value is {percent(100 * first)} of its peak."
            return refuted(self, view, title, jsonable(values))
        least = max(math.log1p(self.blow_up_pct / 100), _by_noise(loss, early, self.noise_factor))
        if rise <= least or not len(back):
            title = f"No harm from a missing warm-up: {loss.tag} did not blow up at the start."
            if not len(back):
                title = f"{loss.tag} rose from the start on and never came back, which is more than a missing warm-up."
            return refuted(self, view, title, jsonable(values))
        return self._finding(view, loss, top, top + int(back[0]), values)

    def _finding(self, view: RunView, loss: Series, top: int, back: int, values: dict[str, Any]) -> Finding:
        rise, error = values["rise_pct"], change_pct(1.96 * loss.sigma)
        return Finding(
            code=self.code,
            status="possible",
            severity="warning",
            run=view.name,
            rank=loss.rank,
            where=Where(
                step_start=loss.step_at(0),
                step_end=loss.step_at(back),
                t_start_ns=loss.wall_at(0),
                t_end_ns=loss.wall_at(back),
            ),
            title=f"{values['lr_tag']} starts at its peak ({number(values['first_lr'])}) without warm-up, and {loss.tag} rose from {number(values['start_level'])} to {number(values['top_level'])} "
            f"({percent(rise)} up) before it fell; it was back at {place(loss, loss.xf[back])}.",
            effect=Effect(
                value=rise,
                low=rise - error,
                high=rise + error,
                unit="% above the start",
                method="running median of five points, noise of a point",
            ),
            evidence=(
                loss.evidence(loss.row_of(0), "start"),
                loss.evidence(loss.row_of(top), "top of the blow-up"),
                loss.evidence(loss.row_of(back), "back at the start"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=view.gpu_s_between(float(loss.xf[0]), float(loss.xf[back])),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _by_noise(loss: Series, early: int, factor: float) -> float:
    """Rise of the running median over the first value that noise alone may show in ``early`` points, work scale.

    Noise is measured about the course of the later curve, so that waves count with their whole width: the highest running
    median in stretches of ``early`` points (the median stretch, whatever the distribution), and ``factor`` standard
    deviations by which the first value may lie low.
    """
    width = max(early, WANDER_POINTS)
    away = (loss.u - running_median(loss.u, width))[early:]
    medians = running_median(away, MEDIAN_POINTS)
    highest = [float(part.max()) for part in np.array_split(medians, max(1, len(medians) // early))]
    return float(np.median(highest)) + factor * max(loss.sigma, mad_sd(away))
