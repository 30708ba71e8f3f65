"""The grammar of delimited text: which delimiter, which line is the header, what the cells of a line are.

Everything is decided by content on the first lines; ``afterrun.loaders.tables.reader`` streams the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

from afterrun.loaders.limits import MAX_QUOTED_LINES
from afterrun.loaders.registry import HEAD_BYTES
from afterrun.loaders.tables.cells import is_nothing, number
from afterrun.loaders.tables.textblocks import decode_head, split_lines

DELIMITERS = (",", "\t", ";", "|")
"""In order of preference where two fit equally well."""

LAYOUT_LINES = 200
"""How many lines decide the layout."""

_HEADER_WITHIN = 20
_MOSTLY_BINARY = 0.05
_ZEROS = re.compile("\0{16,}")
"""A stretch that a crash or a full disk left unwritten."""

_TEXT_CONTROLS = "\t\n\v\f\r\x1b"
_CELLS_JUDGED = 2000
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_POINT_NUMBER = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one table is written. ``names`` are stripped, never empty, unique.

    ``header_line`` counts from 0 among the lines looked at; ``comments`` are the ``#`` lines before and
    among the sample; ``sample`` holds the stripped cells of the first rows, ragged as they are;
    ``cut`` says that the header itself was cut off by the end of what was looked at.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    delimiter: str
    decimal_comma: bool
    header_line: int
    comments: tuple[str, ...]
    sample: tuple[tuple[str, ...], ...]
    preamble: int = 0
    cut: bool = False


@cache
def _quoted(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A closed quoted cell, and one that is still open at the end of the line."""
    end = re.escape(delimiter)
    body = r'[^\S\t]*"([^"]*(?:""[^"]*)*)'
    return re.compile(rf'{body}"[^\S\t]*(?={end}|$)', re.DOTALL), re.compile(rf"{body}\Z", re.DOTALL)


def split_cells(line: str, delimiter: str) -> tuple[list[str], bool]:
    """Cells of one line, quotes taken off, and whether its last cell is an open quote.

    A quote inside a cell, or one followed by more text, is an ordinary character.
    """
    if '"' not in line:
        return line.split(delimiter), False
    closed, still_open = _quoted(delimiter)
    cells: list[str] = []
    at = 0
    while True:
        if cell := closed.match(line, at):
            cells.append(cell[1].replace('""', '"'))
            end = cell.end()
        elif cell := still_open.match(line, at):
            cells.append(cell[1])
            return cells, True
        else:
            end = line.find(delimiter, at)
            end = len(line) if end < 0 else end
            cells.append(line[at:end])
        if end >= len(line):
            return cells, False
        at = end + len(delimiter)


def strip_all(cells: Sequence[str]) -> tuple[str, ...]:
    """Cells without the blanks around them."""
    return tuple(c.strip() for c in cells)


def unique_names(labels: Sequence[str]) -> tuple[str, ...]:
    """Column names as pandas makes them: ``Unnamed: 3`` for an empty one, ``loss.1`` for a second ``loss``."""
    taken: set[str] = set()
    seen: Counter[str] = Counter()
    given = {label for label in labels if label}
    names = []
    for i, label in enumerate(labels):
        base = label or f"Unnamed: {i}"
        name = base
        while name in taken or (name != base and name in given):
            seen[base] += 1
            name = f"{base}.{seen[base]}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _cells(line: str, delimiter: str) -> tuple[str, ...]:
    """Stripped cells of a line on its own, where an open quote is an ordinary character."""
    cells, still_open = split_cells(line, delimiter)
    return strip_all(line.split(delimiter) if still_open else cells)


def is_header_like(cells: Sequence[str]) -> bool:
    """Whether stripped cells are names: at least one word, and numbers in less than half of them."""
    words = sum(1 for c in cells if c and number(c) is None and not is_nothing(c))
    return words > 0 and words * 2 > sum(1 for c in cells if c)


@dataclass(frozen=True, slots=True)
class _Line:
    index: int
    text: str


def _content(lines: Sequence[str]) -> tuple[list[_Line], list[_Line]]:
    """Lines that can be header or rows, and comment lines; the lines of a quoted cell put together."""
    content: list[_Line] = []
    comments: list[_Line] = []
    for i, text in _records(lines[:LAYOUT_LINES]):
        plain = text.strip().strip("\0")
        if plain:
            (comments if plain.startswith("#") else content).append(_Line(i, text))
    return content, comments


