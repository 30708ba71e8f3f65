"""Which device each row is of.

The index is that of the tool. Where rows tell only UUIDs, bus ids or names, devices are numbered in order of their
first appearance. Where they tell nothing, or the same name for several, rows of one moment are counted off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.counters.samples import series_text
from afterrun.loaders.counters.smi.wide import IDENTITIES
from afterrun.loaders.tables.damage import Places

BURST_NS = 20_000_000
"""Rows of one sampling follow each other within this time (1 ms on real machines), samplings do not,"""

APART_FACTOR = 4
"""and are apart at least this many times as far."""

BURST_SHARE = 0.9
"""Share of samplings that must hold the same number of rows."""

MAX_DEVICES = 64
MAX_INDEX = 1024
TORN_BELOW = 10
"""A name that appears once is a torn one where another of its device appears at least so often."""

_TELLING = ("mem_used_bytes", "power_w", "gpu_util_pct", "temp_c", "sm_clock_hz")
_TELLING_FACTOR = 3.0


@dataclass(slots=True)
class Placed:
    """``device`` and ``series`` of every row; ``kept``: not torn. ``names`` by device, sentences for a person."""

    device: pl.Series
    series: pl.Series
    kept: pl.Series
    names: dict[int, str]
    torn: Places = field(default_factory=Places)
    notes: list[str] = field(default_factory=list)


def place(frame: pl.DataFrame) -> Placed:
    """Devices of the rows of a wide frame; where it holds several of one index, ``series`` tells them apart."""
    telling = [c for c in IDENTITIES if frame[c].count()]
    kept = pl.repeat(True, len(frame), eager=True)
    torn, notes = Places(), list[str]()
    beside = next((c for c in ("uuid", "bus", "name") if c in telling), None)
    if beside is not None:
        kept = ~_torn(frame, beside)
        for line in frame.filter(~kept)["line"].to_list():
            torn.add(line)
    if "index" in telling:
        device = frame["index"]
        lost = (device.is_null() & frame["indexed"]) | (device >= MAX_INDEX).fill_null(False)
        for line in frame.filter(lost & kept)["line"].to_list():
            torn.add(line)
        kept &= ~lost
        known = device.filter(kept).drop_nulls().unique()
        device = device.fill_null(known[0]) if len(known) == 1 else device
        series = _several(frame, beside, kept, notes)
    else:
        series = pl.repeat("", len(frame), dtype=pl.String, eager=True)
        device = _counted(frame, beside, kept, notes)
    names = _names(frame.with_columns(device=device).filter(kept))
    return Placed(device.cast(pl.Int32), series, kept, names, torn, notes)


def _torn(frame: pl.DataFrame, identity: str) -> pl.Series:
    """Rows whose identity appears once while another of the same index is common: two lines run into each other."""
    counts = frame.select(pl.len().over("index", identity).alias("own"), pl.len().over("index").alias("all"))
    once = (counts["own"] == 1) & (counts["all"] > TORN_BELOW)
    common = frame.select((pl.len().over("index", identity).max().over("index") >= TORN_BELOW).alias("c"))[
        "c"
    ]
    return once & common


def _several(frame: pl.DataFrame, beside: str | None, kept: pl.Series, notes: list[str]) -> pl.Series:
    """``name="..."`` for the second and later devices of one index, as files of several hosts have them."""
    if beside is None:
        return pl.repeat("", len(frame), dtype=pl.String, eager=True)
    pairs = frame.filter(kept).select("index", pl.col(beside).cast(pl.String)).unique(maintain_order=True)
    pairs = pairs.drop_nulls()
    label = "bus_id" if beside == "bus" else beside
    rows = [
        ("" if first else series_text({label: identity}))
        for first, identity in zip(pairs["index"].is_first_distinct(), pairs[beside], strict=True)
    ]
    if any(rows):
        notes.append(
            f"one index stands for several devices, told apart by {label}, as in files of several hosts"
        )
    known = pairs.with_columns(s=pl.Series(rows, dtype=pl.String))
    joined = frame.select("index", pl.col(beside).cast(pl.String)).join(
        known, on=["index", beside], how="left", maintain_order="left"
    )
    return joined["s"].fill_null("")


def _counted(frame: pl.DataFrame, beside: str | None, kept: pl.Series, notes: list[str]) -> pl.Series:
    """Numbers of devices in order of first appearance."""
    nothing = pl.repeat(0, len(frame), dtype=pl.Int64, eager=True)
    if frame["place"].count():
        notes.append("cells hold the values of several devices, one a line")
        return frame["place"].fill_null(0)
    if beside in ("uuid", "bus"):
        position = nothing
    elif frame["pid"].count() and beside is None:
        return pl.Series([None] * len(frame), dtype=pl.Int64)  # processes of an unknown device
    else:
        position = _positions(frame)
        if position.max():
            notes.append(
                "no column tells the device: rows of one moment are counted off as devices 0, 1, ..."
            )
    keys = pl.DataFrame(
        {"of": frame[beside].cast(pl.String) if beside else nothing.cast(pl.String), "at": position}
    )
    known = keys.filter(kept).unique(maintain_order=True).with_row_index("device")
    joined = keys.join(known, on=["of", "at"], how="left", nulls_equal=True, maintain_order="left")
    return joined["device"].cast(pl.Int64)


def _positions(frame: pl.DataFrame) -> pl.Series:
    """Position of each row among the rows of its moment; zeros where moments hold one row each."""
    zeros = pl.repeat(0, len(frame), dtype=pl.Int64, eager=True)
    t_ns = frame["t_ns"]
    if t_ns.null_count() or len(t_ns) < 4:
        return zeros
    times = t_ns.to_numpy()
    gaps = np.diff(times)
    new = np.concatenate([[True], (gaps > BURST_NS) | (gaps < 0)])
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(times)))
    size = int(np.bincount(sizes).argmax())
    if not 1 < size <= MAX_DEVICES or (sizes == size).mean() < BURST_SHARE:
        return zeros
    apart = np.diff(times[starts])
    if len(apart) and np.median(apart) < APART_FACTOR * BURST_NS:
        return zeros
    at = np.arange(len(times)) - np.repeat(starts, sizes)
    coarse = bool((times % 1_000_000_000 == 0).all())
    if coarse and not _unlike(frame, at, size):
        return zeros  # samplings more often than once a second, with times in whole seconds
    return pl.Series(at, dtype=pl.Int64)


def _unlike(frame: pl.DataFrame, at: NDArray[np.int64], size: int) -> bool:
    """Whether the rows of different positions are of different devices: further apart than neighbours in time."""
    for name in frame.columns:
        if not name.startswith(_TELLING):
            continue
        values = frame[name].fill_null(strategy="forward").fill_null(0).to_numpy()
        own = [values[at == p] for p in range(size)]
        steps = [float(np.abs(np.diff(v)).mean()) if len(v) > 1 else 0.0 for v in own]
        spread = max(float(v.mean()) for v in own) - min(float(v.mean()) for v in own)
        if spread > _TELLING_FACTOR * max(*steps, 1e-9):
            return True
    return False


def _names(frame: pl.DataFrame) -> dict[int, str]:
    if not frame["name"].count():
        return {}
    first = frame.filter(pl.col("name").is_not_null() & pl.col("device").is_not_null()).unique(
        "device", keep="first", maintain_order=True
    )
    pairs: Iterator[tuple[int, str]] = first.select("device", pl.col("name").cast(pl.String)).iter_rows()
    return dict(pairs)
