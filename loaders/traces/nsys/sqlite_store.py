"""The tables of a SQLite export: columns as Arrow through ADBC, row by row where the file does not hold what it should.

ADBC takes the type of a column from its first rows and fails where another one follows; such a stretch, and one in
which SQLite stops, is read again by the standard library, which asks each value for its type and comes from both ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import polars as pl

from afterrun.loaders.sqlite import ERRORS, PRAGMAS, Database
from afterrun.loaders.traces.nsys.store import CHUNK_ROWS, Store

READERS = 2
"""Threads that read one table: SQLite decodes rows on one core."""

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' LIMIT 10000"
_BATCH = {"adbc.sqlite.query.batch_rows": str(CHUNK_ROWS)}


class _Range(NamedTuple):
    """Rows by number, both ends included."""

    low: int
    high: int


_ALL = _Range(1, (1 << 63) - 1)
"""Where the ends of a table cannot be read: rows are numbered from 1."""


_MOST_LOST = 10**7
"""More rows between two that can be read are a damaged number, not a loss."""


class _Query(NamedTuple):
    """Columns of a table, all names words."""

    table: str
    integers: Sequence[str]
    texts: Sequence[str]

    @property
    def schema(self) -> pl.Schema:
        """Names and types of what comes."""
        return pl.Schema(dict.fromkeys(self.integers, pl.Int64()) | dict.fromkeys(self.texts, pl.String()))

    def plain(self, part: _Range) -> str:
        """Values as they are; text as bytes, for it may be in any encoding."""
        columns = [f'"{c}"' for c in self.integers] + [
            f"coalesce({_bytes(c)}, x'') AS \"{c}\"" for c in self.texts
        ]
        return f"SELECT {', '.join(columns)} {self._of(part)}"

    def asked(self, part: _Range, order: str) -> str:
        """The number of each row, whether a value of a wrong type stands in it, and values of the right one."""
        wrong = [f"typeof(\"{c}\") NOT IN ('integer', 'null')" for c in self.integers]
        columns = [f'CASE typeof("{c}") WHEN \'integer\' THEN "{c}" END' for c in self.integers]
        columns += map(_bytes, self.texts)
        return f"SELECT rowid, {' OR '.join(wrong) or 0}, {', '.join(columns)} {self._of(part)} ORDER BY rowid {order}"

    def _of(self, part: _Range) -> str:
        return f'FROM "{self.table}" WHERE rowid BETWEEN {part.low} AND {part.high}'


class SqliteStore(Store):
    """The tables of an open database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        super().__init__({})
        names = [name for (name,) in self._rows(_TABLES) if name.isidentifier()]
        self.columns = {name: self._plain_columns(name) for name in names}

    def height(self, name: str) -> int:
        """Number of rows of a table; 0 where there is none or it cannot be counted."""
        table = self.find(name)
        count = self._one(f'SELECT count(*) FROM "{table}"') if table else 0  # noqa: S608  # a word
        return count if isinstance(count, int) else 0

    def _plain_columns(self, table: str) -> frozenset[str]:
        """Columns that hold a value; generated ones, which may hold any expression, are not listed."""
        return frozenset(
            row[1] for row in self._rows(f'PRAGMA table_info("{table}")') if row[1].isidentifier()
        )

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._database.connection.execute(query).fetchall()
        except ERRORS as error:
            self._lost(1, f"SQLite stopped reading ({error})")
            return []

    def _lost(self, rows: int, note: str) -> None:
        self.damaged += rows
        self.notes.append(note)

    def _chunks(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Iterator[pl.DataFrame]:
        query = _Query(table, integers, texts)
        parts = self._parts(table)

        def fast(part: _Range) -> pl.DataFrame | None:
            return _through_arrow(self._database.uri, query.plain(part), query.schema)

        for part, frame in zip(parts, _ahead(fast, parts), strict=True):
            yield self._asked(query, part) if frame is None else frame

    def _parts(self, table: str) -> list[_Range]:
        """The rows of a table in stretches of about ``CHUNK_ROWS``; in one, where its first or last page is damaged."""
        ends = [self._one(f'SELECT {end}(rowid) FROM "{table}"') for end in ("min", "max")]  # noqa: S608  # a word
        if ends == [None, None]:
            return []
        low, high = sorted(
            end if isinstance(end, int) else other for end, other in zip(ends, _ALL, strict=True)
        )
        count = self.height(table) // CHUNK_ROWS + 1
        step = (high - low) // count + 1
        return [_Range(at, min(at + step - 1, high)) for at in range(low, high + 1, step)]

    def _one(self, query: str) -> object:
        """One value, or the error on the way to it."""
        try:
            return self._database.connection.execute(query).fetchone()[0]
        except ERRORS as error:
            return error

    def _asked(self, query: _Query, part: _Range) -> pl.DataFrame:
        """A stretch value by value: forwards to where SQLite stops, then backwards to there."""
        rows, stopped = self._fetched(query.asked(part, "ASC"))
        if stopped:
            first = rows[-1][0] + 1 if rows else part.low
            behind, _ = self._fetched(query.asked(_Range(first, part.high), "DESC"))
            known = behind or part.high < _ALL.high
            lost = (behind[-1][0] if behind else part.high + 1) - first if known else 1
            self._lost(min(max(lost, 1), _MOST_LOST), f"{query.table}: SQLite stopped reading ({stopped})")
            rows += behind[::-1]
        sound = [row[2:] for row in rows if not row[1]]
        if wrong := len(rows) - len(sound):
            self._lost(wrong, f"{query.table}: values that are no integers")
        texts = len(query.integers)
        sound = [(*row[:texts], *(_text(value) for value in row[texts:])) for row in sound]
        return pl.DataFrame(sound, schema=query.schema, orient="row")

    def _fetched(self, query: str) -> tuple[list[tuple[Any, ...]], str]:
        """Rows of a query up to where SQLite stops, and why it does."""
        rows: list[tuple[Any, ...]] = []
        try:
            rows.extend(self._database.connection.execute(query))
        except ERRORS as error:
            # Python asks for a row before it gives out the one before, and loses that one with the error
            last = f"{query} LIMIT 1 OFFSET {len(rows)}"
            with suppress(*ERRORS):
                rows.extend(self._database.connection.execute(last))
            return rows, str(error)
        return rows, ""


def _ahead(
    fast: Callable[[_Range], pl.DataFrame | None], parts: Sequence[_Range]
) -> Iterator[pl.DataFrame | None]:
    """Each stretch in order, the next ones being read meanwhile."""
    if len(parts) <= 1:
        yield from map(fast, parts)
        return
    waiting: deque[Future[pl.DataFrame | None]] = deque()
    with ThreadPoolExecutor(READERS) as readers:
        for part in parts:
            waiting.append(readers.submit(fast, part))
            if len(waiting) > READERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _through_arrow(uri: str, query: str, schema: pl.Schema) -> pl.DataFrame | None:
    """The rows as ADBC hands them over; None where it fails or a column is not of its type."""
    import adbc_driver_manager as adbc  # noqa: PLC0415  # this path only
    import adbc_driver_sqlite  # noqa: PLC0415  # this path only
    import pyarrow as pa  # noqa: PLC0415  # polars would hold the interpreter lock while SQLite works

    try:
        with adbc_driver_sqlite.connect(uri) as database, adbc.AdbcConnection(database) as connection:
            for pragma in PRAGMAS:
                with adbc.AdbcStatement(connection) as statement:
                    statement.set_sql_query(f"PRAGMA {pragma}")
                    statement.execute_query()
            with adbc.AdbcStatement(connection) as statement:
                statement.set_options(**_BATCH)
                statement.set_sql_query(query)
                stream, _ = statement.execute_query()
                frame = pl.DataFrame(pl.from_arrow(pa.RecordBatchReader.from_stream(stream), rechunk=False))
    except (adbc.Error, pl.exceptions.PolarsError, OSError, ValueError):
        return None
    return _typed(frame, schema)


def _typed(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame | None:
    """Bytes as text, nothing as null; None where a column does not hold what it should."""
    if frame.is_empty():
        return pl.DataFrame(schema=schema)
    for name, dtype in schema.items():
        if frame.schema[name] != (pl.Binary() if dtype == pl.String else dtype):
            return None
    texts = [
        pl.col(name).cast(pl.String, strict=True) for name, dtype in schema.items() if dtype == pl.String
    ]
    try:
        frame = frame.with_columns(texts)
    except pl.exceptions.PolarsError:  # an encoding of the writer's own
        return None
    return frame.with_columns(pl.col(pl.String).replace("", None))


def _bytes(column: str) -> str:
    return f'CAST("{column}" AS BLOB)'


def _text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "replace") or None if value else None
