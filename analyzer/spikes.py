"""What is known about each spike of a loss curve, and whether noise alone would give as many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.excursions import Excursion, Rule, expect
from afterrun.analyzer.prose import change_pct
from afterrun.analyzer.series import Series
from afterrun.analyzer.spike_context import GradientWatch, Lead
from afterrun.analyzer.stats import Array

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
        lr_factor=_lr_factor(lr, onset),
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


def _lr_factor(lr: Series | None, x: float) -> float | None:
    if lr is None:
        return None
    i = int(np.searchsorted(lr.xf, x, side="right")) - 1
    return float(lr.y[i] / lr.y[i - 1]) if i > 0 and lr.y[i - 1] > 0 else None


def by_chance(u: Array, rule: Rule, found: list[Excursion]) -> float:
    """Probability that noise gives as many spikes of two points or more as there are among ``found``.

    Skewed or heavy-tailed noise puts two high points side by side by chance: where a share q of all
    points stands above half the limit, k of m spikes hold for a second point with the probability of
    a binomial tail. 1 where none holds.
    """
    held = [e for e in found if e.held > 1]
    if not held:
        return 1.0
    level, scale = expect(u, rule)
    with np.errstate(invalid="ignore"):  # NaN = too few points yet: compares false
        high = u - level > 0.5 * np.maximum(rule.rise_min, rule.z_min * np.maximum(scale, rule.floor))
    for e in held:
        high[e.start : e.end] = False
    return binomial_tail(len(held), len(found), float(high.mean()))


def binomial_tail(k: int, n: int, p: float) -> float:
    """Probability of at least ``k`` hits in ``n`` independent tries of probability ``p`` < 1."""
    below, term = 0.0, (1.0 - p) ** n
    for i in range(k):
        below += term
        term *= (n - i) / (i + 1) * p / (1.0 - p)
    return max(0.0, 1.0 - below)
