"""Some columns of a block of delimited text, taken out without parsing the others.

A block is a bit a byte: 1 where a delimiter stands. Where every line has the same number of delimiters, that which ends
cell *k* of line *i* is the *i · (columns - 1) + k*-th of the block, and counts of ones in words of 64 bits lead to
it, so the cells in between are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.tables.plain import cells_of
from afterrun.loaders.tables.textblocks import BLOCK_BYTES

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_LF = ord("\n")
_FIRST_PLAIN = ord("#") + 1
"""All bytes that change how a line is cut (quotes, comments, control characters) lie below."""

_HARMLESS = b" !"
_ONE = np.uint64(1)
_PIECE_BYTES = 2**17


@dataclass(frozen=True, slots=True)
class Cut:
    """Some columns of a block, as text."""

    names: tuple[str, ...]
    chosen: tuple[int, ...]
    data: bytes
    rows: int


class Narrow:
    """Cuts of one kind, put together until they are worth parsing."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._cuts: list[Cut] = []
        self._lines: list[Ints] = []
        self._size = 0

    def takes(self, cut: Cut) -> bool:
        """Whether a cut may be put to those before."""
        return not self._cuts or (self._size < BLOCK_BYTES and _kind(cut) == _kind(self._cuts[0]))

    def add(self, cut: Cut, first_line: int) -> None:
        """Put a cut to those before."""
        self._cuts.append(cut)
        self._lines.append(np.arange(first_line, first_line + cut.rows, dtype=np.int64))
        self._size += len(cut.data)

    def take(self) -> Iterator[tuple[tuple[str, ...], pl.DataFrame, Ints]]:
        """What was put together, if anything: names of all columns, cells of the chosen ones, line numbers."""
        if self._cuts:
            names, chosen = _kind(self._cuts[0])
            cells = cells_of(b"".join(c.data for c in self._cuts), chosen, self._delimiter)
            yield names, cells, np.concatenate(self._lines)
        self._cuts, self._lines, self._size = [], [], 0


def _kind(cut: Cut) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return cut.names, cut.chosen


@dataclass(frozen=True, slots=True)
class _Marks:
    """The ones of a block, and their number up to the end of each word."""

    words: Words
    until: Ints

    @classmethod
    def of(cls, words: Words) -> _Marks:
        return cls(words, np.cumsum(np.bitwise_count(words), dtype=np.int64))

    def before(self, at: Ints) -> Ints:
        """Number of ones before each position."""
        word = at >> 6
        later = self.words[word] >> (at & 63).astype(np.uint64)
        return np.asarray(self.until[word] - np.bitwise_count(later))

    def position(self, rank: Ints) -> Ints:
        """Position of each one, counted from 0."""
        at = np.searchsorted(self.until, rank, side="right")
        word = self.words[at]
        below = rank - (self.until[at] - np.bitwise_count(word))
        for i in range(int(below.max(initial=0))):  # take off the lowest one as often as there are ones below
            word = np.where(below > i, word & (word - _ONE), word)
        lowest = word & (~word + _ONE)
        positions: Ints = at * 64 + np.bitwise_count(lowest - _ONE)
        return positions


def _words(codes: Bytes, delimiter: int) -> tuple[Words, Words]:
    """A bit a byte: where bytes stand that may change how lines are cut, and where delimiters do.

    By pieces that the processor's cache takes, so that memory is read once.
    """
    odd, marks = np.zeros((2, -(-len(codes) // 64) * 8), np.uint8)
    for at in range(0, len(codes), _PIECE_BYTES):
        piece = codes[at : at + _PIECE_BYTES]
        into = slice(at // 8, at // 8 + -(-len(piece) // 8))
        odd[into] = np.packbits(piece < _FIRST_PLAIN, bitorder="little")
        marks[into] = np.packbits(piece == delimiter, bitorder="little")
    return odd.view(np.uint64), marks.view(np.uint64)


def _positions(words: Words) -> Ints:
    """Positions of all ones, quick where they are few."""
    filled = np.flatnonzero(words != 0)
    bits = np.unpackbits(words[filled].view(np.uint8), bitorder="little")
    at = np.flatnonzero(bits.view(np.bool_))
    positions: Ints = filled[at >> 6] * 64 + (at & 63)
    return positions


def narrowed(data: bytes, columns: int, delimiter: str, chosen: Sequence[int]) -> tuple[bytes, Ints] | None:
    """A block with some of its columns, and where its lines began; None where it has to go another way.

    ``chosen`` are positions in rising order, at least two, lest a line be blank. Every line must have ``columns`` cells
    and a line end, and nothing in the block may be a quote, a comment or damage.
    """
    if len(chosen) < 2 or not data.endswith(b"\n"):
        return None
    codes = np.frombuffer(data, np.uint8)
    odd_words, mark_words = _words(codes, ord(delimiter))
    odd = _positions(odd_words)
    kinds = codes[odd]
    ends = odd[kinds == _LF]
    harmless = np.isin(kinds, np.frombuffer(_HARMLESS + b"\n" + delimiter.encode(), np.uint8))
    if not harmless.all():
        return None
    marks = _Marks.of(mark_words)
    lines = np.arange(len(ends), dtype=np.int64)
    inside = columns - 1
    if marks.until[-1] != len(ends) * inside or (marks.before(ends) != (lines + 1) * inside).any():
        return None
    starts = np.concatenate(([0], ends[:-1] + 1))
    if delimiter == "\t" and (ends - starts == inside).any():
        return None  # a line of tabs alone is a blank line
    begins, stops = [], []
    for first, last in _stretches(chosen):
        begins.append(starts if first == 0 else marks.position(lines * inside + first - 1) + 1)
        stops.append(ends if last == inside else marks.position(lines * inside + last))
    return _picked(codes, np.stack(begins, axis=1), np.stack(stops, axis=1)), starts


def _stretches(chosen: Sequence[int]) -> list[tuple[int, int]]:
    """First and last column of each run of neighbours."""
    first = [c for c in chosen if c - 1 not in chosen]
    last = [c for c in chosen if c + 1 not in chosen]
    return list(zip(first, last, strict=True))


def _picked(codes: Bytes, begins: Ints, stops: Ints) -> bytes:
    """Stretches of cells with the byte behind each, which ends a line after the last of its row."""
    sizes = (stops - begins + 1).ravel()
    until = np.cumsum(sizes)
    text = codes[np.repeat(begins.ravel() - until + sizes, sizes) + np.arange(int(until[-1]))]
    text[until[begins.shape[1] - 1 :: begins.shape[1]] - 1] = _LF
    return text.tobytes()
