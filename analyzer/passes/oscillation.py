"""Oscillation: the training loss swings up and down about a level that it no longer gets below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.lr_schedule import schedule_beside
from afterrun.analyzer.curves.swings import Swing, swing
from afterrun.analyzer.finding import Effect, Finding, Where, jsonable
from afterrun.analyzer.prose import change_pct, count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

SKIPPED_SHARE = 0.05
"""Start of the curve that is left out: the first descent is no swing."""

SAME_PERIOD = 0.1
"""A period this near to the length of an epoch is that of the data."""


@dataclass(frozen=True, kw_only=True)
class Oscillation(Pass):
    """Regular swings of the training loss, far beyond what its noise explains."""

    code: ClassVar[str] = "oscillation"
    title: ClassVar[str] = "Oscillating training loss"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    every_point: ClassVar[bool] = True
    explain: ClassVar[Explanation] = Explanation(
        meaning="The training loss goes up and down in swings of a similar length instead of falling: the step is too long for the valley it runs in, and the optimiser bounces between its walls.",
        rule="On the work scale u (log of a positive loss), after the first twentieth: u less its running median, and the average spectrum of that (segments of up to 256 points). A line is what stands above "
        "red noise of the same lag-1 correlation. The loss oscillates when the strongest line is ratio_min times that noise, holds share_min of all movement about the course, and its swing "
        "(half of peak to peak) is at least size_min_pct of the loss. The onset is where the swings reach three quarters of their usual size. A period equal to the length of an epoch is the order of the data and "
        "information only.",
        abstains="Without a training loss, with fewer than min_points values, or for a loss that crosses zero.",
        confused_with="Noise, however large (no line in the spectrum); a cyclical learning rate, whose period is known; data that is read in the same order each epoch; adversarial losses, which pull at each other by design.",
        remedies=(
            "Lower the learning rate by a factor of 2 to 5, or let it decay: the swings shrink with it.",
            "Raise the batch size or average gradients over more batches, and clip the gradient norm.",
            "Lower the momentum (beta1) when the period is a few tens of steps: a heavy ball overshoots.",
        ),
        sources=(
            "Cohen et al. (2021), arXiv 2103.00065: the edge of stability",
            "Welch (1967): averaged spectra; Mann and Lees (1996): lines above red noise",
        ),
    )

    ratio_min: float = threshold(40.0, "power of the line over that of red noise", unit="times")
    share_min: float = threshold(0.5, "part of the movement about the course that is in the line")
    size_min_pct: float = threshold(10.0, "half of the swing from peak to peak", unit="% of the loss")
    min_points: int = threshold(100, "values below which swings are not looked for", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the training loss."""
        s = view.train_loss
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(
                self, view, "Oscillation: no training loss is recorded.", (f"a training loss: {hint}",)
            )
            return
        first = int(SKIPPED_SHARE * len(s.u))
        found = swing(s.u[first:]) if s.scale == "log" and len(s.u) >= self.min_points else None
        if found is None:
            why = f"holds {count(len(s.y), 'value')}" if s.scale == "log" else "crosses zero"
            missing = (f"{self.min_points} positive values of the training loss",)
            yield abstained(self, view, f"Oscillation: {s.tag} {why}.", missing, {"points": len(s.y)})
            return
        yield self._judge(view, s, first, found)

    def _judge(self, view: RunView, s: Series, first: int, found: Swing) -> Finding:
        period = found.period * float(np.median(np.diff(s.xf)))
        size_pct = change_pct(found.size)
        at = first + found.onset
        cyclic, epochal = _same_period(_rate_period(view, s), period), _same_period(_epoch_steps(s), period)
        values: dict[str, Any] = {
            "tag": s.tag,
            "period_points": found.period,
            "period_steps": period if s.has_step else None,
            "size_pct": size_pct,
            "ratio": found.ratio,
            "share_pct": 100 * found.share,
            "lr_at_onset": _rate_at(view, s, float(s.xf[at])),
            "with_epochs": epochal,
            "with_learning_rate": cyclic,
        }
        if found.ratio < self.ratio_min or found.share < self.share_min or size_pct < self.size_min_pct:
            return refuted(
                self, view, f"No oscillation: {s.tag} moves about its course as noise does.", jsonable(values)
            )
        plays = view.pick("reward", "train", "none", "val") is not None
        harmless = cyclic or epochal or plays
        return Finding(
            code=self.code,
            status="possible" if harmless else "confirmed",
            severity="info" if harmless else "warning",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(at),
                step_end=s.step_at(len(s.y) - 1),
                t_start_ns=s.wall_at(at),
                t_end_ns=s.wall_at(len(s.y) - 1),
            ),
            title=_title(s, at, values),
            effect=Effect(
                value=size_pct,
                unit="% of the loss, half of peak to peak",
                method="power of a line in the spectrum",
            ),
            evidence=(
                s.evidence(s.row_of(at), "swings at full size"),
                s.evidence(s.row_of(at + int(np.argmax(s.u[at:]))), "highest value since"),
                s.evidence(s.row_of(at + int(np.argmin(s.u[at:]))), "lowest value since"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=None if harmless else view.gpu_s_between(float(s.xf[at]), float(s.xf[-1])),
            advice=() if harmless else self.explain.remedies,
            values=jsonable(values),
        )


def _same_period(known: float | None, period: float) -> bool:
    return known is not None and abs(period / known - 1) < SAME_PERIOD


def _epoch_steps(s: Series) -> float | None:
    """Steps of one epoch, where the rows tell both."""
    if s.epoch is None or not s.has_step:
        return None
    epochs, steps = float(s.epoch[-1] - s.epoch[0]), float(s.x[-1] - s.x[0])
    return steps / epochs if epochs > 1 else None


def _rate_period(view: RunView, s: Series) -> float | None:
    """Period of a learning rate that goes up and down, on the axis of the loss; None where it does not."""
    schedule = schedule_beside(view, s)
    if schedule is None:
        return None
    rate, x = schedule.relative, schedule.series.xf
    level = 0.5 * (float(rate.min()) + float(rate.max()))
    rising = np.flatnonzero((rate[1:] >= level) & (rate[:-1] < level)) + 1
    return float(np.median(np.diff(x[rising]))) if len(rising) > 2 else None


def _rate_at(view: RunView, s: Series, x: float) -> float | None:
    schedule = schedule_beside(view, s)
    return None if schedule is None else float(schedule.at(np.array([x]))[0]) * schedule.peak


def _title(s: Series, at: int, values: dict[str, Any]) -> str:
    steps = values["period_steps"]
    period = (
        f"every {number(steps, 2)} steps"
        if steps is not None
        else f"every {number(values['period_points'], 2)} points"
    )
    rate = values["lr_at_onset"]
    why = f" at learning rate {number(rate)}" if rate is not None else ""
    if values["with_epochs"]:
        why = ", which is the length of an epoch: the order of the data"
    elif values["with_learning_rate"]:
        why = ", with the learning rate"
    return f"{s.tag} swings by {percent(values['size_pct'])} either way {period} from {place(s, s.xf[at])} on{why}."
