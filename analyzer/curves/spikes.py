"""What is known about each spike of a loss curve, and whether noise alone would give as many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.curves.excursions import Excursion, Rule, expect
from afterrun.analyzer.curves.spike_context import GradientWatch, Lead
from afterrun.analyzer.prose import change_pct
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array

GAP_FACTOR = 1.5
"""Points allowed between a spike and the bulk of the noise, for each spike of that height."""

NOTHING = Lead(z_before=None, lead_steps=None, z_at=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One spike. Steps are those of the loss; null where not recorded."""

    step: int | None
    peak_step: int | None
    peak: float
    level: float
    """The loss that was expected."""
    height_pct: float | None
    """Null for a loss that crosses zero, where it is no ratio."""
    robust_z: float
    points: int
    """Points until it was back."""
    held_points: int
    """Points in a row above half the limit."""
    recover_steps: float
    area_loss_steps: float
    """Loss above the level, summed over steps."""
    at_restart: bool
    lr_factor: float | None
    """Learning rate at the onset over the one recorded before it."""
    grad_z_before: float | None
    grad_lead_steps: float | None
    grad_z_at_onset: float | None


def describe(s: Series, e: Excursion, lr: Series | None, watch: GradientWatch | None) -> Event:
    """Everything about one spike."""
    onset = float(s.xf[e.start])
    last = min(e.end, len(s.u) - 1)
    level = value_of(s, e.level)
    lead = watch.around(onset) if watch else NOTHING
    return Event(
        step=s.step_at(e.start),
        peak_step=s.step_at(e.peak),
        peak=float(s.y[e.peak]),
        level=level,
        height_pct=height_pct(s, e.height),
        robust_z=e.z,
        points=e.end - e.start,
        held_points=e.held,
        recover_steps=float(s.xf[last]) - onset,
        area_loss_steps=float(np.sum(np.diff(s.xf[e.start : last + 1]) * (s.y[e.start : last] - level))),
        at_restart=bool(np.any(np.diff(s.attempt[s.finite][max(0, e.start - 1) : e.start + 2]))),
        lr_factor=lr_factor(lr, onset),
        grad_z_before=lead.z_before,
        grad_lead_steps=lead.lead_steps,
        grad_z_at_onset=lead.z_at,
    )


def value_of(s: Series, u: float) -> float:
    """A level on the work scale as a loss."""
    return float(s.from_work(np.array([u]))[0])


def height_pct(s: Series, height: float) -> float | None:
    """A height in percent of the loss; None off the log scale, where it is no ratio."""
    return change_pct(height) if s.scale == "log" else None


def lr_factor(lr: Series | None, x: float) -> float | None:
    """The learning rate at a place over the one recorded before it; None where it is not recorded."""
    if lr is None:
        return None
    i = int(np.searchsorted(lr.xf, x, side="right")) - 1
    return float(lr.y[i] / lr.y[i - 1]) if i > 0 and lr.y[i - 1] > 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The upper tail of a curve's noise: is a spike apart from it, or its far end?"""

    z: Array
    """Robust z of all points that belong to no spike."""
    peaks: Array
    """Robust z of the spikes."""
    half: float
    """Share of points, spikes of one point included, above half the limit of a spike."""

    def apart(self, z: float) -> bool:
        """Whether few points lie between this height and the bulk.

        A power-law tail of exponent 3 holds 7 times as many points between a third and two thirds of a
        height as above, one of exponent 2 holds 3 times as many; spikes on calm noise leave a gap.
        """
        both = np.concatenate([self.z, self.peaks])
        between = int(np.sum((both > z / 3.0) & (both < z / 1.5)))
        return between <= GAP_FACTOR * int(np.sum(self.peaks >= z / 1.5))


def tail(u: Array, rule: Rule, found: list[Excursion]) -> Tail:
    """The upper tail of ``u`` around the spikes found in it."""
    level, scale = expect(u, rule)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN = too few points yet: compares false
        z = (u - level) / np.maximum(scale, rule.floor)
        high = (z > 0.5 * rule.z_min) & (u - level > 0.5 * rule.rise_min)
    calm = np.ones(len(u), dtype=bool)
    for e in found:
        calm[e.start : e.end] = False
        if e.held > 1:
            high[e.start : e.end] = False
    return Tail(
        z=z[calm & np.isfinite(z)],
        peaks=np.array([min(e.z, 1e9) for e in found]),
        half=float(high.mean()),
    )


def binomial_tail(k: int, n: int, p: float) -> float:
    """Probability of at least ``k`` hits in ``n`` independent tries of probability ``p`` < 1."""
    below, term = 0.0, (1.0 - p) ** n
    for i in range(k):
        below += term
        term *= (n - i) / (i + 1) * p / (1.0 - p)
    return max(0.0, 1.0 - below)
