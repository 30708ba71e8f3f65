"""Times of log lines as nanoseconds UTC, for all lines of a skeleton at once."""

from __future__ import annotations

import numpy as np
import polars as pl

from afterrun.loaders.tables.cells import SECOND_NS, moments
from afterrun.loaders.textlog.grammar import Clock
from afterrun.loaders.textlog.tokens import Ints, Lines

NO_TIME = np.iinfo(np.int64).min
"""Stands for a time that is not recorded."""

_LAST_MILLI = 999


def line_times(lines: Lines, at: Ints, clock: Clock) -> Ints:
    """Nanoseconds of each line, ``NO_TIME`` where its numbers are no moment between 2000 and 2100."""
    if clock.since is not None:
        found = moments(pl.Series(lines.column(at, clock.since)), clock.unit_ns)
        return found.fill_null(NO_TIME).to_numpy()
    assert clock.date is not None
    assert clock.time is not None
    year, month, day = (lines.column(at, slot) for slot in clock.date)
    hour, minute, second = (lines.column(at, slot) for slot in clock.time)
    with np.errstate(invalid="ignore"):
        good = (year >= 2000) & (year < 2100) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        good &= (hour >= 0) & (hour < 24) & (minute >= 0) & (minute < 60) & (second >= 0) & (second < 61)
    years = np.where(good, year, 2000).astype(np.int64)
    months = (years - 1970) * 12 + np.where(good, month, 1).astype(np.int64) - 1
    days = (
        months.astype("M8[M]").astype("M8[D]").astype(np.int64) + np.where(good, day, 1).astype(np.int64) - 1
    )
    whole = days * 86_400 + np.where(good, hour * 3600 + minute * 60, 0).astype(np.int64)
    if clock.offset is not None:
        sign, hours, minutes = clock.offset
        shift = lines.column(at, hours) * 3600 + lines.column(at, minutes) * 60
        whole -= sign * np.nan_to_num(shift).astype(np.int64)
    part = np.rint(np.where(good, second, 0.0) * 1e6).astype(np.int64) * 1_000
    if clock.milli is not None:
        digits = np.nan_to_num(lines.column(at, clock.milli))
        unit = np.where(digits > _LAST_MILLI, 1_000, 1_000_000)
        part += digits.astype(np.int64) * unit
    return np.where(good, whole * SECOND_NS + part, NO_TIME)
