"""JSON lines as columns, and the books on what was lost.

Two ways through each block of lines give the same columns: a clean block goes to ``polars.read_ndjson`` whole,
any other is decoded line by line, where bare ``NaN`` and ``Infinity`` are numbers, a damaged line costs itself
only, and objects that share a line are told apart. Polars drops what its schema does not name and turns what
does not fit a text column into text, so a clean block counts only where all its keys and strings came out.

Names of nested objects are joined by ``/``, values of lists are ``name[0]``, ``name[1]``, ...
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import LENIENT_JSON, MAX_COLUMNS, MAX_JSON_DEPTH
from afterrun.loaders.tables.ahead import ahead
from afterrun.loaders.tables.cells import is_nothing, number, numbers
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.textblocks import BLOCK_BYTES, TextBlock, decode, split_lines, text_blocks

MAX_LIST_VALUES = 2_000
"""Longer lists are data (weights, histograms), not metrics, and are left out."""

GIVE_UP_AFTER = 3
"""Blocks in a row that were not clean, after which polars is not asked any more."""


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """Some rows as columns of equal length: ``numbers`` (Float64) and ``words`` (String) by flattened name.

    Null where a row has no such value. A name may stand in both where a writer mixes them. ``wall_ns``
    (Int64) are moments that stand beside the objects.
    """

    rows: int
    numbers: Mapping[str, pl.Series]
    words: Mapping[str, pl.Series] = field(default_factory=dict)
    wall_ns: pl.Series | None = None


@dataclass(slots=True)
class JsonLosses:
    """What was given up or repaired, for the notes of the source."""

    bad: Places = field(default_factory=Places)
    half_line: int | None = None
    too_long: int = 0
    joined: Places = field(default_factory=Places)
    long_lists: set[str] = field(default_factory=set)
    zero_filled: bool = False
    latin1: bool = False

    @property
    def damaged(self) -> int:
        """Number of lines given up, wholly or in part."""
        return self.bad.count + self.too_long + (self.half_line is not None)

    def notes(self) -> Iterator[str]:
        """One sentence for each kind of loss or repair."""
        if self.bad.count:
            yield f"{_lines(self.bad.count)} without a whole JSON object left out: {self.bad}"
        if self.half_line is not None:
            yield f"the file ends in the middle of line {self.half_line}, which was left out"
        if self.too_long:
            yield f"{_lines(self.too_long)} too long to be a row left out"
        if self.joined.count:
            yield f"several objects on one line were read one by one: {self.joined}"
        if self.long_lists:
            names = ", ".join(sorted(self.long_lists)[:5])
            yield f"lists of more than {MAX_LIST_VALUES} values left out: {names}"
        if self.zero_filled:
            yield "stretches of zero bytes were skipped, as a crash or a full disk leaves them"
        if self.latin1:
            yield "bytes that are not UTF-8 were read as Latin-1"


def _lines(count: int) -> str:
    return f"{count} line{'s' if count > 1 else ''}"


class JsonLines:
    """One pass over one file. ``losses`` are complete after ``blocks``.

    ``fast=False`` sends every block the line-by-line way (tests hold the two ways against each other).
    Raises ``OSError`` where the file cannot be read and ``LimitError`` where it has too many names.
    """

    def __init__(self, path: Path, *, block_bytes: int = BLOCK_BYTES, fast: bool = True) -> None:
        self.losses = JsonLosses()
        self._name = path.name
        self._texts = text_blocks(path, block_bytes)
        self._plain = PlainBlocks() if fast else None
        self._failed = 0
        self._begin = ""

    def blocks(self) -> Iterator[JsonBlock]:
        """All rows in file order; a block without rows is left out. To be called once."""
        names: set[str] = set()
        for text, plain in ahead(self._texts, self._fast):
            self.losses.too_long += text.too_long
            block = plain or self._by_line(text)
            names.update(block.numbers)
            if len(names) > MAX_COLUMNS:
                raise LimitError(f"{self._name}: more than {MAX_COLUMNS} different names")
            if block.rows:
                yield block
        if self._plain is not None:
            self.losses.long_lists |= self._plain.long_lists

    def _fast(self, text: TextBlock) -> JsonBlock | None:
        if self._plain is None or self._failed >= GIVE_UP_AFTER:
            return None
        block = self._plain.read(text.data)
        self._failed = 0 if block is not None else self._failed + 1
        return block

    def _by_line(self, text: TextBlock) -> JsonBlock:
        decoded, latin1 = decode(text.data)
        self.losses.latin1 |= latin1
        lines = split_lines(decoded)
        rows: list[dict[str, object]] = []
        last = len(lines) - 1
        for i, raw in enumerate(lines):
            line = raw.strip("\0 \t")
            self.losses.zero_filled |= "\0" in raw and raw.strip("\0") != raw
            if not line:
                continue
            found, whole = self._objects(line)
            rows += found
            number_ = text.first_line + i
            if len(found) > 1:
                self.losses.joined.add(number_)
            if not whole and text.cut and i == last:
                self.losses.half_line = number_
            elif not whole:
                self.losses.bad.add(number_)
        return columns_of(rows, self.losses)

    def _objects(self, line: str) -> tuple[list[dict[str, object]], bool]:
        """The objects of a line, and whether they are all of it.

        After a line that a kill cut short, the next one may follow without a line end: it is known by
        beginning with the name that the rows before began with.
        """
        found: list[dict[str, object]] = []
        whole, at = True, 0
        while at < len(line):
            try:
                value, end = LENIENT_JSON.raw_decode(line, at)
            except (ValueError, RecursionError):
                value, end = None, at
            if isinstance(value, dict):
                found.append(value)
                if not self._begin and value:
                    self._begin = "{" + json.dumps(next(iter(value)), ensure_ascii=False)
                at = end
                while at < len(line) and line[at] in " \t":
                    at += 1
                continue
            whole = False
            at = line.find(self._begin, at + 1) if self._begin else -1
            if at < 0:
                break
        return found, whole


class PlainBlocks:
    """Clean blocks through polars; remembers the columns of the blocks before."""

    def __init__(self) -> None:
        self.long_lists: set[str] = set()
        self._schema: dict[str, pl.DataType] = {}

    def read(self, data: bytes) -> JsonBlock | None:
        """The block, None where it has to go line by line."""
        if b"\\" in data and (b'\\"' in data or b"\\u" in data):
            return None
        known = self._parse(data) if self._schema else None
        if known is not None or _is_deep(data):
            return known
        try:
            found = pl.read_ndjson(io.BytesIO(data), infer_schema_length=None).schema
        except (pl.exceptions.PolarsError, OSError):
            return None
        # polars infers names in another order each time; in the file they have one
        seen = {n: t for n, t in found.items() if t != pl.Null}
        self._schema |= {n: _widened(seen[n], data) for n in _in_order(seen, data)}
        return self._parse(data)

    def _parse(self, data: bytes) -> JsonBlock | None:
        """The block with the columns known so far; None where it holds anything else."""
        try:
            frame = pl.read_ndjson(io.BytesIO(data), schema=self._schema)
        except (pl.exceptions.PolarsError, OSError):
            return None
        flat = _Flat()
        if not all(flat.add(name.strip(), frame[name]) for name in frame.columns):
            return None
        if not _is_all(data, flat.cells, flat.texts):
            return None
        self.long_lists |= flat.long_lists
        return JsonBlock(len(frame), flat.numbers, flat.words)


def _in_order(names: Iterable[str], data: bytes) -> list[str]:
    """Names by where they first stand in the data, the ones not found (they are written with escapes) by name at the end."""
    at = {name: data.find(f'"{name}"'.encode("utf-8", "replace")) for name in names}
    return sorted(at, key=lambda name: (at[name] < 0, at[name], name))


def _is_all(data: bytes, cells: int, texts: int) -> bool:
    """Whether so many keys with a value, and so many of them with text, are all that this JSON holds.

    There are no escaped quotes, so every quote begins or ends a string: a pair for each key, for each text, and
    for each key that polars dropped or that is null. Without texts an even count therefore settles it; else
    the character after each key tells.
    """
    codes = np.frombuffer(data, np.uint8)
    if not texts and int(np.count_nonzero(codes == ord('"'))) == 2 * cells:
        return True
    at = np.flatnonzero(codes == ord(":"))
    at = at[codes[at - 1] == ord('"')]
    padded = np.append(codes, [0, 0])
    begin = padded[at + 1]
    begin = np.where(begin == ord(" "), padded[at + 2], begin)
    kinds = np.bincount(begin, minlength=256)
    return cells == len(at) - int(kinds[ord("n")]) and texts == int(kinds[ord('"')])


def _is_deep(data: bytes) -> bool:
    """Whether objects may nest deeper than polars can stand when it looks for types: that ends the process."""
    codes = np.frombuffer(data, np.uint8)
    opened = codes == ord("{")
    if int(np.count_nonzero(opened)) - int(np.count_nonzero(codes == ord("\n"))) < MAX_JSON_DEPTH:
        return False
    steps = opened.astype(np.int8)
    steps -= codes == ord("}")
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0)) > MAX_JSON_DEPTH


def _widened(dtype: pl.DataType, data: bytes) -> pl.DataType:
    """The type that all later values of a column may have, fields in the order of the data."""
    if isinstance(dtype, pl.Struct):
        fields: dict[str, pl.DataType] = {f.name: f.dtype for f in dtype.fields if f.dtype != pl.Null}  # type: ignore[misc]  # instances
        return pl.Struct({name: _widened(fields[name], data) for name in _in_order(fields, data)})
    if isinstance(dtype, pl.List):
        return pl.List(pl.Float64())
    return pl.Float64() if dtype.is_numeric() else dtype


class _Flat:
    """Columns of a frame under flattened names. ``cells`` counts what is not null, objects included."""

    def __init__(self) -> None:
        self.numbers: dict[str, pl.Series] = {}
        self.words: dict[str, pl.Series] = {}
        self.cells = 0
        self.texts = 0
        self.long_lists: set[str] = set()

    def add(self, name: str, column: pl.Series) -> bool:
        """False where the column is one that has to go line by line."""
        filled = len(column) - column.null_count()
        self.cells += filled
        dtype = column.dtype
        if name in self.numbers or name in self.words:
            return False
        if isinstance(dtype, pl.Struct):
            return all(
                self.add(f"{name}/{f.name.strip()}", column.struct.field(f.name)) for f in dtype.fields
            )
        if isinstance(dtype, pl.List):
            return filled == 0 or self._list(name, column)
        if dtype == pl.String:
            self.texts += filled
            column_of_numbers, mask = numbers(column)
            self._put(name, column_of_numbers)
            if mask is not None:
                self.words[name] = pl.select(pl.when(mask).then(column)).to_series()
        elif dtype.is_numeric() or dtype == pl.Boolean:
            self._put(name, column.cast(pl.Float64))
        return True

    def _put(self, name: str, column: pl.Series) -> None:
        if column.null_count() < len(column):
            self.numbers[name] = column

    def _list(self, name: str, column: pl.Series) -> bool:
        inner = column.dtype.inner  # type: ignore[attr-defined]  # a list
        if not inner.is_numeric():
            return False
        lengths = column.list.len()
        if (lengths > MAX_LIST_VALUES).any():
            self.long_lists.add(name)
            column = pl.select(pl.when(lengths <= MAX_LIST_VALUES).then(column)).to_series()
        for i in range(int(column.list.len().max() or 0)):  # type: ignore[arg-type]  # an integer
            self._put(f"{name}[{i}]", column.list.get(i, null_on_oob=True).cast(pl.Float64))
        return True


def columns_of(rows: Sequence[Mapping[str, object]], losses: JsonLosses) -> JsonBlock:
    """Decoded objects as one block."""
    values: dict[str, tuple[list[int], list[float]]] = {}
    words: dict[str, dict[int, str]] = {}
    for i, row in enumerate(rows):
        for name, value in dict(flatten("", row, 0, losses)).items():
            read = number(value.strip()) if isinstance(value, str) else value
            if read is not None:
                at, cells = values.setdefault(name, ([], []))
                at.append(i)
                cells.append(read)
            elif not is_nothing(str(value)):
                words.setdefault(name, {})[i] = _utf8(str(value))
    return JsonBlock(
        rows=len(rows),
        numbers={name: _dense(at, cells, len(rows)) for name, (at, cells) in values.items()},
        words={
            name: pl.Series([texts.get(i) for i in range(len(rows))], dtype=pl.String)
            for name, texts in words.items()
        },
    )


def _dense(at: Sequence[int], cells: Sequence[float], rows: int) -> pl.Series:
    column: NDArray[np.float64] = np.zeros(rows)
    empty = np.ones(rows, dtype=np.bool_)
    column[at] = cells
    empty[at] = False
    series = pl.Series(column)
    return series.set(pl.Series(empty), None) if empty.any() else series


def _utf8(text: str) -> str:
    """The text without halves of characters, which no column can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def flatten(name: str, value: object, depth: int, losses: JsonLosses) -> Iterator[tuple[str, float | str]]:
    """(name, number or text) of everything inside a decoded value; null and what is too deep are left out."""
    if isinstance(value, dict):
        if depth < MAX_JSON_DEPTH:
            for key, inner in value.items():
                clean = _utf8(key.strip())
                yield from flatten(f"{name}/{clean}" if depth else clean, inner, depth + 1, losses)
    elif isinstance(value, list):
        if len(value) > MAX_LIST_VALUES:
            losses.long_lists.add(name)
        elif depth < MAX_JSON_DEPTH:
            for i, inner in enumerate(value):
                yield from flatten(f"{name}[{i}]", inner, depth + 1, losses)
    elif isinstance(value, str):
        yield name, value
    elif isinstance(value, (int, float)):
        yield name, float(value)