def _records(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(index of its first line, text) of every record: an odd quote takes the lines up to the next odd one with it."""
    at = 0
    while at < len(lines):
        used = 1
        if lines[at].count('"') % 2:
            rest = lines[at + 1 : at + MAX_QUOTED_LINES]
            closing = next((k for k, text in enumerate(rest, 2) if text.count('"') % 2), 1)
            used = closing if _is_one_cell(lines[at : at + closing]) else 1
        yield at, "\n".join(lines[at : at + used])
        at += used


def _is_one_cell(lines: Sequence[str]) -> bool:
    """Whether the last line goes on where a quote was left open: not a stray quote on each of two rows."""
    return len(lines) > 1 and not any(c in lines[-1].partition('"')[0] for c in DELIMITERS)


def _choose(content: Sequence[_Line]) -> str | None:
    """The delimiter under which most lines, a header of names among them, are equally wide and numeric.

    A decimal comma is equally wide too, but its header is not cut, or its cells are no numbers.
    """
    if content[0].text.strip().lower() in {f"sep={d}" for d in DELIMITERS}:
        return content[0].text.strip()[-1]
    best, best_score = None, (0.0, 0)
    for delimiter in DELIMITERS:
        rows = [_cells(line.text, delimiter) for line in content]
        width = _usual_width(rows)
        if width < 2:
            continue
        fits = [row for row in rows if len(row) == width]
        named = any(is_header_like(row) for row in fits[:_HEADER_WITHIN])
        cells = list(islice((c for row in fits[1:] for c in row), _CELLS_JUDGED))
        numeric = sum(1 for c in cells if _may_be_number(c, delimiter)) / max(len(cells), 1)
        score = (len(fits) / len(rows) * (1 + numeric) * (2 if named else 1), width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _may_be_number(cell: str, delimiter: str) -> bool:
    comma = delimiter != "," and _COMMA_NUMBER.fullmatch(cell) is not None
    return comma or is_nothing(cell) or number(cell) is not None


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    """The commonest number of cells among lines with at least two, 1 where there is none."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return widths.most_common(1)[0][0] if widths else 1


def _decimal_comma(delimiter: str, sample: Sequence[Sequence[str]]) -> bool:
    """Whether numbers are written with a comma.

    Beside ``;`` a comma in a number is the decimal one unless some number has a point. Beside a tab or a
    bar it must also be seen where thousands cannot be meant (``0,5``, ``1,25``).
    """
    if delimiter == ",":
        return False
    cells = [c for row in sample for c in row]
    commas = [c for c in cells if _COMMA_NUMBER.fullmatch(c)]
    if not commas or any(_POINT_NUMBER.fullmatch(c) for c in cells):
        return False
    sure = any(len(c.lstrip("+-").split(",")[1]) != 3 or c.lstrip("+-").startswith("0") for c in commas)
    return sure or delimiter == ";"


def _header(content: Sequence[_Line], comments: Sequence[_Line], delimiter: str) -> tuple[_Line, str] | None:
    """The header line and its text: a line of names as wide as the rows, maybe behind a ``#``."""
    rows = [(line, _cells(line.text, delimiter)) for line in content]
    usual = _usual_width([cells for _, cells in rows])
    early = rows[:_HEADER_WITHIN]
    fitting = next(((r, c) for r, c in early if len(c) == usual and is_header_like(c)), None)
    any_names = next(((r, c) for r, c in early if len(c) > 1 and is_header_like(c)), None)
    found = fitting or any_names or (early[0] if usual == 1 and is_header_like(early[0][1]) else None)
    if found and (found[0] is rows[0][0] or not _is_row(rows[0][1])):
        return found[0], found[0].text
    for comment in reversed([c for c in comments if c.index < content[0].index]):
        text = comment.text.strip().lstrip("#")
        cells = _cells(text, delimiter)
        if len(cells) == usual and is_header_like(cells):
            return comment, text
    return None


def _is_row(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and not is_header_like(cells)


def layout_of(lines: Sequence[str], *, cut: bool = False) -> Layout | None:
    """The layout that fits the first lines of a file, None where they are no table with a header.

    ``cut``: the only line given is an incomplete header.
    """
    content, comments = _content(lines)
    if not content:
        return None
    delimiter = _choose(content) or ","
    if content[0].text.strip().lower() == f"sep={delimiter}":
        content = content[1:]
        if not content:
            return None
    header = _header(content, comments, delimiter)
    if header is None:
        return None
    line, text = header
    labels = _cells(text, delimiter)
    labels = labels[:-1] if cut else labels
    rows = [_cells(r.text, delimiter) for r in content if r.index > line.index]
    if rows and all(len(row) == len(labels) + 1 and not row[-1] for row in rows):
        labels = (*labels, "")  # a delimiter after the last cell of every row, but not of the header
    if not labels:
        return None
    return Layout(
        names=unique_names(labels),
        labels=labels,
        delimiter=delimiter,
        decimal_comma=_decimal_comma(delimiter, rows),
        header_line=line.index,
        comments=tuple(c.text.strip() for c in comments if c.index != line.index),
        sample=tuple(rows),
        preamble=sum(1 for r in content if r.index < line.index),
        cut=cut,
    )


@lru_cache(maxsize=16)
def peek(head: bytes) -> Layout | None:
    """The layout of a file by its first ``HEAD_BYTES``; None where it is no table with a header.

    For sniffers: reads nothing else, never raises. Cached, as every sniffer asks about the same head.
    """
    text = _ZEROS.sub("", decode_head(head).strip("\0"))
    if text.lstrip()[:1] in ("{", "["):
        return None  # JSON, which has loaders of its own
    if not text or sum(1 for c in text if c < " " and c not in _TEXT_CONTROLS) > _MOSTLY_BINARY * len(text):
        return None
    lines = split_lines(text)
    if len(head) < HEAD_BYTES:
        return layout_of(lines)
    whole = lines[:-1]
    return (
        layout_of(whole)
        if any(x.strip() and not x.startswith("#") for x in whole)
        else layout_of(lines, cut=True)
    )
