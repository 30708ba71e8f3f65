"""Data loading as a log tells it: the time a step waited for data beside the time of the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from afterrun.analyzer.view import RunView

MIN_ROWS = 10


@dataclass(frozen=True, kw_only=True)
class LoggedLoading:
    """Share of the step time that is data time, summed over the rows both have; medians in seconds."""

    share_pct: float
    data_s: float
    step_s: float
    rows: int
    data_tag: str
    step_tag: str
    source: str
    first_step: float
    last_step: float


def logged_loading(view: RunView) -> LoggedLoading | None:
    """Logged data time against logged step time at the same steps; None where fewer than ``MIN_ROWS`` have both.

    The first row is left out: it holds the start of the workers.
    """
    data, step = view.pick("data_time_s", "train", "none"), view.pick("step_time_s", "train", "none")
    if data is None or step is None:
        return None
    at, i, j = np.intersect1d(data.xf, step.xf, return_indices=True)
    if len(at) <= MIN_ROWS:
        return None
    waited, took = data.y[i][1:], step.y[j][1:]
    good = (took > 0) & (waited >= 0)
    total = float(took[good].sum())
    if not total:
        return None
    return LoggedLoading(
        share_pct=100.0 * min(float(waited[good].sum()) / total, 1.0),
        data_s=float(np.median(waited[good])),
        step_s=float(np.median(took[good])),
        rows=int(good.sum()),
        data_tag=data.tag,
        step_tag=step.tag,
        source=data.source,
        first_step=float(at[1]),
        last_step=float(at[-1]),
    )
