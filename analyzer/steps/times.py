"""Times of steps of one run, from the best record there is.

In this order: a logged step time, the marks of a trace, a logged throughput (its inverse, up to a constant), the wall
clock between logged rows. The last is an average over the rows' distance and holds evaluation and checkpoints too;
``every`` says over how many steps. Rows at uneven distances (episodes of several environments) are added up to stretches
of about the same length first: where some rows stand close together by chance, the median of their rates is no step time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.series import Series

if TYPE_CHECKING:
    from afterrun.analyzer.view import RunView

Floats = npt.NDArray[np.float64]
Origin = Literal["logged step time", "step marks of a trace", "throughput", "wall clock between rows"]

MIN_STEPS = 20
UNEVEN = 3.0
"""Nine of ten distances between rows over one of ten, from which on rows are added up to stretches."""
ROWS_OF_STRETCH = 4
"""Rows of a stretch, on average."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepTimes:
    """Seconds per step, ascending in step. ``step`` numbers, ``t_ns`` wall clock at the end of each where recorded.

    ``relative`` says that only ratios mean something (the inverse of a throughput in unknown units).
    """

    step: Floats
    seconds: Floats
    t_ns: npt.NDArray[np.int64] | None
    origin: Origin
    every: float
    source: str
    tag: str | None
    relative: bool = False

    def __len__(self) -> int:
        return len(self.seconds)


def step_times(view: RunView) -> StepTimes | None:
    """The times of steps of a run; None where fewer than ``MIN_STEPS`` are recorded in any way."""
    found = (_logged(view), _traced(view), _throughput(view), _clocked(view))
    return next((t for t in found if t is not None and len(t) >= MIN_STEPS), None)


def _logged(view: RunView) -> StepTimes | None:
    s = view.pick("step_time_s", "train", "none")
    return None if s is None else _of_series(s, s.value, "logged step time")


def _throughput(view: RunView) -> StepTimes | None:
    for name in ("steps_per_s", "samples_per_s", "tokens_per_s"):
        s = view.pick(name, "train", "none")
        if s is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                return _of_series(s, 1.0 / s.value, "throughput", relative=name != "steps_per_s")
    return None


def _clocked(view: RunView) -> StepTimes | None:
    """Wall clock between the rows of the training loss (else of the longest curve), by attempt."""
    s = view.train_loss or max(view.curves, key=len, default=None)
    if s is None or s.wall_ns is None or not s.has_step or len(s) < 2:
        return None
    steps, wall = np.diff(s.x), np.diff(s.wall_ns)
    on = (steps > 0) & (wall >= 0) & (np.diff(s.attempt) == 0)
    if not on.any():
        return None
    end, t_ns, steps, wall = s.x[1:][on], s.wall_ns[1:][on], steps[on], wall[on]
    low, high = np.percentile(steps, [10, 90])
    if high > UNEVEN * low:
        stretch = np.floor(np.cumsum(steps) / (ROWS_OF_STRETCH * steps.mean()))
        first = np.flatnonzero(np.diff(stretch, prepend=-1.0))
        last = np.append(first[1:], len(steps)) - 1
        end, t_ns = end[last], t_ns[last]
        steps, wall = np.add.reduceat(steps, first), np.add.reduceat(wall, first)
    timed = wall > 0
    if not timed.any():
        return None
    return StepTimes(
        step=end[timed],
        seconds=wall[timed] / 1e9 / steps[timed],
        t_ns=t_ns[timed],
        origin="wall clock between rows",
        every=float(np.median(steps[timed])),
        source=s.source,
        tag=s.tag,
    )


def _traced(view: RunView) -> StepTimes | None:
    for device in view.trace.devices:
        steps = view.trace.paced_steps(device)
        if steps is None:
            continue
        whole = slice(0, len(steps) - 1 if steps.last_is_cut else len(steps))
        return StepTimes(
            step=steps.number[whole].astype(np.float64),
            seconds=steps.durations[whole] / 1e9,
            t_ns=steps.end[whole],
            origin="step marks of a trace",
            every=1.0,
            source="trace",
            tag=None,
        )
    return None


def _of_series(s: Series, seconds: Floats, origin: Origin, *, relative: bool = False) -> StepTimes:
    good = np.isfinite(seconds) & (seconds > 0)
    gaps = np.diff(s.x[good])
    return StepTimes(
        step=s.x[good],
        seconds=seconds[good],
        t_ns=None if s.wall_ns is None else s.wall_ns[good],
        origin=origin,
        every=float(np.median(gaps)) if len(gaps) else 1.0,
        source=s.source,
        tag=s.tag,
        relative=relative,
    )
