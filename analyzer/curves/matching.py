"""Training and held-out curve put side by side: one training value for each evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from afterrun.analyzer.curves.carry_forward import real_points
from afterrun.analyzer.prose import count
from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import Pair, RunView
from afterrun.loaders.names import metric_of

MIN_TRAIN = 3
"""Fewer training values are no curve: some trainers write only their mean at the end."""

GAMES = frozenset({"reward", "score", "success_rate"})
"""Metrics of agents."""

Axis = Literal["step", "row", "wall clock"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Matched:
    """A held-out curve with the training value that belongs to each of its evaluations.

    Arrays share one length n, the number of real evaluations with a finite value.
    """

    pair: Pair
    """The curves compared; the held-out one without repeated rows."""
    axis: Axis
    """What the two curves were matched on."""
    x: Array
    """Axis of the held-out series at the evaluations."""
    val: Array
    train: Array
    """Mean of the training points since the evaluation before; interpolated where there are none."""
    train_cost: Array
    """``train`` on the work scale, lower is better."""
    val_cost: Array
    train_per_val: int
    """Training points between two evaluations (median)."""
    carried: int | None = None
    """Rows on which each evaluation was repeated; None where it was written once."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was done to bring the curves together, in sentences."""
        said = []
        if self.axis == "wall clock":
            said.append(
                f"{self.pair.train.tag} and {self.pair.val.tag} count different things and were matched by wall "
                f"clock: {self.train_per_val} batches for each epoch"
            )
        if self.carried:
            said.append(
                f"{self.pair.val.tag} repeats each value on {self.carried} rows: {len(self.val)} real evaluations"
            )
        return tuple(said)

    def step_at(self, i: int) -> int | None:
        """Recorded step of the i-th evaluation; None where no step is recorded."""
        return self.pair.val.step_at(i)

    def wall_at(self, i: int) -> int | None:
        """Wall clock in ns of the i-th evaluation; None where it is not recorded."""
        return self.pair.val.wall_at(i)

    def train_since(self, i: int) -> Array:
        """Finite training values on the work scale (lower is better) from the i-th evaluation to the end."""
        train_x, val_x = axes(self.pair, self.axis)
        return np.asarray(self.pair.train.cost[train_x > val_x[i]], dtype=np.float64)


def match(pair: Pair) -> Matched | str:
    """The pair evaluation by evaluation, or a sentence that says why that cannot be done.

    Curves whose axes count different things (batches, epochs) are matched by wall clock, never by number.
    """
    train = pair.train
    val, carried = real_points(pair.val)
    pair = Pair(train=train, val=val)
    if not len(val.y):
        return f"finite values of {val.tag}"
    if len(train.y) < MIN_TRAIN:
        return f"a training curve beside {val.tag} ({train.tag} has {count(len(train.y), 'value')})"
    axis: Axis = "step" if train.has_step and val.has_step else "row"
    if len(val.y) > 1 and not pair.same_axis:
        if train.wall_ns is None or val.wall_ns is None:
            return (
                f"a common axis ({train.tag} runs over {train.x[0]:g}..{train.x[-1]:g}, {val.tag} over "
                f"{val.x[0]:g}..{val.x[-1]:g}, and there is no wall clock to match them by)"
            )
        axis = "wall clock"
    train_x, val_x = axes(pair, axis)
    means, per_val = _interval_means(train_x, train.y, val_x)
    return Matched(
        pair=pair,
        axis=axis,
        x=val.xf,
        val=val.y,
        train=means,
        train_cost=_cost(train, means),
        val_cost=val.cost,
        train_per_val=per_val,
        carried=carried,
    )


def stand_ins(view: RunView) -> tuple[Pair, ...]:
    """The training loss beside each held-out loss or score, for runs where no metric has both curves.

    Rewards are left out: a policy gets better while its loss goes where it likes.
    """
    train = view.train_loss
    if train is None:
        return ()
    held = [s for s in view.lead if s.split in ("val", "test") and s.better and len(s.y)]
    known = [(s, metric_of(s.metric)) for s in held if s.metric]
    kept = [
        s for s, m in known if m is None or (m.kind in ("loss", "quality") and m.spellings[0] not in GAMES)
    ]
    return tuple(Pair(train=train, val=s) for s in sorted(kept, key=lambda s: (s.better != "min", -len(s.y))))


def axes(pair: Pair, axis: Axis) -> tuple[Array, Array]:
    """Positions of the finite training points and of the evaluations on the common axis."""
    train, val = pair.train, pair.val
    if axis != "wall clock" or train.wall_ns is None or val.wall_ns is None:
        return train.xf, val.xf
    start = min(train.wall_ns[0], val.wall_ns[0])
    train_s, val_s = (train.wall_ns - start) / 1e9, (val.wall_ns - start) / 1e9
    return np.maximum.accumulate(train_s[train.finite]), np.maximum.accumulate(val_s[val.finite])


def _interval_means(train_x: Array, train_y: Array, val_x: Array) -> tuple[Array, int]:
    """Mean of the training values in each interval (previous evaluation, this one], and the usual count."""
    edges = np.searchsorted(train_x, val_x, side="right")
    starts = np.append(0, edges[:-1])
    sizes = edges - starts
    means = np.interp(val_x, train_x, train_y)
    filled = sizes > 0
    # the points after the last evaluation end the last sum: they are cut off
    sums = np.add.reduceat(train_y[: edges[-1]], starts[filled]) if filled.any() else means[filled]
    means[filled] = sums / sizes[filled]
    # a mean lies within its values, whatever rounding makes of numbers of very different size
    means = np.clip(means, train_y.min(), train_y.max())
    return means, int(np.median(sizes)) if len(sizes) else 0


def _cost(series: Series, values: Array) -> Array:
    u = series.to_work(values)
    return -u if series.better == "max" else u
