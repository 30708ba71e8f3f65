"""Steps as a trace marks them: ``ProfilerStep#7``, ``step 7``, ``iteration_7``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.intervals import Times

MIN_CUT = 0.5
"""A last mark shorter than this share of the median step was cut by the end of the capture."""

MIN_KNOWN = 0.9
"""Share of a device's activities whose launch must be recorded to say which step they belong to."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """Step marks of one process, ascending in time. A step lasts from its start to the start of the next one.

    ``end`` of the last step is the end of its own mark; ``last_is_cut`` says that the capture ended inside it.
    """

    number: npt.NDArray[np.int64]
    start: Times
    end: Times
    last_is_cut: bool

    def __len__(self) -> int:
        return len(self.start)

    @property
    def durations(self) -> Times:
        """Length of each step, ns."""
        return self.end - self.start

    def at(self, t: Times) -> npt.NDArray[np.int64]:
        """The index of the step in which each instant lies; -1 outside all steps."""
        i = np.searchsorted(self.start, t, side="right") - 1
        return np.where((i >= 0) & (t < self.end[np.maximum(i, 0)]), i, -1)


def steps_of(host: pl.DataFrame) -> Steps | None:
    """The steps of one process from its host spans; None without marks. Marks of one number are one step."""
    marks = host.filter(pl.col("step").is_not_null())
    if marks.is_empty():
        return None
    rows = (
        marks.group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max()).sort("start_ns", "step")
    )
    start, own_end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    end = np.concatenate([start[1:], own_end[-1:]])
    lengths = own_end - start
    cut = len(lengths) >= 3 and lengths[-1] < MIN_CUT * np.median(lengths[:-1])
    return Steps(number=rows["step"].to_numpy(), start=start, end=end, last_is_cut=bool(cut))


def device_steps(steps: Steps, activity: pl.DataFrame, calls: pl.DataFrame) -> Steps | None:
    """The steps as the device worked on them, from the end of one step's last activity to that of the next.

    The host marks a step when it has queued its work; a device that is behind does the work later. ``activity`` has
    ``start_ns``, ``end_ns`` and ``corr``, ``calls`` ``corr`` and ``start_ns`` of the call that launched. None where too few launches
    are recorded, or a step launched nothing.
    """
    launched = activity.join(calls.select("corr", called_ns="start_ns"), on="corr", how="inner")
    if len(launched) < MIN_KNOWN * len(activity):
        return None
    launched = launched.with_columns(at=pl.Series(steps.at(launched["called_ns"].to_numpy())))
    ends = launched.filter(pl.col("at") >= 0).group_by("at").agg(pl.col("end_ns").max()).sort("at")
    if len(ends) < len(steps):
        return None
    first = launched.filter(pl.col("at") == 0)["start_ns"].min()
    end = np.maximum.accumulate(ends["end_ns"].to_numpy())
    start = np.concatenate([[first], end[:-1]]).astype(np.int64)
    return Steps(number=steps.number, start=start, end=end, last_is_cut=steps.last_is_cut)
