"""Why a device was idle: every nanosecond of every gap in exactly one cause.

The next activity behind a gap says who was late (the three-way split of algorithms section 11). Its launch call ended before
the gap began: the work was queued and waited for its stream or an event (``kernel_gap``). Else the device had run
dry: until the call ended, the time is what the feeding thread did (``afterrun.analyzer.trace.host``); the moment
between call and start is ``launch``; what goes beyond ``LATENCY_NS`` of it is ``kernel_gap`` again.

A gap that begins while the host blocks on the device (``sync``, ``memcpy``) was made by that wait, so the launching,
the short Python and the ready batch up to the first new activity are its refill and count to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.intervals import Intervals, Times
from afterrun.analyzer.trace.devices import DeviceTrace
from afterrun.analyzer.trace.host import BLOCKING, CAUSES, HostView, host_view

IDLE_CAUSES = (*CAUSES, "kernel_gap")
"""All causes, in order of precedence."""

LATENCY_NS = 10_000
"""A launch reaches the device within this; more is waiting for something else."""

REFILL = ("launch", "other")
"""Host classes that refill the device behind a wait."""

SIZE_CLASSES: Mapping[str, int] = {
    "launch": 0,
    "micro": 10_000,
    "meso": 100_000,
    "macro": 1_000_000,
    "stall": 100_000_000,
}
"""Size of a gap from this many ns on: below 10 us, 100 us, 1 ms, 100 ms, and above."""

_NO_THREAD = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Idle:
    """The gaps of one device, explained.

    ``ns[i, j]`` is the part of gap ``i`` that cause ``IDLE_CAUSES[j]`` explains; rows sum to the gap. ``next_row`` is
    the row of ``device.rows`` that ended each gap, ``thread`` the one that launched it (-1 where unknown).
    """

    device: DeviceTrace
    gaps: Intervals
    ns: npt.NDArray[np.int64]
    next_row: npt.NDArray[np.int64]
    thread: npt.NDArray[np.int64]
    launches_known: float
    """Share of the activities behind gaps whose launch call is recorded."""

    @cached_property
    def by_cause_ns(self) -> dict[str, int]:
        """Idle time by cause, largest first; sums to ``device.idle_ns`` exactly."""
        total = self.ns.sum(axis=0)
        order = np.argsort(-total, kind="stable")
        return {IDLE_CAUSES[j]: int(total[j]) for j in order if total[j]}

    @staticmethod
    def column(cause: str) -> int:
        """The column of ``ns`` that holds a cause."""
        return IDLE_CAUSES.index(cause)

    @cached_property
    def cause(self) -> npt.NDArray[np.int64]:
        """The cause that explains most of each gap, as an index into ``IDLE_CAUSES``."""
        return np.asarray(self.ns.argmax(axis=1), np.int64)

    @cached_property
    def by_size_ns(self) -> dict[str, int]:
        """Idle time by size of gap; many small gaps are another illness than few large ones."""
        classes = np.searchsorted(list(SIZE_CLASSES.values()), self.gaps.durations, side="right") - 1
        sums = np.zeros(len(SIZE_CLASSES), np.int64)
        np.add.at(sums, classes, self.gaps.durations)
        return dict(zip(SIZE_CLASSES, (int(s) for s in sums), strict=True))

    def between(self, low: Times, high: Times) -> dict[str, Times]:
        """Idle time by cause inside each stretch ``[low, high)``; a gap over an edge is shared by its length inside."""
        out: dict[str, Times] = {}
        inside = self.gaps.covered(low, high)
        first = np.searchsorted(self.gaps.end, low, side="right")
        last = np.searchsorted(self.gaps.start, high, side="left")
        before = np.concatenate([np.zeros((1, self.ns.shape[1]), np.int64), np.cumsum(self.ns, axis=0)])
        whole = before[last] - before[first]
        total = whole.sum(axis=1)
        share = np.divide(inside, total, out=np.zeros(len(low)), where=total > 0)
        for j, name in enumerate(IDLE_CAUSES):
            out[name] = np.rint(whole[:, j] * share).astype(np.int64)
        return out


def explain(device: DeviceTrace, calls: pl.DataFrame, host: pl.DataFrame) -> Idle:
    """The gaps of a device by cause.

    ``calls``: launch calls of the process (``corr``, ``track``, ``start_ns``, ``end_ns``; one row a ``corr``). ``host``: the ``classed``
    spans of the threads that feed the device.
    """
    gaps = device.gaps
    launch = _next_launches(device, gaps, calls)
    ns = np.zeros((len(gaps), len(IDLE_CAUSES)), np.int64)
    thread = launch["track"].fill_null(_NO_THREAD).to_numpy()
    done = launch["end_ns"].to_numpy()
    unknown = launch["end_ns"].is_null().to_numpy()
    done = np.where(unknown, gaps.end, done).astype(np.int64)
    queued = ~unknown & (done <= gaps.start)
    until = np.clip(done, gaps.start, gaps.end)
    reached = np.where(unknown, gaps.end, np.minimum(gaps.end, until + LATENCY_NS))
    column = {name: j for j, name in enumerate(IDLE_CAUSES)}
    ns[:, column["kernel_gap"]] = np.where(queued, gaps.durations, gaps.end - reached)
    window = (device.low_ns, device.high_ns)
    if calls.is_empty():  # a trace of the device alone says nothing of the host
        ns[:, column["unobserved"]], queued = gaps.durations, np.ones(len(gaps), bool)
        ns[:, column["kernel_gap"]] = 0
    for one in np.unique(thread[~queued]):
        chosen = np.flatnonzero(~queued & (thread == one))
        view = host_view(host, int(one), window)
        _share(ns, chosen, view, gaps, until)
        ns[chosen, column["launch"]] += reached[chosen] - until[chosen]
        _give_to_waits(ns, chosen, view, gaps, until)
    return Idle(
        device=device,
        gaps=gaps,
        ns=ns,
        next_row=launch["row"].to_numpy().astype(np.int64),
        thread=thread.astype(np.int64),
        launches_known=float(1 - unknown.mean()) if len(gaps) else 1.0,
    )


def _next_launches(device: DeviceTrace, gaps: Intervals, calls: pl.DataFrame) -> pl.DataFrame:
    """The activity that ends each gap and its launch call; of several that start at once, the last one launched."""
    first = np.searchsorted(device.start, gaps.end, side="left")
    last = np.searchsorted(device.start, gaps.end, side="right")
    rows = device.rows.select("corr", pl.col("start_ns").alias("at_ns")).with_row_index("row")
    starts = rows[first]
    if (last - first > 1).any():
        several = rows.filter(pl.col("at_ns").is_in(gaps.end[last - first > 1]))
        late = several.join(calls.select("corr", "end_ns"), on="corr", how="left")
        late = (
            late.sort("at_ns", pl.col("end_ns").fill_null(-1)).group_by("at_ns", maintain_order=True).last()
        )
        starts = starts.join(
            late.select("at_ns", "row", "corr"), on="at_ns", how="left", maintain_order="left"
        )
        starts = starts.select(
            "at_ns",
            pl.coalesce("row_right", "row").alias("row"),
            pl.coalesce("corr_right", "corr").alias("corr"),
        )
    return starts.join(calls, on="corr", how="left", maintain_order="left")


def _share(
    ns: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], view: HostView, gaps: Intervals, until: Times
) -> None:
    """Adds what the host did in each gap up to the end of the launch call."""
    low, high = gaps.start[chosen], until[chosen]
    left = high - low
    for j, name in enumerate(IDLE_CAUSES[:-1]):
        part = view.by_class[name].covered(low, high)
        ns[chosen, j] += part
        left = left - part
    ns[chosen, Idle.column("unobserved")] += left


def _give_to_waits(
    ns: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], view: HostView, gaps: Intervals, until: Times
) -> None:
    """Moves the refill of the gaps that began in a wait to the wait."""
    quick = view.quick.covered(gaps.start[chosen], until[chosen])
    for wait in BLOCKING:
        drained = view.blocked[wait].holds(gaps.start[chosen]) & view.by_class[wait].holds(gaps.start[chosen])
        rows, to = chosen[drained], Idle.column(wait)
        for name in REFILL:
            j = Idle.column(name)
            ns[rows, to] += ns[rows, j]
            ns[rows, j] = 0
        ns[rows, to] += quick[drained]
        ns[rows, Idle.column("dataloader")] -= quick[drained]
