"""Rows of one header as typed columns: one for the time, some that tell the device, one a counter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from afterrun.loaders.counters.clocks import Clock, Times, times_of
from afterrun.loaders.counters.readings import mask, performance_state, readings
from afterrun.loaders.counters.reasons import STATES, throttle_counters
from afterrun.loaders.counters.smi.columns import COUNTER_KINDS, Column
from afterrun.loaders.counters.smi.lines import Part
from afterrun.loaders.tables.damage import Places

IDENTITIES = ("index", "uuid", "bus", "name")
"""Columns that tell which device a row is of, the surest first."""

KEYS = ("line", "place", "indexed", "t_ns", *IDENTITIES, "pid", "process")
"""Columns of a wide frame that are no counters; missing ones are null.

``place``: which one of several values in one cell; ``indexed``: the header of the row has an index.
"""

_BYTES_FROM = 2.0**24
"""Memory without a unit from here on is bytes: as MiB it were 16 TiB."""


@dataclass(frozen=True, slots=True)
class CounterColumn:
    """A counter of a wide frame: its name, and the device that its label tells."""

    counter: str
    device: int | None = None
    on_host: bool = False

    def __str__(self) -> str:
        """The name of the column in the frame."""
        return f"{self.counter}\0{self.device}\0{self.on_host}"


@dataclass(slots=True)
class Wide:
    """Typed rows of a file as they come in; ``frames`` hold ``KEYS`` and counters."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    counters: dict[str, CounterColumn] = field(default_factory=dict)
    clocks: set[Clock] = field(default_factory=set)
    untimed: Places = field(default_factory=Places)
    facts: dict[str, str] = field(default_factory=dict)

    def add(self, part: Part) -> None:
        """Take over the rows of one header."""
        columns, data = _texts(part)
        times = _times(part.columns, columns)
        if times is not None:
            data["t_ns"] = times.t_ns
            if times.clock is not None:
                self.clocks.add(times.clock)
        for column, series in zip(part.columns, columns, strict=True):
            self._identity(column, series, data)
        data["indexed"] = pl.repeat("index" in data, len(data["line"]), eager=True)
        for key, values in self._values(part.columns, columns):
            self.counters[str(key)] = key
            data[str(key)] = values
        frame = pl.DataFrame(data)
        if times is not None and times.clock is not None:
            for line in frame.filter(pl.col("t_ns").is_null())["line"].to_list():
                self.untimed.add(line)
            frame = frame.filter(pl.col("t_ns").is_not_null())
        self.frames.append(frame)

    def _identity(self, column: Column, series: pl.Series, data: dict[str, pl.Series]) -> None:
        text = series.str.strip_chars()
        if column.kind in ("uuid", "bus", "name", "process") and column.kind not in data:
            data[column.kind] = _words(text).cast(pl.Categorical)
        elif column.kind == "pid":
            data["pid"] = text.cast(pl.Int64, strict=False)
        elif column.kind == "driver":
            self.facts.setdefault(column.name.replace(".", "_"), next((t for t in text if t), ""))
        elif column.kind == "index" and "index" not in data:
            numbers = text.str.extract(r"^(?:gpu|GPU|card|cuda:)?\s*(\d{1,3})$").cast(pl.Int64)
            if numbers.count() * 2 >= len(text):
                data["index"] = numbers
            elif "name" not in data:  # a column called gpu may hold its name
                data["name"] = _words(text).cast(pl.Categorical)

    def _values(
        self, columns: Sequence[Column], cells: Sequence[pl.Series]
    ) -> Iterator[tuple[CounterColumn, pl.Series]]:
        reasons: list[tuple[int, pl.Series]] = []
        masked = any(c.kind == "mask" for c in columns)
        for column, series in zip(columns, cells, strict=True):
            if column.kind in ("counter", "raw"):
                values = _scaled(column, series)
                if column.kind == "counter" or values.count():
                    yield CounterColumn(column.counter, column.device, column.on_host), values
            elif column.kind == "state":
                yield CounterColumn(column.counter), _read(series, _state)
            elif column.kind == "mask":
                yield from _reasons(_read(series, _mask))
            elif column.kind == "reason":
                reasons.append((column.bit, series))
        if reasons and not masked:
            yield from _reasons(_mask_of(reasons))


def _texts(part: Part) -> tuple[list[pl.Series], dict[str, pl.Series]]:
    """Columns of cells, and the line of each row and its place in it."""
    if part.texts is not None:
        nowhere = pl.repeat(None, len(part.lines), dtype=pl.Int64, eager=True)
        return part.texts.get_columns(), {"line": pl.Series(part.lines, dtype=pl.Int64), "place": nowhere}
    cells, lines, places = _unpiled(part)
    columns = [pl.Series(str(i), c, dtype=pl.String) for i, c in enumerate(zip(*cells, strict=True))]
    return columns, {"line": pl.Series(lines, dtype=pl.Int64), "place": pl.Series(places, dtype=pl.Int64)}


