"""History records of a ``.wandb`` file as rows of ``metrics`` and ``histograms``.

Each number of a history row is one value of one tag, ``_step``, ``_timestamp`` and ``_runtime`` among them. Those
three also say where the other values of the row lie; ``_step`` counts the calls of ``wandb.log`` and gives way to the
trainer's own counter (``HistoryAxes``).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.limits import check_columns
from afterrun.loaders.protowire import VARINT, Field, WireError, fields, signed
from afterrun.loaders.schema import TEXT
from afterrun.loaders.tables.cells import SECOND_NS, moments
from afterrun.loaders.wandb.axes import HistoryAxes
from afterrun.loaders.wandb.records import has_types, items, key_name, rejoined
from afterrun.loaders.wandb.values import Skipped, decoded, histogram, leaves, media_type, number_of

STEP, WALL, RUNTIME = "_step", "_timestamp", "_runtime"
FLUSH_VALUES = 1 << 20

_ITEM, _STEP = 1, 2


class History:
    """Collects history rows; ``take`` hands over what has come in since the last time."""

    def __init__(self) -> None:
        self.rows = 0
        self.broken = 0
        self.skipped = Skipped()
        self.axes = HistoryAxes()
        self.start_ns: int | None = None
        """Start of the run, for rows that only say how long it has been running."""
        self._names: list[str] = []
        self._by_name: dict[str, int] = {}
        self._by_key: dict[bytes, int] = {}
        self._seq = 0
        self._clear()

    def _clear(self) -> None:
        self._code: list[int] = []
        self._value: list[float] = []
        self._sizes: list[int] = []
        self._told: list[float] = []
        self._histograms: list[tuple[int, str, list[float], list[float]]] = []

    @property
    def full(self) -> bool:
        """Whether there is enough for a batch."""
        return len(self._value) + 64 * len(self._histograms) >= FLUSH_VALUES

    def add(self, data: bytes, at: int, end: int) -> None:
        """One ``HistoryRecord``. Raises ``WireError`` where it is none; then nothing is added."""
        pairs, others = items(data, at, end, _ITEM)
        if has_types(data, at, end):
            pairs = rejoined(pairs)
        known = self._by_key
        try:
            codes = [known[key] for key, _ in pairs]
        except KeyError:
            codes = [self._code_of_key(key) for key, _ in pairs]
        codes_held, values_held = self._code, self._value
        before = len(values_held)
        for code, (_, raw) in zip(codes, pairs, strict=True):
            try:
                values_held.append(float(raw))
            except ValueError:
                self._other(code, raw)
            else:
                codes_held.append(code)
        self._sizes.append(len(values_held) - before)
        told = np.nan if self._by_name.get(STEP) in codes else _told_step(data, others)
        self._told.append(told)
        self.rows += 1

    def _code_of_key(self, key: bytes) -> int:
        code = self._by_key.get(key)
        if code is None:
            code = self._by_key[key] = self._code_of(key_name(key))
        return code

    def _code_of(self, name: str) -> int:
        code = self._by_name.get(name)
        if code is None:
            check_columns("W&B history", len(self._names) + 1)
            code = self._by_name[name] = len(self._names)
            self._names.append(name)
        return code

    def _other(self, code: int, raw: bytes) -> None:
        """A value that is not a bare number: a string, a tree, a picture."""
        try:
            value = decoded(raw)
        except ValueError:
            self.broken += 1
            return
        for name, leaf in leaves(self._names[code], value):
            number = number_of(leaf)
            if number is not None:
                self._code.append(self._code_of(name))
                self._value.append(number)
            elif media_type(leaf) == "histogram" and isinstance(leaf, Mapping) and (found := histogram(leaf)):
                self._histograms.append((len(self._sizes), name, *found))
            else:
                self.skipped.add(name, leaf)

    def take(self) -> dict[str, pl.DataFrame]:
        """Frames of ``metrics`` and ``histograms``, in write order; those without rows are left out."""
        code = np.array(self._code, np.int64)
        value = np.array(self._value, np.float64)
        row = np.repeat(np.arange(len(self._sizes)), np.array(self._sizes, np.int64))
        told = self._column(STEP, code, value, row)
        told = np.where(np.isnan(told), np.array(self._told, np.float64), told)
        wall = self._wall_ns(code, value, row)
        placed = self.axes.place(self._names, code, row, value, told)
        frames = {}
        if value.size:
            frames["metrics"] = pl.DataFrame(
                {
                    "tag": pl.Series(self._names, dtype=TEXT).gather(code),
                    "seq": np.arange(self._seq, self._seq + value.size),
                    **placed,
                    "wall_ns": wall.gather(row),
                    "value": value,
                }
            )
        if self._histograms:
            rows, tags, edges, counts = zip(*self._histograms, strict=True)
            names, numbers = np.unique(tags, return_inverse=True)
            frames["histograms"] = pl.DataFrame(
                {
                    "tag": pl.Series(tags, dtype=TEXT),
                    "step": self.axes.steps(names.tolist(), numbers, np.array(rows), told),
                    "wall_ns": wall.gather(list(rows)),
                    "edges": pl.Series(edges, dtype=pl.List(pl.Float64())),
                    "counts": pl.Series(counts, dtype=pl.List(pl.Float64())),
                }
            )
        self._seq += value.size
        self._clear()
        return frames

    def _column(
        self, name: str, code: NDArray[np.int64], value: NDArray[np.float64], row: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The value of this tag in each row, NaN where it has none."""
        column = np.full(len(self._sizes), np.nan)
        mine = code == self._by_name.get(name, -1)
        column[row[mine]] = value[mine]
        return column

    def _wall_ns(
        self, code: NDArray[np.int64], value: NDArray[np.float64], row: NDArray[np.int64]
    ) -> pl.Series:
        wall = moments(pl.Series(self._column(WALL, code, value, row)), SECOND_NS)
        if self.start_ns is None or not wall.null_count():
            return wall
        runtime = pl.Series(self._column(RUNTIME, code, value, row))
        sound = runtime.is_finite() & runtime.is_between(0, 1e9)
        elapsed_ns = pl.select(pl.when(sound).then(runtime * SECOND_NS).cast(pl.Int64)).to_series()
        return wall.zip_with(wall.is_not_null(), elapsed_ns + self.start_ns)


def _told_step(data: bytes, others: list[Field]) -> float:
    """The number in ``HistoryRecord.step``; NaN without that field."""
    for field in others:
        if field.number == _STEP:
            try:
                inner = list(fields(memoryview(data), field.at, field.end))
            except WireError:
                return np.nan
            numbers = [signed(f.value) for f in inner if f.number == 1 and f.wire == VARINT]
            return float(numbers[-1]) if numbers else 0.0
    return np.nan
