"""Streams one delimited text file as blocks of cells, and keeps the books on what was lost.

Two ways through each block give the same cells: a plain block (all lines equally wide, nothing odd) goes
to ``polars.read_csv`` whole, any other is cut line by line. Damage costs the lines it touches, never the
file: a row wider than the header is given up and not shifted into wrong names; where short rows are a
habit of the writer the cells they lack are null, a lone one is given up; a stray quote costs its own line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, starmap
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import MAX_QUOTED_LINES, check_columns
from afterrun.loaders.tables.ahead import ahead
from afterrun.loaders.tables.damage import Losses
from afterrun.loaders.tables.delimited import (
    LAYOUT_LINES,
    Layout,
    is_header_like,
    layout_of,
    split_cells,
    strip_all,
    unique_names,
)
from afterrun.loaders.tables.narrowing import Cut, Narrow, narrowed
from afterrun.loaders.tables.plain import may_begin_header, plain_cells, with_lf
from afterrun.loaders.tables.textblocks import (
    BLOCK_BYTES,
    TextBlock,
    count_lines,
    decode,
    skip_lines,
    split_lines,
    uncounted_blocks,
)

SHORT_SHARE = 0.1
"""Short rows of one width count as meant where they make up this share of a block,"""

SHORT_RUN = 3
"""or where this many follow each other; otherwise nobody knows which cell is missing."""

_LAYOUT_BYTES = 2**18
_OVERWRITTEN = "\0"
_NARROWERS = 2

Choose = Callable[[tuple[str, ...]], tuple[int, ...] | None]
"""Positions of the columns wanted of those with these names, in rising order; None: all."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Some rows. ``cells``: one column a name, called by its position ``"0"``, ``"1"``, ...: all Float64
    (a plain block) or all String, unstripped, empty where a short row lacks the cell. Where some columns were chosen,
    others may be absent.

    ``lines`` are line numbers counted from 1; ``short`` the positions of rows with fewer cells than names.
    """

    names: tuple[str, ...]
    cells: pl.DataFrame
    lines: NDArray[np.int64]
    short: tuple[int, ...] = ()


class TableReader:
    """One pass over one file. ``layout`` is known at once; ``losses`` are complete after ``blocks``.

    ``fast=False`` sends every block the line-by-line way (tests hold the two ways against each other).
    Raises ``UnreadableError`` where the file has no header of names, ``LimitError`` where it has too
    many columns, ``OSError`` where it cannot be read.
    """

    def __init__(self, path: Path, *, block_bytes: int = BLOCK_BYTES, fast: bool = True) -> None:
        self.losses = Losses()
        self._fast = fast
        self._texts = uncounted_blocks(path, block_bytes)
        first = next(self._texts, None)
        lines, self.losses.latin1 = _first_lines(b"" if first is None else first.data)
        layout = layout_of(lines)
        if first is None or layout is None:
            raise UnreadableError(f"{path.name}: no header line of column names was found")
        check_columns(path.name, len(layout.names))
        self.layout: Layout = layout
        self._names, self._labels = layout.names, layout.labels
        self._first = skip_lines(first, layout.header_line + 1)
        self._line = 1 + layout.header_line + 1
        self._pending: list[str] = []
        self._last_line = 0

    def blocks(self, choose: Choose | None = None) -> Iterator[RowBlock]:
        """All rows in file order; a block without rows is left out. To be called once.

        ``choose`` is asked anew for each block, so that the first ones may decide what is wanted of the rest. Damage in
        cells that are not wanted is not seen in plain blocks.
        """
        narrow = Narrow(self.layout.delimiter)
        texts = chain([self._first], self._texts)
        for text, cut in ahead(texts, lambda t: self._narrowed(t, choose), _NARROWERS):
            if cut is not None and not self._pending and cut.names == self._names:
                if not narrow.takes(cut):
                    yield from starmap(RowBlock, narrow.take())
                narrow.add(cut, self._line)
                self._line += cut.rows
                continue
            yield from starmap(RowBlock, narrow.take())
            self._line += text.too_long
            yield from self._block(replace(text, first_line=self._line))
            self._line += count_lines(text.data)
        yield from starmap(RowBlock, narrow.take())
        if self._pending:
            end = TextBlock(b"", self._last_line + len(self._pending))
            yield from self._by_line(end, final=True)

    def _narrowed(self, text: TextBlock, choose: Choose | None) -> Cut | None:
        """The chosen columns of a plain block; None where all are wanted or the block is to be read whole."""
        names, labels = self._names, self._labels
        chosen = choose(names) if choose is not None else None
        if not chosen or not self._fast or text.cut or text.too_long or self.layout.decimal_comma:
            return None
        data = text.data
        found = narrowed(data, len(names), self.layout.delimiter, chosen)
        if found is None and b"\r" in data:
            data = with_lf(data)
            found = narrowed(data, len(names), self.layout.delimiter, chosen)
        if found is None:
            return None
        narrow, starts = found
        if not narrow.isascii() or may_begin_header(data, starts, labels, self.layout.delimiter):
            return None
        return Cut(names, chosen, narrow, len(starts))

    def _block(self, text: TextBlock) -> Iterator[RowBlock]:
        self.losses.too_long += text.too_long
        if self._fast and not self._pending and not text.cut and not self.layout.decimal_comma:
            cells = plain_cells(text.data, self._labels, self.layout.delimiter)
            if cells is not None:
                lines = np.arange(text.first_line, text.first_line + len(cells), dtype=np.int64)
                yield RowBlock(self._names, cells, lines)
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
                labels = strip_all(cells)
                if labels != self._labels:
                    yield from rows.take(self._names, self.losses)
                    self._labels = labels  # before the names: the worker reads them in the other order
                    self._names = unique_names(labels)
            else:
                self._add(rows, cells, line, half=final and text.cut and at == len(lines))
        yield from rows.take(self._names, self.losses)

    def _record(self, lines: list[str], at: int, *, final: bool) -> tuple[list[str], int]:
        """Cells of the record that begins at this line and the number of lines it takes.

        No cells: nothing to read here. No lines: the block ends inside a quoted cell.
        """
        line = lines[at]
        if not line or line.isspace() or line.lstrip()[:1] == "#":
            return [], 1
        if "\0" in line:
            overwritten = bool(line.strip("\0 \t"))
            self.losses.zero_filled |= not overwritten
            return [_OVERWRITTEN] if overwritten else [], 1
        if '"' in line:
            return self._quoted(lines, at, final=final)
        return line.split(self.layout.delimiter), 1

    def _quoted(self, lines: list[str], at: int, *, final: bool) -> tuple[list[str], int]:
        """As ``_record``, for a line with quotes. A quote that never closes well is an ordinary character."""
        delimiter, width = self.layout.delimiter, len(self._names)
        cells, still_open = split_cells(lines[at], delimiter)
        used = 1
        while still_open and used < MAX_QUOTED_LINES:
            used += 1
            if at + used > len(lines):
                return (lines[at].split(delimiter), 1) if final else ([], 0)
            cells, still_open = split_cells("\n".join(lines[at : at + used]), delimiter)
            if still_open and len(lines[at + used - 1].split(delimiter)) == width > 1:
                break  # a whole row: the quote before it was a stray one
        if used > 1 and (still_open or len(cells) != width):
            return lines[at].split(delimiter), 1
        return cells, used

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
        if cells[0] == _OVERWRITTEN:
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
            rows.add_short(cells, line, width)


class _Rows:
    """Rows under way to a block. ``widths`` holds the cells that short rows were written with."""

    def __init__(self) -> None:
        self._cells: list[list[str]] = []
        self._lines: list[int] = []
        self._widths: dict[int, int] = {}

    def add(self, cells: list[str], line: int) -> None:
        self._cells.append(cells)
        self._lines.append(line)

    def add_short(self, cells: list[str], line: int, width: int) -> None:
        self._widths[len(self._cells)] = len(cells)
        self.add(cells + [""] * (width - len(cells)), line)

    def take(self, names: tuple[str, ...], losses: Losses) -> Iterator[RowBlock]:
        """The rows as one block. A lone short row has lost a delimiter somewhere, and is given up."""
        trusted = _habitual(self._widths, len(self._cells))
        lone = self._widths.keys() - trusted
        for row in sorted(lone):
            losses.narrow.add(self._lines[row])
        kept = [i for i in range(len(self._cells)) if i not in lone] if lone else range(len(self._cells))
        if len(kept):
            columns = zip(*(self._cells[i] for i in kept), strict=True)
            frame = pl.DataFrame([pl.Series(str(i), c, dtype=pl.String) for i, c in enumerate(columns)])
            lines = np.array([self._lines[i] for i in kept], dtype=np.int64)
            yield RowBlock(names, frame, lines, tuple(j for j, i in enumerate(kept) if i in trusted))
        self._cells, self._lines, self._widths = [], [], {}


def _habitual(widths: Mapping[int, int], rows: int) -> set[int]:
    """Short rows that the writer means: of a width that is common, or several of one width in a row."""
    common = {w for w, n in Counter(widths.values()).items() if n >= SHORT_SHARE * rows}
    trusted = {row for row, width in widths.items() if width in common}
    for row, width in widths.items():
        run = range(row, row + SHORT_RUN)
        if all(widths.get(r) == width for r in run):
            trusted.update(run)
    return trusted


def _first_lines(data: bytes) -> tuple[list[str], bool]:
    """Lines that decide the layout, at least three where there are as many, and whether some were Latin-1."""
    end = _LAYOUT_BYTES
    if len(data) > end:
        for _ in range(3):
            found = data.find(b"\n", end)
            end = len(data) if found < 0 else found + 1
            if data.count(b"\n", 0, end) >= 3:
                break
    text, latin1 = decode(data[:end])
    return split_lines(text)[:LAYOUT_LINES], latin1
