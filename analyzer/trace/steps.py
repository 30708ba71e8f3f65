"""Steps as a trace marks them: ``ProfilerStep#7``, ``step 7``, ``iteration_7``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.intervals import Times

MIN_CUT = 0.5
"""A last mark shorter than this share of the median step was cut by the end of the capture."""


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
