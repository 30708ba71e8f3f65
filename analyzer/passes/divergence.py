"""The training loss rises for good: finite, but worse than it has already been."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from afterrun.analyzer.curves.rise import Onset, Rise, onset, rise
from afterrun.analyzer.finding import Effect, Finding, Status, Where
from afterrun.analyzer.prose import change_pct, count, number, percent, place
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import trend
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

READABLE_PCT = 1000.0
"""A rise beyond is told by its two levels alone."""


@dataclass(frozen=True)
class Divergence(Pass):
    """The loss left its lowest level and did not come back before the end."""

    code: ClassVar[str] = "divergence"
    title: ClassVar[str] = "Divergence of the training loss"
    about: ClassVar[str] = "curves"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    after: ClassVar[tuple[str, ...]] = ("level-shift",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The training loss rose far above the lowest level it had reached and stayed there to the end, without becoming NaN. "
        "Everything after the onset made the model worse.",
        rule="The curve is cut into about fifty blocks; their medians are compared on the work scale u (log of a positive loss). Confirmed: the "
        "lowest of the blocks in the last stay_share of the run stands above the lowest block of all by more than max(ln(1 + rise_pct/100), noise_factor x se), "
        "where se is the standard error of a difference of two blocks. Possible: a rise of more than possible_rise_pct that lasts for twice as long and "
        "is still going on (Mann-Kendall on decorrelated blocks, p < trend_p), or a rise that was one jump and not a climb. For a loss that crosses zero, "
        "where no ratio exists, the rise must undo undone_share of what had been gained. The onset is the corner of a two-line fit around the last visit "
        "to the lowest level. A curve that ends in NaN counts as not having come back.",
        abstains="Without any loss, or with fewer than min_points finite values. With only a validation loss the answer is at most possible: the rise "
        "could as well be overfitting. In reinforcement learning, where the loss does not measure progress, a rise is information only.",
        confused_with="Overfitting (only the validation loss rises), a spike (comes back), a level shift (one jump, then flat), a warm restart of the "
        "learning rate, and a change of the data or of the loss weights.",
        remedies=(
            "Go back to the last checkpoint before the onset; what came later is lost.",
            "Lower the peak learning rate by a factor of 2 to 5, or lengthen the warm-up if the onset lies near the highest rate.",
            "Clip the gradient norm, and record it.",
            "Compare the data and the configuration on both sides of the onset.",
            "In half precision: use bfloat16, or watch the loss scale.",
        ),
        sources=(
            "Google tuning playbook: a training loss that rises overall points to a learning rate too high or to a bug in the pipeline",
            "PaLM (arXiv 2204.02311), section 5.1: restarting from before the instability",
            "Profile-likelihood interval of a change point: Seber and Wild, Nonlinear Regression, section 9.3",
        ),
    )

    rise_pct: float = threshold(
        50.0, "rise over the lowest level that confirms a divergence", unit="% of the loss"
    )
    possible_rise_pct: float = threshold(
        20.0, "rise that makes a divergence possible while it goes on", unit="% of the loss"
    )
    noise_factor: float = threshold(
        5.0,
        "the rise must also be this many standard errors of a difference of two blocks; the lowest of fifty noisy blocks is 2.3 too low by chance",
        unit="standard errors",
    )
    stay_share: float = threshold(
        0.05, "final part of the run in which the loss must stay up throughout", unit="share of the points"
    )
    trend_p: float = threshold(0.01, "p value of a rising trend after the onset for a possible divergence")
    undone_share: float = threshold(
        0.5, "for a loss that crosses zero: part of the gain that must be lost again", unit="share"
    )
    min_points: int = threshold(10, "finite values below which the pass abstains", unit="points")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding for the training loss, or for the validation loss where it is the only one."""
        s = view.train_loss
        only_val = s is None
        s = s or view.pick("loss", "val", "test")
        if s is None:
            hint = view.map_hint("loss", "train")
            yield abstained(self, view, "Divergence: no loss is recorded.", (f"a training loss: {hint}",))
            return
        if len(s.y) < self.min_points:
            title = f"Divergence: {s.tag} holds {count(len(s.y), 'finite value')}."
            yield abstained(
                self,
                view,
                title,
                (f"{self.min_points} finite values of the training loss",),
                {"points": len(s.y)},
            )
            return
        r = rise(s.u, self.stay_share)
        status = self._status(s, r)
        if status is None:
            yield refuted(self, view, _calm(s, r), _values(s, r))
            return
        o = onset(s.u, r)
        if o.step and any(f.is_alarm for f in view.earlier.get("level-shift", ())):
            title = f"No divergence: {s.tag} stepped up at {place(s, s.xf[o.at])} and did not go on rising (level-shift)."
            yield refuted(self, view, title, _values(s, r))
            return
        if o.step or only_val:
            status = "possible"
        yield self._finding(view, s, r, o, status)

    def _status(self, s: Series, r: Rise) -> Status | None:
        noise = self.noise_factor * r.se
        to_nan = not s.finite[-1]
        stays = r.end if to_nan else r.least  # what ends in NaN has not come back
        if s.scale != "log":
            gain = r.start - r.low
            undone = stays - r.low > max(noise, self.undone_share * gain) and gain > noise
            return "possible" if undone else None
        if stays - r.low > max(math.log1p(self.rise_pct / 100.0), noise):
            return "confirmed"
        longer = rise(s.u, 2.0 * self.stay_share)
        if longer.least - r.low <= max(math.log1p(self.possible_rise_pct / 100.0), noise):
            return None
        tail = s.u[r.bottom :]
        return "possible" if trend(tail).p_up < self.trend_p else None

    def _finding(self, view: RunView, s: Series, r: Rise, o: Onset, status: Status) -> Finding:
        at, end = float(s.xf[o.at]), float(s.xf[-1])
        plays = view.pick("reward", "train", "none", "val") is not None
        values = {**_values(s, r), **_around(view, s, o), "reinforcement_learning": plays}
        error = 1.96 * r.se
        log = s.scale == "log"
        return Finding(
            code=self.code,
            status="possible" if plays else status,
            severity="info" if plays else "critical" if status == "confirmed" else "warning",
            run=view.name,
            rank=s.rank,
            where=Where(
                step_start=s.step_at(o.at),
                step_end=s.step_at(len(s.y) - 1),
                t_start_ns=s.wall_at(o.at),
                t_end_ns=s.wall_at(len(s.y) - 1),
            ),
            title=_title(s, o, values),
            effect=Effect(
                value=change_pct(r.height) if log else r.height,
                low=change_pct(r.height - error) if log else r.height - error,
                high=change_pct(r.height + error) if log else r.height + error,
                unit="% above the lowest level" if log else "above the lowest level",
                method="difference of two block medians, normal",
            ),
            evidence=(
                s.evidence(s.row_of(r.bottom), "inside the lowest block"),
                s.evidence(
                    s.row_of(o.at), f"onset; between {place(s, s.xf[o.low])} and {place(s, s.xf[o.high])}"
                ),
                s.evidence(s.row_of(len(s.y) - 1), "last finite value"),
            ),
            parameters=self.parameters(),
            wasted_gpu_s=view.gpu_s_between(at, end),
            advice=_advice(s, o, values),
            values=values,
        )


