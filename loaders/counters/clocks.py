"""When samplers say that a sample was taken: local or zoned dates, seconds since 1970, or seconds since the start.

Times that count from the start of the sampling stay on the file's own clock, below ``EPOCH_FLOOR_NS``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from afterrun.loaders.tables.cells import SECOND_NS, moment, moments

Clock = Literal["local", "zoned", "epoch", "elapsed"]

LOCAL_NOTE = "local times without a zone are taken for UTC"
ELAPSED_NOTE = "times count from the start of the sampling"

_FORMATS = (
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y%m%d %H:%M:%S%.f",
    "%a %b %e %H:%M:%S %Y",
    "%d.%m.%Y %H:%M:%S%.f",
    "%m/%d/%Y %H:%M:%S%.f",
)
_ZONED = re.compile(r"(?:Z|UTC|[+-]\d\d:?\d\d)$")
_FIRST_NS, _LAST_NS = 946_684_800 * SECOND_NS, 4_102_444_800 * SECOND_NS  # 2000 to 2100
_UNITS_NS = (SECOND_NS, 1_000_000, 1_000, 1)
_MAX_ELAPSED_S = 10**8
_CTIME = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w* (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* +\d{1,2} "
    r"\d\d:\d\d:\d\d(?: [A-Z]{2,5})? \d{4}"
)


@dataclass(frozen=True, slots=True)
class Times:
    """``t_ns`` is Int64, null where a cell holds no time; ``clock`` says how it was written, None where none is."""

    t_ns: pl.Series
    clock: Clock | None


def times_of(cells: pl.Series) -> Times:
    """Times of a text column."""
    plain = cells.str.strip_chars()
    values = plain.cast(pl.Float64, strict=False)
    if values.count() * 2 > (plain != "").sum():
        return _numeric(values)
    found = pl.Series(cells.name, [None] * len(cells), dtype=pl.Int64)
    for layout in _FORMATS:
        if found.null_count() == 0:
            break
        read = plain.str.to_datetime(layout, time_unit="ns", strict=False).dt.timestamp("ns")
        found = found.zip_with(found.is_not_null(), read)
    zoned = False
    if found.null_count():
        rest = plain.filter(found.is_null()).unique()
        told = {text: _moment(text) for text in rest.to_list() if text}
        zoned = any(_ZONED.search(text) for text, t in told.items() if t is not None)
        others = plain.replace_strict(told, default=None, return_dtype=pl.Int64)
        found = found.zip_with(found.is_not_null(), others)
    found = found.set((found < _FIRST_NS) | (found >= _LAST_NS), None)
    clock: Clock | None = None if found.null_count() == len(found) else "zoned" if zoned else "local"
    return Times(found, clock)


def _moment(text: str) -> int | None:
    return moment(text.replace(" UTC", "Z"))


def _numeric(values: pl.Series) -> Times:
    """Seconds, milli-, micro- or nanoseconds since 1970, else seconds since the start."""
    middle = values.drop_nans().median()
    if not isinstance(middle, float):
        return Times(pl.Series([None] * len(values), dtype=pl.Int64), None)
    for unit_ns in _UNITS_NS:
        if _FIRST_NS <= middle * unit_ns < _LAST_NS:
            return Times(moments(values, unit_ns), "epoch")
    raw = values.fill_null(np.nan).to_numpy()
    inside = (raw >= 0) & (raw < _MAX_ELAPSED_S)
    t_ns = pl.Series(np.rint(np.where(inside, raw, 0.0) * SECOND_NS).astype(np.int64))
    return Times(t_ns.set(pl.Series(~inside), None), "elapsed")


def is_ctime(line: str) -> bool:
    """Whether a line is nothing but a date as ``ctime`` and ``date`` write it."""
    return _CTIME.fullmatch(line.strip()) is not None


def ctime_ns(text: str) -> int | None:
    """Nanoseconds of ``Tue Jul 14 08:12:53 2026``, a zone ignored; None where it is no date."""
    words = text.split()
    if len(words) == 6:
        del words[4]
    return times_of(pl.Series([" ".join(words)])).t_ns[0] if len(words) == 5 else None
