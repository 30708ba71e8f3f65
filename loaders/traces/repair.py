"""Device rows that cannot be true, decided alike for every trace format.

Three kinds occur in real captures. A length below zero: the profiler never saw the end (pytorch/kineto#646). A
start long before the own launch call: CUPTI's first records of a session (pytorch/pytorch#192021). A kernel that
would run on for thousands of times the others while later kernels of its stream, which wait for it, have started
(AMD-AGI/TraceLens#669). The first two are given up and counted, the third is cut where the next kernel starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.loaders.traces.lanes import DEVICE_LANES

EARLIEST_BEFORE_LAUNCH_NS = 1_000_000_000
"""Clocks of host and device are aligned to microseconds; a device row one second ahead of its launch is none."""

OVERRUN_FLOOR_NS = 100_000
"""An overlap below this between kernels of one stream is legal: programmatic dependent launch, branches of a graph."""

OVERRUN_FACTOR = 100
"""How many times the median kernel of its stream the overrun of a kernel must be before it is taken for an error."""


NEGATIVE = "{} events end before they start and were left out"

_STREAM = ("process", "device", "track")
_FEW_STREAMS = 1 << 16
"""Numbers of 16 bits are sorted by radix."""


@dataclass(frozen=True)
class Repaired:
    """Rows that may be passed on, how many were given up, and sentences for a person."""

    spans: pl.DataFrame
    damaged: int
    notes: tuple[str, ...]


def repair(spans: pl.DataFrame, calls: pl.DataFrame | None = None) -> Repaired:
    """Check the rows of one file: columns of the schema, any lanes. Order of rows is kept.

    ``calls`` are the ``runtime`` rows of the file (``lane``, ``process``, ``corr``, ``start_ns``) where ``spans`` does not hold them.
    """
    notes: list[str] = []
    kept, bad = without_negative(spans)
    if bad:
        notes.append(NEGATIVE.format(bad))
    early = _before_launch(kept, spans if calls is None else calls)
    if lost := len(early):
        notes.append(f"{lost} device events start long before their own launch and were left out")
        kept = kept.with_row_index("row").filter(~pl.col("row").is_in(early.implode())).drop("row")
    kept, cut = _cut_overruns(kept)
    if cut:
        notes.append(f"{cut} kernels claim to run on past later kernels of their stream and were cut there")
    return Repaired(kept, bad + lost, tuple(notes))


def without_negative(spans: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The rows that do not end before they start, and how many do."""
    negative = spans["dur_ns"] < 0
    bad = int(negative.sum())
    return (spans.filter(~negative) if bad else spans), bad


