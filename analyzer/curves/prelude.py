"""The last moments before an onset: what loss, gradient norm, learning rate and loss scale were doing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import theil_sen_slope
from afterrun.analyzer.view import RunView

FEWEST = 10
"""Points below which no growth is stated."""

GROWTH = 1.5
"""Growth over the window from which a lead-up is worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prelude:
    """Values just before an onset; None where not recorded or too short to say."""

    last_finite: float | None
    last_finite_step: int | None
    last_loss: float | None
    last_grad_norm: float | None
    last_lr: float | None
    last_loss_scale: float | None
    loss_growth_factor: float | None
    """Robust growth of the training loss over the window before the onset."""
    grad_growth_factor: float | None
    """The same for the gradient norm: exp(Theil-Sen slope of ln x points)."""
    loss_scale_halvings: int | None
    """Times the loss scale fell before the onset."""

    def values(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @property
    def grew(self) -> bool:
        """Whether loss or gradient norm climbed before it broke."""
        return max(self.loss_growth_factor or 0.0, self.grad_growth_factor or 0.0) > GROWTH


def prelude(view: RunView, s: Series, x: float, points: int) -> Prelude:
    """What stood in the ``points`` values before ``x`` of each curve; ``s`` is the curve that broke."""
    scale = view.pick("loss_scale", "train", "none")
    before = np.flatnonzero(s.xf < x)
    scales = _before(scale, x)
    return Prelude(
        last_finite=float(s.y[before[-1]]) if len(before) else None,
        last_finite_step=s.step_at(int(before[-1])) if len(before) else None,
        last_loss=_last(view.train_loss, x),
        last_grad_norm=_last(view.grad_norm, x),
        last_lr=_last(view.lr, x),
        last_loss_scale=_last(scale, x),
        loss_growth_factor=_growth(view.train_loss, x, points),
        grad_growth_factor=_growth(view.grad_norm, x, points),
        loss_scale_halvings=int((np.diff(scales) < 0).sum()) if scales is not None else None,
    )


def _before(s: Series | None, x: float) -> np.ndarray | None:
    return None if s is None else s.y[s.xf < x]


def _last(s: Series | None, x: float) -> float | None:
    y = _before(s, x)
    return float(y[-1]) if y is not None and len(y) else None


def _growth(s: Series | None, x: float, points: int) -> float | None:
    y = _before(s, x)
    if y is None or len(y[-points:]) < FEWEST or float(y[-points:].min()) <= 0.0:
        return None
    u = np.log(y[-points:])
    slope = theil_sen_slope(np.arange(len(u), dtype=np.float64), u)
    return math.exp(min(slope * (len(u) - 1), 700.0))
