"""An export as tables by name, whatever file they lie in. Tables are made by the exporter only when needed."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

CHUNK_ROWS = 1 << 19
"""Rows read at a time."""

MAX_FEW_ROWS = 10_000
"""Most rows taken of a table that describes the machine or the capture."""

_VERSIONED = re.compile(r"(?P<name>\w+?)(?:_V(?P<version>\d{1,3}))?")


class Store(ABC):
    """The tables of one export; what is lost on reading them is counted in ``damaged`` and told in ``notes``."""

    def __init__(self, columns: Mapping[str, frozenset[str]]) -> None:
        self.columns = columns
        self.damaged = 0
        self.notes: list[str] = []

    def find(self, name: str) -> str | None:
        """The table of this name or the latest of its versions (``name_V3``); None where there is none."""
        found = [
            (m, table) for table in self.columns if (m := _VERSIONED.fullmatch(table)) and m["name"] == name
        ]
        ranked = sorted((m["version"] is None, int(m["version"] or 0), table) for m, table in found)
        return ranked[-1][2] if ranked else None

    def has(self, name: str) -> bool:
        """Whether there is such a table."""
        return self.find(name) is not None

    def chunks(self, name: str, integers: Sequence[str], texts: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """Columns ``Int64`` and ``String`` of a table, some rows at a time; a column the table lacks is null."""
        table = self.find(name)
        if table is None:
            return
        there = self.columns[table]
        asked = [c for c in integers if c in there], [c for c in texts if c in there]
        if not any(asked):
            return
        for frame in self._chunks(table, *asked):
            yield frame.select(
                *(_column(frame, c, pl.Int64()) for c in integers),
                *(_column(frame, c, pl.String()) for c in texts),
            )

    def few(
        self, name: str, integers: Sequence[str], texts: Sequence[str] = ()
    ) -> list[dict[str, int | str | None]]:
        """The rows of a small table, as records."""
        rows: list[dict[str, int | str | None]] = []
        for frame in self.chunks(name, integers, texts):
            rows += frame.head(MAX_FEW_ROWS - len(rows)).to_dicts()
            if len(rows) >= MAX_FEW_ROWS:
                break
        return rows

    @abstractmethod
    def height(self, name: str) -> int:
        """Number of rows of a table; 0 where there is none."""

    @abstractmethod
    def _chunks(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Columns that the table has."""


def _column(frame: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Expr:
    return pl.col(name) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
