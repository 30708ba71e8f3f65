"""Collectives matched over ranks: who came last, who waited, and what moving the data alone would take.

A collective ends on all its ranks at once, so the median difference of the ends of matched collectives is the offset
of the clocks (NVIDIA JAX-Toolbox and Megatron-Bridge align so), and on aligned clocks the rank that starts last is
the one the others waited for. Matching is by group, kind of collective, bytes and ordinal; where captures do not
begin with the same collective, the shift of ordinals with the steadiest difference of ends is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.trace.devices import DeviceTrace

Matrix = npt.NDArray[np.float64]

MAX_SHIFT = 16
"""Most collectives by which two captures may begin apart."""

STEADIER = 0.1
"""A shift is believed when it makes the difference of ends this much steadier than no shift."""

_KIND = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|send|recv|reduce",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Collectives:
    """Matched collectives of a run; columns are ranks in the order of ``devices``, NaN where a rank took no part.

    ``start`` and ``dur`` are ns, starts on the clock of the first rank and relative to ``origin_ns``. ``offset_ns`` was taken off each
    rank's clock, ``residual_ns`` is the spread (median absolute) that remains between ends.
    """

    devices: tuple[DeviceTrace, ...]
    origin_ns: int
    start: Matrix
    dur: Matrix
    offset_ns: npt.NDArray[np.int64]
    residual_ns: Matrix
    unmatched: int

    def __len__(self) -> int:
        return len(self.start)

    @property
    def wait(self) -> Matrix:
        """How long each rank waited inside each collective for the last one, ns."""
        return np.asarray(np.nanmax(self.start, axis=1, keepdims=True) - self.start)

    @property
    def pure(self) -> npt.NDArray[np.float64]:
        """Shortest duration over the ranks: what the collective takes when nobody waits, ns."""
        return np.asarray(np.nanmin(self.dur, axis=1))

    @property
    def last(self) -> npt.NDArray[np.int64]:
        """The column that started last."""
        return np.asarray(np.nanargmax(self.start, axis=1), np.int64)

    @property
    def lateness(self) -> Matrix:
        """By how much the last rank came behind the next to last, in its own column, ns; 0 for the others.

        What the collective would have gained if this rank alone had been on time.
        """
        ordered = np.sort(np.where(np.isnan(self.start), -np.inf, self.start), axis=1)
        out = np.zeros_like(self.start)
        out[np.arange(len(self)), self.last] = ordered[:, -1] - ordered[:, -2]
        return out


def collectives_of(devices: Sequence[DeviceTrace]) -> Collectives | None:
    """Collectives that at least two devices took part in; None where there are none."""
    books = [(d, _keyed(d)) for d in devices]
    books = [(d, rows) for d, rows in books if len(rows)]
    if len(books) < 2:
        return None
    first = books[0][1]
    aligned = [first, *(_shifted(rows, first) for _, rows in books[1:])]
    table = pl.concat([rows.with_columns(pl.lit(i).alias("column")) for i, rows in enumerate(aligned)])
    shared = table.group_by("key", "ordinal").agg(pl.len().alias("ranks")).filter(pl.col("ranks") > 1)
    if shared.is_empty():
        return None
    numbered = shared.sort("key", "ordinal").with_row_index("collective")
    rows = table.join(numbered, on=["key", "ordinal"], how="inner")
    shape = (len(numbered), len(books))
    origin = min(d.low_ns for d, _ in books)
    start, dur = np.full(shape, np.nan), np.full(shape, np.nan)
    at = rows["collective"].to_numpy(), rows["column"].to_numpy()
    start[at] = rows["start_ns"].to_numpy() - origin
    dur[at] = rows["dur_ns"].to_numpy()
    offset, residual = _offsets(start + dur)
    order = np.argsort(np.nanmin(start - offset, axis=1), kind="stable")
    return Collectives(
        devices=tuple(d for d, _ in books),
        origin_ns=origin,
        start=(start - offset)[order],
        dur=dur[order],
        offset_ns=np.asarray(offset, np.int64),
        residual_ns=residual,
        unmatched=len(table) - len(rows),
    )


def _keyed(device: DeviceTrace) -> pl.DataFrame:
    """Collective kernels of a device with ``key`` (group, kind, bytes) and ``ordinal`` within it."""
    rows = device.of_lanes("comm")
    kinds = {name: _kind(name) for name in rows["name"].cast(pl.String).unique()}
    return (
        rows.select(
            pl.concat_str(
                pl.col("group").cast(pl.String).fill_null(""),
                pl.col("name").cast(pl.String).replace_strict(kinds, return_dtype=pl.String),
                pl.col("bytes").cast(pl.String).fill_null(""),
                separator="|",
            ).alias("key"),
            "start_ns",
            "dur_ns",
        )
        .sort("start_ns")
        .with_columns(pl.int_range(pl.len()).over("key").alias("ordinal"))
    )


def _kind(name: str) -> str:
    found = _KIND.search(name)
    return found[0].lower().replace("_", "") if found else name


def _shifted(rows: pl.DataFrame, first: pl.DataFrame) -> pl.DataFrame:
    """Ordinals moved so that the ends keep the steadiest difference from those of the first rank."""
    both = [k for k in rows["key"].unique().sort() if (first["key"] == k).any()]
    if not both:
        return rows
    key = max(both, key=lambda k: int((rows["key"] == k).sum()))
    a, b = (
        (part["start_ns"] + part["dur_ns"]).to_numpy()
        for part in (first.filter(pl.col("key") == key), rows.filter(pl.col("key") == key))
    )
    spread = {shift: _spread(a, b, shift) for shift in range(-MAX_SHIFT, MAX_SHIFT + 1)}
    best = min(spread, key=lambda s: (spread[s], abs(s)))
    if len(a) == len(b) and not spread[best] < STEADIER * spread[0]:
        return rows
    return rows.with_columns((pl.col("ordinal") - best).alias("ordinal")) if best else rows


def _spread(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], shift: int) -> float:
    """Median absolute deviation of the differences of ends when ``b`` begins ``shift`` later in its list."""
    x, y = (a, b[shift:]) if shift >= 0 else (a[-shift:], b)
    n = min(len(x), len(y))
    if n < max(4, min(len(a), len(b)) // 2):
        return float("inf")
    d = (y[:n] - x[:n]).astype(np.float64)
    return float(np.median(np.abs(d - np.median(d))))


def _offsets(ends: Matrix) -> tuple[Matrix, Matrix]:
    """Clock offsets of the ranks against the first, and what spread remains, ns.

    A rank that shares nothing with the first is aligned through the ranks that were aligned before it.
    """
    columns = ends.shape[1]
    offset, residual = np.zeros(columns), np.full(columns, np.nan)
    residual[0] = 0.0
    for r in range(1, columns):
        shared = ~np.isnan(ends[:, r]) & ~np.isnan(ends[:, :r]).all(axis=1)
        if shared.any():
            d = ends[shared, r] - np.nanmedian(ends[shared, :r] - offset[:r], axis=1)
            offset[r] = np.median(d)
            residual[r] = np.median(np.abs(d - offset[r]))
    return offset, residual