def _unpiled(part: Part) -> tuple[list[list[str]], list[int], list[int | None]]:
    """Rows whose cells hold one line each. Loggers that write the whole answer for several devices into the cells
    give as many rows; a row with uneven cells keeps the first line of each."""
    if not part.quoted:
        return part.cells, part.lines, [None] * len(part.lines)
    counters = [i for i, c in enumerate(part.columns) if c.kind in COUNTER_KINDS]
    cells: list[list[str]] = []
    lines: list[int] = []
    places: list[int | None] = []
    for row, number in zip(part.cells, part.lines, strict=True):
        piles = [c.strip().split("\n") for c in row] if any("\n" in c for c in row) else []
        heights = {len(piles[i]) for i in counters} if piles else {1}
        height = heights.pop() if len(heights) == 1 else 1
        for k in range(height):
            cells.append([p[k] if len(p) == height else p[0] for p in piles] if piles else row)
            lines.append(number)
            places.append(k if piles else None)
    return cells, lines, places


def _words(text: pl.Series) -> pl.Series:
    """Texts of a column; null where nothing was recorded."""
    nothing = (text == "") | text.str.starts_with("[") | text.is_in(["N/A", "-", "ERR!"])
    return text.set(nothing, None)


def _times(columns: Sequence[Column], cells: Sequence[pl.Series]) -> Times | None:
    """The times of the rows: those of a calendar before those that count from the start; None without a column."""
    own = [s for c, s in zip(columns, cells, strict=True) if c.kind == "time"]
    dates = [s for c, s in zip(columns, cells, strict=True) if c.kind == "date"]
    if dates and own:
        own.insert(0, dates[0].str.strip_chars() + " " + own[0].str.strip_chars())
    elif dates:
        own = dates
    found = [times_of(s) for s in own]
    ranked = [t for t in found if t.clock not in (None, "elapsed")] or [t for t in found if t.clock] or found
    return ranked[0] if ranked else None


def _scaled(column: Column, series: pl.Series) -> pl.Series:
    numbers, units = readings(series)
    if column.kind == "raw":
        return numbers
    factors: dict[str, float | None] = {}
    for unit in units.filter(numbers.is_not_null()).unique().to_list():
        known = column.scaled(unit)
        factors[unit] = known.factor if known is not None and known.name == column.counter else None
    if _are_bytes(column, numbers, factors):
        return numbers
    if len(factors) == 1 and None not in factors.values():
        return numbers * factors.popitem()[1]
    return numbers * units.replace_strict(factors, default=None, return_dtype=pl.Float64)


def _are_bytes(column: Column, numbers: pl.Series, factors: dict[str, float | None]) -> bool:
    told = column.unit or any(factors)
    largest = numbers.max()
    return (
        not told
        and column.counter.endswith("_bytes")
        and isinstance(largest, float)
        and largest >= _BYTES_FROM
    )


def _plain(text: str) -> float | None:
    text = text.strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _state(text: str) -> float | None:
    state = performance_state(text)
    return _plain(text) if state is None else state


def _mask(text: str) -> float | None:
    return mask(text) if "x" in text else _plain(text)


def _read(series: pl.Series, reader: Callable[[str], float | None]) -> pl.Series:
    """Values of a column with few different cells."""
    found = {text: reader(text) for text in series.unique().to_list()}
    return series.replace_strict(found, default=None, return_dtype=pl.Float64)


def _mask_of(reasons: Sequence[tuple[int, pl.Series]]) -> pl.Series:
    """A mask out of columns of one reason each; null where a row tells none of them."""
    total = np.zeros(len(reasons[0][1]), np.int64)
    told = np.zeros(len(total), bool)
    for bit, series in reasons:
        active = (
            series.str.strip_chars()
            .str.to_lowercase()
            .replace_strict(dict(STATES), default=None, return_dtype=pl.Boolean)
        )
        total |= np.where(active.fill_null(False).to_numpy(), bit, 0)
        told |= active.is_not_null().to_numpy()
    return pl.Series(total, dtype=pl.Float64).set(pl.Series(~told), None)


def _reasons(masks: pl.Series) -> Iterator[tuple[CounterColumn, pl.Series]]:
    seen = {m: dict(throttle_counters(m)) for m in masks.drop_nulls().unique().to_list()}
    for name, _ in throttle_counters(0.0):
        of = {m: counters[name] for m, counters in seen.items()}
        yield CounterColumn(name), masks.replace_strict(of, default=None, return_dtype=pl.Float64)
