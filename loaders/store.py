"""The nine tables as files and back: Parquet, CSV or JSON lines, one file a table.

Parquet keeps everything; every file carries its table in the metadata (``afterrun.table``). In CSV a list
is JSON text and text that a spreadsheet would run has an apostrophe in front; in JSON lines numbers that
JSON cannot hold are the strings ``NaN``, ``Infinity`` and ``-Infinity``. All three read back as written.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.schema import SCHEMAS, Tables

Kind = Literal["parquet", "csv", "jsonl"]
KINDS: tuple[Kind, ...] = ("parquet", "jsonl", "csv")
"""In order of preference where a folder holds a table in several."""

TABLE_KEY, VERSION_KEY, VERSION = "afterrun.table", "afterrun.version", "1"

_RUNNABLE = r"^'*[=+\-@\t\r]"
_APOSTROPHE = r"^'+[=+\-@\t\r]"
_ROWS = 50_000
_ITEM = pl.List(pl.Float64())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is whole: written beside it, flushed, then moved.

    Where writing fails, what stood there before stays, and the half file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_tables(tables: Tables, folder: Path, kind: Kind = "parquet") -> list[Path]:
    """Every table as one file ``<table>.<kind>``, empty ones too. Raises ``OSError``."""
    paths = []
    for name, frame in tables.items():
        path = folder / f"{name}.{kind}"
        with replacing(path) as file:
            if kind == "parquet":
                frame.write_parquet(file, metadata={TABLE_KEY: name, VERSION_KEY: VERSION})
            elif kind == "csv":
                _for_csv(frame).write_csv(file)
            else:
                for part in frame.iter_slices(_ROWS):
                    file.write(_json_lines(part))
        paths.append(path)
    return paths


def _for_csv(frame: pl.DataFrame) -> pl.DataFrame:
    """Text that starts like a formula gets an apostrophe; lists become JSON text."""
    columns: list[pl.Expr] = []
    for name, dtype in frame.schema.items():
        column = pl.col(name)
        if dtype in (pl.Categorical, pl.String):
            text = column.cast(pl.String)
            column = pl.when(text.str.contains(_RUNNABLE)).then(pl.lit("'") + text).otherwise(text)
        elif dtype == _ITEM:
            column = pl.format("[{}]", column.cast(pl.List(pl.String)).list.join(","))
        columns.append(column.alias(name))
    return frame.select(columns)


def _json_lines(frame: pl.DataFrame) -> bytes:
    floats = [c for c, t in frame.schema.items() if t == pl.Float64]
    finite = all(frame[c].is_finite().all() for c in floats) and all(
        frame[c].explode(empty_as_null=False).is_finite().all() for c, t in frame.schema.items() if t == _ITEM
    )
    if finite:
        return frame.write_ndjson().encode("utf-8", "replace")
    rows = (
        json.dumps(_strict(row), ensure_ascii=False, allow_nan=False) for row in frame.iter_rows(named=True)
    )
    return "".join(row + "\n" for row in rows).encode("utf-8", "replace")


def _strict(value: object) -> object:
    if isinstance(value, dict):
        return {k: _strict(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_strict(v) for v in value]
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return json.dumps(value)
    return value


def table_of(path: Path, head: bytes) -> str | None:
    """The table that a file holds, None where it is no export; ``head`` are its first bytes."""
    if head.startswith(b"PAR1"):
        return _parquet_table(path) if path.stem in SCHEMAS else None
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip().decode("utf-8", "replace")
    if first.startswith("{"):
        names = _keys(first)
        return next((t for t, schema in SCHEMAS.items() if names == list(schema)), None)
    return next((t for t, schema in SCHEMAS.items() if first == ",".join(schema)), None)


def _keys(line: str) -> list[str]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(value) if isinstance(value, dict) else []


def _parquet_table(path: Path) -> str | None:
    try:
        return pl.read_parquet_metadata(path).get(TABLE_KEY)
    except (OSError, pl.exceptions.PolarsError):
        return path.stem  # a table of ours by its name, to be told as unreadable


def read_table(path: Path, table: str) -> tuple[pl.DataFrame, int]:
    """(the table with exactly the columns of its schema, rows given up).

    Columns that an older version did not have are null. Raises ``UnreadableError`` or ``OSError``.
    """
    try:
        if path.suffix == ".parquet":
            return _conformed(pl.read_parquet(path), table), 0
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        text = _read_jsonl(data, table) if data.lstrip()[:1] == b"{" else _read_csv(data, table)
    except pl.exceptions.PolarsError as error:
        raise UnreadableError(f"{path.name}: no table {table!r} can be read: {error}") from error
    frame = _typed(text, table)
    wrong = frame.select(
        (pl.col(c).is_null() & text[c].is_not_null()) for c in frame.columns if c in text.columns
    )
    bad = wrong.select(pl.any_horizontal(pl.all())).to_series() | frame["run"].is_null()
    return _conformed(frame.filter(~bad), table), int(bad.sum())


def _conformed(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    if "run" not in frame.columns:
        raise UnreadableError(f"no column 'run' in what should be the table {table!r}")
    return frame.select(
        pl.col(c).cast(t) if c in frame.columns else pl.lit(None, dtype=t).alias(c)
        for c, t in SCHEMAS[table].items()
    )


def _read_csv(data: bytes, table: str) -> pl.DataFrame:
    """Columns as text, which every type follows from; lines with an odd quote go where the file is damaged."""
    names = data.split(b"\n", 1)[0].decode("utf-8", "replace").strip().split(",")
    schema = dict.fromkeys(names, pl.String())
    try:
        frame = pl.read_csv(io.BytesIO(data), schema=schema, truncate_ragged_lines=True)
    except pl.exceptions.PolarsError:
        header, *lines = data.decode("utf-8", "replace").split("\n")
        whole = [x if x.count('"') % 2 == 0 and len(x) >= len(names) - 1 else "" for x in lines if x]
        text = "\n".join([header, *whole, ""]).encode()
        frame = pl.read_csv(io.BytesIO(text), schema=schema, truncate_ragged_lines=True)
    texts = [c for c in names if SCHEMAS[table].get(c) in (pl.Categorical, pl.String)]
    return frame.with_columns(
        pl.when(pl.col(c).str.contains(_APOSTROPHE)).then(pl.col(c).str.slice(1)).otherwise(c).alias(c)
        for c in texts
    )


def _read_jsonl(data: bytes, table: str) -> pl.DataFrame:
    """As ``_read_csv``; a line that is no object becomes a row of nulls."""
    schema = {c: pl.List(pl.String()) if t == _ITEM else pl.String() for c, t in SCHEMAS[table].items()}
    try:
        return pl.read_ndjson(io.BytesIO(data), schema=schema)
    except pl.exceptions.PolarsError:
        lines = [x for x in data.split(b"\n") if x.strip()]
        whole = [x if _keys(x.decode("utf-8", "replace")) == list(schema) else b'{"run":null}' for x in lines]
        return pl.read_ndjson(io.BytesIO(b"\n".join(whole) + b"\n"), schema=schema)


def _typed(text: pl.DataFrame, table: str) -> pl.DataFrame:
    """Text columns as what they are, null where a cell does not read."""
    columns = []
    for name, dtype in SCHEMAS[table].items():
        if name not in text.columns:
            continue
        column = pl.col(name)
        if dtype == pl.Boolean:
            column = column.replace_strict(
                {"true": True, "false": False}, default=None, return_dtype=pl.Boolean
            )
        elif dtype == _ITEM and text.schema[name] == pl.String:
            column = column.str.strip_chars("[]").str.split(",").list.filter(pl.element() != "")
        columns.append(column.cast(dtype, strict=False).alias(name))
    return text.select(columns)
