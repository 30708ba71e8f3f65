"""The lines of what a sampler wrote, sorted into tables of rows, drawn tables and the rest.

A file may begin without a header, repeat it, change it, hold drawn ``nvidia-smi`` tables in front of rows, holes of
zero bytes and torn lines. A row that is not as wide as its header is given up and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from afterrun.loaders.counters.clocks import is_ctime
from afterrun.loaders.counters.readings import LONGEST_LINE, reading
from afterrun.loaders.counters.smi.columns import COUNTER_KINDS, Column, column, columns_of, is_header
from afterrun.loaders.counters.smi.guess import guess
from afterrun.loaders.limits import MAX_QUOTED_LINES
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.delimited import DELIMITERS, split_cells
from afterrun.loaders.tables.plain import plain_cells
from afterrun.loaders.tables.textblocks import TextBlock, decode, split_lines

DIAGNOSTIC = re.compile(
    r"unable to determine the device handle|failed to initialize nvml|nvidia-smi has failed|no devices were found|"
    r"gpu is lost|gpu requires reset|driver/library version mismatch|unknown error\b.*gpu|insufficient permissions",
    re.IGNORECASE,
)
"""What ``nvidia-smi`` says instead of samples."""

_KNOWN = COUNTER_KINDS | {"time", "date", "index", "uuid", "bus", "name", "pid", "process", "driver"}
LONGEST_HEADER = 1 << 16
"""A query of all fields has a header of 6 KB."""
_NEVER = "\x01"
"""A label that stands in no row."""
_MAX_EARLY = 10_000
_MAX_DIAGNOSTICS = 1_000


@dataclass(slots=True)
class Part:
    """Rows under one header, cells unstripped; ``lines`` are their line numbers, counted from 1.

    ``quoted``: some cell may hold several lines.
    """

    columns: tuple[Column, ...]
    cells: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    quoted: bool = False
    texts: pl.DataFrame | None = None
    """The cells where a whole block was cut at once; ``cells`` is empty then."""


@dataclass(slots=True)
class Other:
    """A line that belongs to no table of rows: of a drawn table, or a date."""

    text: str
    line: int


@dataclass(slots=True)
class LineBooks:
    """What happened to lines that became no rows."""

    torn: Places = field(default_factory=Places)
    headers: Places = field(default_factory=Places)
    foreign: Places = field(default_factory=Places)
    too_long: int = 0
    latin1: bool = False
    holes: bool = False
    guessed: bool = False
    diagnostics: list[tuple[int, str]] = field(default_factory=list)

    @property
    def damaged(self) -> int:
        """Lines given up."""
        return self.torn.count + self.too_long

    def notes(self) -> Iterator[str]:
        """Sentences for a person."""
        if self.torn.count:
            yield f"torn rows left out: {self.torn}"
        if self.too_long:
            yield f"lines too long to be rows left out: {self.too_long}"
        if self.holes:
            yield "stretches of zero bytes were skipped, as a file that is cut while its writer runs has them"
        if self.headers.count:
            yield f"the header comes again: {self.headers}"
        if self.foreign.count:
            yield f"lines that are no samples were skipped: {self.foreign}"
        if self.latin1:
            yield "bytes that are not UTF-8 were read as Latin-1"


class SmiLines:
    """Sorts the lines of one file. ``books`` are complete after ``parts``."""

    def __init__(self, blocks: Iterable[TextBlock]) -> None:
        self.books = LineBooks()
        self._blocks = blocks
        self._columns: tuple[Column, ...] | None = None
        self._delimiter = ","
        self._header = ""
        self._early: list[tuple[str, int]] = []
        self._labels: list[str] = []
        self._part = Part(())
        self._done: Part | None = None

    def parts(self) -> Iterator[Part | Other]:
        """Everything in the file in order: at least one part a block that holds rows. To be called once."""
        for block in self._blocks:
            self.books.too_long += block.too_long
            if plain := self._plain(block):
                yield plain
                continue
            text, latin1 = decode(block.data)
            self.books.latin1 |= latin1
            lines = split_lines(text)
            at = 0
            while at < len(lines):
                used, other = self._line(lines, at, block.first_line + at)
                at += used
                if other is not None:
                    yield from self._flush()
                    yield other
                elif self._done is not None:
                    yield from self._flush()
            yield from self._guessed()
            yield from self._flush()

    def _plain(self, block: TextBlock) -> Part | None:
        """The block cut at once, where it holds rows of the known columns and nothing else."""
        if self._columns is None or len(self._columns) < 2 or block.cut:
            return None
        cells = plain_cells(block.data, self._labels, self._delimiter)
        if cells is None:
            return None
        last = block.first_line + len(cells)
        return Part(self._columns, lines=list(range(block.first_line, last)), texts=_as_texts(cells))

    def _flush(self) -> Iterator[Part]:
        for part in (self._done, self._part):
            if part is not None and part.cells:
                yield part
        self._done = None
        self._part = Part(self._columns or ())

    def _line(self, lines: Sequence[str], at: int, number: int) -> tuple[int, Other | None]:
        """Number of lines taken, and the line where it is none of rows."""
        line = lines[at]
        if "\0" in line:
            self.books.holes = True
            line = line.strip("\0")
        start = line.lstrip()[:1]
        if not start:
            return 1, None
        if start in "+|" or (line[0].isalpha() and is_ctime(line)):
            return 1, Other(line[:LONGEST_LINE], number)
        if self._is_no_row(line, start, number):
            return 1, None
        cells, used = self._cells(line, lines, at)
        self._add(cells, number)
        return used, None

    def _is_no_row(self, line: str, start: str, number: int) -> bool:
        """Headers, messages, and what comes before the columns are known."""
        if line == self._header:
            self.books.headers.add(number)
            return True
        if not start.isdigit() and self._take_header(line, number):
            return True
        if self._columns is None and self._is_message(line, number):
            return True
        if self._columns is None and len(self._early) < _MAX_EARLY:
            self._early.append((line, number))
        elif self._columns is None:
            self.books.foreign.add(number)
        return self._columns is None

    def _cells(self, line: str, lines: Sequence[str], at: int) -> tuple[list[str], int]:
        """Cells of the row that begins here, and the lines it takes: a quoted cell may span several."""
        if '"' not in line:
            return line.split(self._delimiter), 1
        self._part.quoted = True
        cells, still_open = split_cells(line, self._delimiter)
        used = 1
        while still_open and used < MAX_QUOTED_LINES and at + used < len(lines):
            used += 1
            cells, still_open = split_cells("\n".join([line, *lines[at + 1 : at + used]]), self._delimiter)
        return (line.split(self._delimiter), 1) if still_open else (cells, used)

    def _add(self, cells: list[str], number: int) -> None:
        columns = self._columns or ()
        if len(cells) == len(columns) + 1 and not cells[-1].strip():
            cells = cells[:-1]
        if len(cells) != len(columns) or (len(columns) == 1 and not _is_cell(cells[0])):
            if not self._is_message(self._delimiter.join(cells), number):
                self.books.torn.add(number)
            return
        self._part.cells.append(cells)
        self._part.lines.append(number)

    def _is_message(self, line: str, number: int) -> bool:
        found = DIAGNOSTIC.search(line[:LONGEST_LINE]) is not None
        if found and len(self.books.diagnostics) < _MAX_DIAGNOSTICS:
            self.books.diagnostics.append((number, line.strip()))
        return found

    def _take_header(self, line: str, number: int) -> bool:
        found = header_of(line) or (self._again(line) if self._columns is not None else None)
        if found is None:
            return False
        labels, delimiter = found
        if self._columns is not None:
            self.books.headers.add(number)
        for _, early in self._early:
            self.books.foreign.add(early)
        self._early = []
        if self._part.cells:
            self._done = self._part
        self._columns, self._delimiter, self._header = columns_of(labels), delimiter, line
        self._labels = labels
        self._part = Part(self._columns)
        return True

    def _again(self, line: str) -> tuple[list[str], str] | None:
        """A header below another: every label known, one of them a counter."""
        labels = [c.strip() for c in line.split(self._delimiter)]
        kinds = {column(text).kind for text in labels}
        known = kinds <= _KNOWN and not kinds.isdisjoint(COUNTER_KINDS)
        return (labels, self._delimiter) if known else None

    def _guessed(self) -> Iterator[Part]:
        """The rows before any header, where their columns can be told."""
        if self._columns is not None or not self._early:
            return
        found = headless([text for text, _ in self._early])
        early, self._early = self._early, []
        if found is None:
            for _, number in early:
                self.books.foreign.add(number)
            return
        self._columns, self._delimiter = found
        self._labels = [_NEVER] * len(self._columns)
        self.books.guessed = True
        self._part = Part(self._columns)
        for line, number in early:
            self._add(split_cells(line, self._delimiter)[0], number)
        yield from self._flush()


def _as_texts(cells: pl.DataFrame) -> pl.DataFrame:
    """Cells as text; whole numbers without a point, as they were written."""
    columns = []
    for series in cells.iter_columns():
        if series.dtype == pl.Float64:
            whole = series.is_finite() & (series == series.floor()) & (series.abs() < 2.0**53)
            texts = series.cast(pl.String)
            columns.append(
                texts.zip_with(~whole.fill_null(False), series.cast(pl.Int64, strict=False).cast(pl.String))
            )
        else:
            columns.append(series)
    return pl.DataFrame(columns).fill_null("")


def _is_cell(text: str) -> bool:
    return reading(text.strip()) is not None or text.strip().startswith(("[", "N/A", "ERR", "-"))


def header_of(line: str) -> tuple[list[str], str] | None:
    """Labels and delimiter where a line is the header of a sampler's table."""
    if len(line) > LONGEST_HEADER:
        return None
    for delimiter in DELIMITERS:
        if delimiter != "," and delimiter not in line:
            continue
        labels = [c.strip() for c in split_cells(line, delimiter)[0]]
        if any(c[:1].isdigit() for c in labels):
            continue
        while labels and not labels[-1]:
            labels = labels[:-1]
        if is_header(labels):
            return labels, delimiter
    return None


def headless(lines: Sequence[str]) -> tuple[tuple[Column, ...], str] | None:
    """Columns and delimiter of rows without a header; None where they are no samples beyond doubt."""
    for delimiter in DELIMITERS:
        rows = [[c.strip() for c in split_cells(line, delimiter)[0]] for line in lines]
        columns = guess(rows)
        if columns is not None:
            return columns, delimiter
    return None