def _calm(s: Series, r: Rise) -> str:
    low, end = (number(float(v)) for v in s.from_work(np.array([r.low, r.end])))
    return f"No divergence: {s.tag} ends at {end}, its lowest level is {low}."


def _values(s: Series, r: Rise) -> dict[str, Any]:
    low, end = (float(v) for v in s.from_work(np.array([r.low, r.end])))
    return {
        "tag": s.tag,
        "points": len(s.y),
        "lowest_level": low,
        "lowest_step": s.step_at(r.bottom),
        "end_level": end,
        "rise_pct": change_pct(r.height) if s.scale == "log" else None,
        "noise_pct": change_pct(s.sigma) if s.scale == "log" else None,
        "ends_non_finite": not bool(s.finite[-1]),
    }


def _around(view: RunView, s: Series, o: Onset) -> dict[str, Any]:
    """Learning rate and gradient norm at the onset."""
    at = float(s.xf[o.at])
    values: dict[str, Any] = {
        "onset_step": s.step_at(o.at),
        "onset_step_low": s.step_at(o.low),
        "onset_step_high": s.step_at(o.high),
        "onset_share_of_run": (at - float(s.x[0])) / s.span if s.span else None,
        "one_jump": o.step,
        "split": s.split,
        "lr_at_onset": None,
        "lr_peak": None,
        "steps_after_lr_peak": None,
        "grad_norm_factor": None,
    }
    if view.lr is not None:
        peak = int(np.argmax(view.lr.y))
        last_peak = int(np.flatnonzero(view.lr.y >= 0.999 * view.lr.y[peak])[-1])
        values["lr_at_onset"] = float(np.interp(at, view.lr.xf, view.lr.y))
        values["lr_peak"] = float(view.lr.y[peak])
        values["steps_after_lr_peak"] = max(0.0, at - float(view.lr.xf[last_peak]))
    grad = view.grad_norm
    if grad is not None and (grad.xf < at).sum() >= 5 and (grad.xf >= at).sum() >= 5:
        before, after = grad.y[grad.xf < at][-50:], grad.y[grad.xf >= at][-50:]
        level = float(np.median(before))
        values["grad_norm_factor"] = float(np.median(after)) / level if level > 0 else None
    return values


def _title(s: Series, o: Onset, values: dict[str, Any]) -> str:
    levels = f"from {number(values['lowest_level'])} to {number(values['end_level'])}"
    pct = values["rise_pct"]
    size = f" ({percent(pct)} up)" if pct is not None and pct <= READABLE_PCT else ""
    how = "stepped up at once" if o.step else "rose for good"
    tail = ", then became non-finite" if values["ends_non_finite"] else ""
    rate = values["lr_at_onset"]
    lr = f" at learning rate {number(rate)}" if rate is not None else ""
    return f"{s.tag} {how} from {place(s, s.xf[o.at])}{lr}: {levels}{size}{tail}."


def _advice(s: Series, o: Onset, values: dict[str, Any]) -> tuple[str, ...]:
    where = place(s, s.xf[o.at])
    first = f"Go back to the last checkpoint before {where}."
    if values["split"] in ("val", "test"):
        return (first, "Record the training loss: without it overfitting and divergence look the same.")
    if values["one_jump"]:
        return (f"Look for what changed at {where}: a resume, the data, the loss weights.", first)
    rate, peak = values["lr_at_onset"], values["lr_peak"]
    near_peak = rate is not None and peak and rate >= 0.5 * peak
    lr = f"Lower the learning rate: it stood at {number(rate)}" if near_peak else "Try a lower learning rate"
    share = f", {percent(100 * rate / peak)} of its peak." if near_peak else "."
    return (first, lr + share, "Clip the gradient norm.", f"Compare data and configuration around {where}.")
