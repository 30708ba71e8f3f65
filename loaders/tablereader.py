"""Streams one delimited text file as blocks of cells, and keeps the books on what was lost.

Two ways through each block give the same cells: a plain block (numbers, all lines equally wide) goes to
``polars.read_csv`` whole, any other is cut line by line. Damage costs the lines it touches, never the
file: a row wider than the header is given up and not shifted into wrong names; the cells that a short
row lacks are null; a stray quote costs its own line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.delimited import (
    LAYOUT_LINES,
    Layout,
    is_header_like,
    layout_of,
    split_cells,
    strip_all,
    unique_names,
)
from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import MAX_QUOTED_LINES, check_columns
from afterrun.loaders.textblocks import (
    BLOCK_BYTES,
    TextBlock,
    decode,
    skip_lines,
    split_lines,
    text_blocks,
)

_NUMERIC_BYTES = b"0123456789+-.eE nNaAiIfFtTyY\n"
_LAYOUT_BYTES = 2**18
_SHOWN = 5


@dataclass(slots=True)
class Places:
    """How often something happened, and the lines of the first few times."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        """Count one more, at this line."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(line)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"line{'s' if self.count > 1 else ''} {', '.join(map(str, self.first))}{more}"


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some rows. ``cells``: one column a name, called by its position ``"0"``, ``"1"``, ...: all Float64
    (``plain``) or all String, unstripped, null where a short row lacks the cell.

    ``lines`` are line numbers counted from 1; ``short`` the positions of rows with fewer cells than names.
    """

    names: tuple[str, ...]
    cells: pl.DataFrame
    lines: NDArray[np.int64]
    short: tuple[int, ...] = ()
    plain: bool = False


@dataclass(slots=True)
class Losses:
    """What the reader gave up or repaired, for the notes of the source."""

    wide: Places = field(default_factory=Places)
    wide_cells: set[int] = field(default_factory=set)
    header_cells: int = 0
    narrow: Places = field(default_factory=Places)
    zeros: Places = field(default_factory=Places)
    zero_filled: bool = False
    too_long: int = 0
    half_line: int | None = None
    headers: Places = field(default_factory=Places)
    latin1: bool = False

    @property
    def damaged(self) -> int:
        """Number of lines given up, wholly or (the half line) in part."""
        return (
            self.wide.count
            + self.narrow.count
            + self.zeros.count
            + self.too_long
            + (self.half_line is not None)
        )

    def notes(self) -> Iterator[str]:
        """One sentence for each kind of loss or repair."""
        if self.wide.count:
            widths = ", ".join(map(str, sorted(self.wide_cells)[:_SHOWN]))
            yield (
                f"{_rows(self.wide.count)} with more cells ({widths}) than the header has names "
                f"({self.header_cells}) left out: {self.wide}"
            )
        if self.narrow.count:
            yield f"{_rows(self.narrow.count)} of a single cell left out: {self.narrow}"
        if self.zeros.count:
            yield f"{_rows(self.zeros.count)} overwritten with zero bytes left out: {self.zeros}"
        if self.zero_filled:
            yield "stretches of zero bytes were skipped, as a crash or a full disk leaves them"
        if self.too_long:
            yield f"{_rows(self.too_long)} too long to be a row left out"
        if self.half_line is not None:
            yield f"the file ends in the middle of line {self.half_line}; its last cell was left out"
        if self.headers.count:
            yield f"the header comes again, as after a restart: {self.headers}"
        if self.latin1:
            yield "bytes that are not UTF-8 were read as Latin-1"


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"


class TableReader:
    """One pass over one file. ``layout`` is known at once; ``losses`` are complete after ``blocks``.

    ``fast=False`` sends every block the line-by-line way (tests hold the two ways against each other).
    Raises ``UnreadableError`` where the file has no header of names, ``LimitError`` where it has too
    many columns, ``OSError`` where it cannot be read.
    """

    def __init__(self, path: Path, *, block_bytes: int = BLOCK_BYTES, fast: bool = True) -> None:
        self.losses = Losses()
        self._fast = fast
        self._texts = text_blocks(path, block_bytes)
        first = next(self._texts, None)
        layout = None if first is None else layout_of(_first_lines(first.data))
        if first is None or layout is None:
            raise UnreadableError(f"{path.name}: no header line of column names was found")
        check_columns(path.name, len(layout.names))
        self.layout: Layout = layout
        self._names, self._labels = layout.names, layout.labels
        self._first = skip_lines(first, layout.header_line + 1)
        self._pending: list[str] = []
        self._last_line = 0

    def blocks(self) -> Iterator[RowBlock]:
        """All rows in file order; a block without rows is left out. To be called once."""
        yield from self._block(self._first)
        for text in self._texts:
            yield from self._block(text)
        if self._pending:
            end = TextBlock(b"", self._last_line + len(self._pending))
            yield from self._by_line(end, final=True)

    def _block(self, text: TextBlock) -> Iterator[RowBlock]:
        self.losses.too_long += text.too_long
        if self._fast and not self._pending and not text.cut and not self.layout.decimal_comma:
            cells = plain_cells(text.data, len(self._names), self.layout.delimiter)
            if cells is not None:
                lines = np.arange(text.first_line, text.first_line + len(cells), dtype=np.int64)
                yield RowBlock(self._names, cells, lines, plain=True)
                return
        yield from self._by_line(text, final=text.cut)

    def _by_line(self, text: TextBlock, *, final: bool) -> Iterator[RowBlock]:
        decoded, latin1 = decode(text.data)
        self.losses.latin1 |= latin1
        lines = split_lines(decoded)
        if lines and not lines[-1]:
            lines.pop()
        first_line = text.first_line - len(self._pending)
        lines, self._pending = self._pending + lines, []
        rows = _Rows()
        at = 0
        while at < len(lines):
            cells, used = self._record(lines, at, final=final)
            if used == 0:
                self._pending, self._last_line = lines[at:], first_line + at
                break
            line = first_line + at
            at += used
            if not cells:
                continue
            if self._is_header(cells, line):
                yield from rows.take(self._names)
                self._names, self._labels = unique_names(strip_all(cells)), strip_all(cells)
            else:
                self._add(rows, cells, line, half=final and text.cut and at == len(lines))
        yield from rows.take(self._names)

    def _record(self, lines: list[str], at: int, *, final: bool) -> tuple[list[str], int]:
        """Cells of the record that begins at this line and the number of lines it takes.

        No cells: nothing to read here. No lines: the block ends inside a quoted cell.
        """
        line = lines[at]
        if not line or line.isspace() or line.lstrip()[:1] == "#":
            return [], 1
        if "\0" in line:
            if line.strip("\0 \t"):
                return ["\0"], 1
            self.losses.zero_filled = True
            return [], 1
        delimiter = self.layout.delimiter
        if '"' not in line:
            return line.split(delimiter), 1
        cells, still_open = split_cells(line, delimiter)
        if not still_open:
            return cells, 1
        width = len(self._names)
        for used in range(2, MAX_QUOTED_LINES + 1):
            if at + used > len(lines):
                return ([], 0) if not final else (line.split(delimiter), 1)
            joined, still_open = split_cells("\n".join(lines[at : at + used]), delimiter)
            if not still_open and len(joined) == width:
                return joined, used
            if not still_open or len(lines[at + used - 1].split(delimiter)) == width:
                break
        return line.split(delimiter), 1

    def _is_header(self, cells: list[str], line: int) -> bool:
        """Whether a record is a header again: the same one, or one that shares half of its names."""
        start = cells[0].strip()
        if not start or start[0] in "0123456789+-.":
            return False
        labels = strip_all(cells)
        if labels == self._labels:
            self.losses.headers.add(line)
            return True
        shared = len(set(labels) & set(self._labels))
        again = shared * 2 >= len(self._labels) and is_header_like(labels) and len(set(labels)) == len(labels)
        if again:
            self.losses.headers.add(line)
        return again

    def _add(self, rows: _Rows, cells: list[str], line: int, *, half: bool) -> None:
        width = len(self._names)
        if cells[0] == "\0":
            self.losses.zeros.add(line)
        elif len(cells) == width:
            rows.add(cells, line)
        elif len(cells) > width:
            self.losses.wide.add(line)
            self.losses.wide_cells.add(len(cells))
            self.losses.header_cells = width
        elif half:
            self.losses.half_line = line
            rows.add(cells[:-1] + [""] * (width - len(cells) + 1), line)
        elif len(cells) == 1:
            self.losses.narrow.add(line)
        else:
            rows.add_short(cells + [""] * (width - len(cells)), line)


class _Rows:
    """Rows under way to a block."""

    def __init__(self) -> None:
        self._cells: list[list[str]] = []
        self._lines: list[int] = []
        self._short: list[int] = []

    def add(self, cells: list[str], line: int) -> None:
        self._cells.append(cells)
        self._lines.append(line)

    def add_short(self, cells: list[str], line: int) -> None:
        self._short.append(len(self._cells))
        self.add(cells, line)

    def take(self, names: tuple[str, ...]) -> Iterator[RowBlock]:
        if self._cells:
            columns = zip(*self._cells, strict=True)
            frame = pl.DataFrame([pl.Series(str(i), c, dtype=pl.String) for i, c in enumerate(columns)])
            yield RowBlock(names, frame, np.array(self._lines, dtype=np.int64), tuple(self._short))
        self._cells, self._lines, self._short = [], [], []


def _first_lines(data: bytes) -> list[str]:
    """Lines that decide the layout: the first ones of a block, at least three where there are as many."""
    end = _LAYOUT_BYTES
    if len(data) > end:
        for _ in range(3):
            found = data.find(b"\n", end)
            end = len(data) if found < 0 else found + 1
            if data.count(b"\n", 0, end) >= 3:
                break
    lines = split_lines(decode(data[:end])[0])
    return lines[:LAYOUT_LINES]


def plain_cells(data: bytes, columns: int, delimiter: str) -> pl.DataFrame | None:
    """Float64 cells of a block that holds nothing but numbers in lines of equal width, else None.

    Only bytes that numbers are made of may occur, every line must have ``columns - 1`` delimiters, and
    every cell must be a number or empty; so the result is what cutting line by line would give.
    """
    if columns < 2:
        return None
    if b"\r" in data:
        data = data.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n")
    if not data.endswith(b"\n") or data.translate(None, _NUMERIC_BYTES + delimiter.encode()):
        return None
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    marks = np.flatnonzero(codes == ord(delimiter))
    if len(marks) != len(ends) * (columns - 1):
        return None
    grid = marks.reshape(len(ends), columns - 1)
    if (grid[:, -1] > ends).any() or (grid[1:, 0] < ends[:-1]).any():
        return None
    try:
        return pl.read_csv(
            data,
            has_header=False,
            separator=delimiter,
            quote_char=None,
            schema={str(i): pl.Float64 for i in range(columns)},
        )
    except pl.exceptions.PolarsError:
        return None