def _before_launch(spans: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Row numbers of device rows that start more than ``EARLIEST_BEFORE_LAUNCH_NS`` before their launch call.

    Sorted arrays and a search: a join of a million rows takes ten times the memory of the rows.
    """
    device = spans["device"].is_not_null() & spans["lane"].is_in(DEVICE_LANES) & spans["corr"].is_not_null()
    runtime = (calls["lane"] == "runtime") & calls["corr"].is_not_null()
    found = [pl.Series("row", [], dtype=pl.UInt32)]
    for process in spans["process"].unique():
        rows, corr, start = _of_process(spans, device, process)
        _, call, called = _of_process(calls, runtime, process)
        if len(rows) and len(call):
            found.append(rows.filter(pl.Series(_ahead_of_call(corr, start, call, called), dtype=pl.Boolean)))
    return pl.concat(found)


_Numbers = npt.NDArray[np.int64]


def _of_process(
    frame: pl.DataFrame, wanted: pl.Series, process: int | None
) -> tuple[pl.Series, _Numbers, _Numbers]:
    """Row numbers, ``corr`` and ``start_ns`` of the wanted rows of one process."""
    own = wanted & frame["process"].eq_missing(pl.Series([process], dtype=pl.Int64))
    rows = own.arg_true().rename("row")
    return rows, frame["corr"].gather(rows).to_numpy(), frame["start_ns"].gather(rows).to_numpy()


def _ahead_of_call(
    corr: _Numbers, start: _Numbers, call: _Numbers, called: _Numbers
) -> npt.NDArray[np.bool_]:
    """Whether each row starts too long before the first call of its ``corr``; false where there is no call."""
    if not np.all(call[1:] > call[:-1]):  # counted up as the calls were made, in most files
        order = np.lexsort((called, call))
        call, called = call[order], called[order]
    at = np.minimum(np.searchsorted(call, corr), len(call) - 1)
    ahead: npt.NDArray[np.bool_] = (call[at] == corr) & (start < called[at] - EARLIEST_BEFORE_LAUNCH_NS)
    return ahead


def _cut_overruns(spans: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    kernel = (spans["lane"] == "kernel") & spans["device"].is_not_null()
    rows = spans.select(*_STREAM, "start_ns", "dur_ns")
    rows = rows if kernel.all() else rows.filter(kernel)
    if len(rows) < 2:
        return spans, 0
    stream, order = _by_stream(rows)
    start, dur, stream = rows["start_ns"].to_numpy()[order], rows["dur_ns"].to_numpy()[order], stream[order]
    overrun = start[:-1] + dur[:-1] - start[1:]
    follows = (stream[1:] == stream[:-1]) & (start[1:] > start[:-1])
    suspects = np.flatnonzero(follows & (overrun > OVERRUN_FLOOR_NS))
    usual = {s: max(float(np.median(dur[stream == s])), 1.0) for s in np.unique(stream[suspects])}
    cut = np.array([i for i in suspects if overrun[i] > OVERRUN_FACTOR * usual[stream[i]]], dtype=np.int64)
    if not len(cut):
        return spans, 0
    length = spans["dur_ns"].to_numpy().copy()
    length[kernel.arg_true().to_numpy()[order[cut]]] = start[cut + 1] - start[cut]
    return spans.with_columns(pl.Series("dur_ns", length)), len(cut)


def _by_stream(kernels: pl.DataFrame) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
    """A number for the stream of each row, and the order of rows by stream, start and length.

    Traces come in order of time: then sorting by stream is enough, and fast.
    """
    stream = _few_streams(kernels)
    if stream is None:
        streams = kernels.select(_STREAM).unique().with_row_index("stream")
        number = pl.col("stream").cast(pl.UInt16 if len(streams) <= _FEW_STREAMS else pl.UInt32)
        placed = (
            kernels.lazy()
            .select(_STREAM)
            .join(streams.lazy(), on=_STREAM, how="left", nulls_equal=True, maintain_order="left")
        )
        stream = placed.select(number).collect()["stream"].to_numpy()
    start = kernels["start_ns"].to_numpy()
    if np.all(start[1:] >= start[:-1]):
        order = np.argsort(stream, kind="stable")
        tied = (start[order][1:] == start[order][:-1]) & (stream[order][1:] == stream[order][:-1])
        if not tied.any():
            return stream, order
    return stream, np.lexsort((kernels["dur_ns"].to_numpy(), start, stream))


def _few_streams(kernels: pl.DataFrame) -> npt.NDArray[np.integer] | None:
    """A number for the stream of each row by plain arithmetic, where that stays within 16 bits; else None.

    Most files are of one process and one device with a few dozen streams: no join is needed to tell them apart.
    """
    stream, size = np.zeros(len(kernels), np.int64), 1
    for column in _STREAM:
        values = kernels[column]
        low, high = values.min(), values.max()
        if values.null_count() not in (0, len(values)):
            return None
        if low == high:
            continue
        width = int(str(high)) - int(str(low)) + 1
        size *= width
        if size > _FEW_STREAMS:
            return None
        stream = stream * width + (values.to_numpy() - low)
    return stream.astype(np.uint16)
