"""The learning rate over a run, as a step function of its records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from afterrun.analyzer.finding import Evidence
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import Pair, RunView

DROP_FACTOR = 2.0
"""A drop counts where the rate falls at least this much ..."""

DROP_SHARE = 0.02
"""... within this share of the run."""

WARM_START = 0.5
"""A schedule that begins below this share of its peak warms up."""


@dataclass(frozen=True, slots=True)
class Drop:
    """One sudden fall of the rate."""

    x: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Schedule:
    """Learning rate of one parameter group; values hold until the next record."""

    series: Series

    @cached_property
    def peak(self) -> float:
        """Highest rate; 0 for a rate that was never above zero."""
        return max(float(self.series.y.max()), 0.0)

    @cached_property
    def relative(self) -> Array:
        """Rate as a share of the peak at each record; zeros where the peak is zero."""
        return self.series.y / self.peak if self.peak > 0 else np.zeros(len(self.series.y))

    def at(self, x: Array) -> Array:
        """Share of the peak at positions ``x``: the last record before, the first one earlier than any."""
        i = np.searchsorted(self.series.xf, x, side="right") - 1
        return np.asarray(self.relative[np.clip(i, 0, None)], dtype=np.float64)

    def share_above(self, level: float, start: float, end: float) -> float:
        """Share of [start, end] in which the rate is at least ``level`` of its peak."""
        grid = np.linspace(start, end, 201)
        return float(np.mean(self.at(grid) >= level))

    def below_from(self, level: float) -> float | None:
        """Where the rate falls below ``level`` of its peak for the rest of the run; None if it does not."""
        high = np.flatnonzero(self.relative >= level)
        first = int(high[-1]) + 1 if len(high) else 0
        return float(self.series.xf[first]) if first < len(self.relative) else None

    @cached_property
    def warmup_end(self) -> float | None:
        """Where the first ascent reaches 99 % of the peak; None without a warm-up."""
        if self.peak <= 0 or self.relative[0] >= WARM_START:
            return None
        return float(self.series.xf[int(np.argmax(self.relative >= 0.99))])

    @cached_property
    def drops(self) -> tuple[Drop, ...]:
        """Sudden falls by at least ``DROP_FACTOR``, neighbours merged, falls to zero left out."""
        x, lr = self.series.xf, self.series.y
        if len(lr) < 3:
            return ()
        steps = np.flatnonzero((lr[1:] < 0.9 * lr[:-1]) & (lr[1:] > 0)) + 1
        found: list[Drop] = []
        width = DROP_SHARE * max(self.series.span, 1e-12)
        group: list[int] = []
        for i in [*steps.tolist(), -1]:
            if group and (i < 0 or x[i] - x[group[0]] > width):
                before, after = float(lr[group[0] - 1]), float(lr[group[-1]])
                if before >= DROP_FACTOR * after:
                    found.append(Drop(float(x[group[0]]), before, after))
                group = []
            if i >= 0:
                group.append(i)
        return tuple(found)


def schedule_beside(view: RunView, s: Series) -> Schedule | None:
    """The learning rate on the axis of this series; None where it is not recorded or counts something else."""
    lr = view.lr
    return Schedule(lr) if lr is not None and Pair(train=s, val=lr).same_axis else None


def lr_evidence(lr: Series | None) -> tuple[Evidence, ...]:
    """First and last record of a learning rate; nothing where it is not recorded."""
    if lr is None:
        return ()
    return lr.evidence(0, "first learning rate"), lr.evidence(len(lr) - 1, "last learning rate")
