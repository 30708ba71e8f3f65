"""A block of lines as numbers and skeletons, for all its lines at once.

The skeleton of a line is the line with every number replaced by one sign and every run of blanks by one blank.
Lines of one writer differ in their numbers only, so a log of a million lines has a handful of skeletons: each is
understood once, and the numbers of all lines that share it are columns.

A *number* is a run of digits with its sign, decimal point, exponent and thousands commas. Digits that belong to a
word (``loss_1``, ``fp16``, ``layer/3``, ``map@0.5``, ``map50-95``) stay in the skeleton. Words such as ``nan`` do, too: a
line that says NaN has a skeleton of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.tables.cells import numbers
from afterrun.loaders.textlog.clean import Block

NUM = "\x01"
"""Stands for one number in a skeleton. Cleaned lines hold no control characters, so it is never text."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_OTHER, _END, _DIGIT, _POINT, _COMMA, _BLANK, _E, _LETTER, _JOINT, _SIGN = range(10)
"""Classes of bytes. ``_JOINT``: ``/`` and ``@``, which tie digits to the word before them, as ``-`` does. Digits after
one from ``_E`` on may belong to a word.
"""

_LF, _T, _COLON = 10, ord("T"), ord(":")


def _classes() -> bytes:
    table = bytearray(256)
    groups = {
        _DIGIT: b"0123456789",
        _POINT: b".",
        _COMMA: b",",
        _SIGN: b"+-",
        _BLANK: b" ",
        _E: b"eE",
        _END: b"\n",
        _JOINT: b"/@",
    }
    letters = bytes(c for c in range(128) if chr(c).isalpha() or c == ord("_"))
    for kind, members in {_LETTER: letters, **groups}.items():
        for member in members:
            table[member] = kind
    return bytes(table)


_TABLE = _classes()


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one block. Line ``i`` is ``data[starts[i]:starts[i + 1] - 1]``; its numbers are
    ``values[first[i]:first[i + 1]]``, NaN where digits make no number (``1.2.3``).

    ``groups``: (skeleton, indices of its lines in order), in order of first appearance.
    """

    data: bytes
    numbers: Ints
    starts: Ints
    values: NDArray[np.float64]
    first: Ints
    groups: tuple[tuple[str, Ints], ...]

    def text(self, line: int) -> str:
        """One line as it stands in the file, cleaned."""
        return self.data[self.starts[line] : self.starts[line + 1] - 1].decode("utf-8", "replace")

    def column(self, lines: Ints, slot: int) -> NDArray[np.float64]:
        """The numbers at one place of the skeleton that these lines share."""
        column: NDArray[np.float64] = self.values[self.first[lines] + slot]
        return column


def tokenise(block: Block) -> Lines:
    """Numbers and skeletons of a block; the result for a line does not depend on the lines around it."""
    data = b"\n" + block.data
    kinds = np.frombuffer(data.translate(_TABLE), np.uint8)
    codes = np.frombuffer(data, np.uint8)
    inside = _number_bytes(codes, kinds)
    begins, ends = _runs(codes, kinds, inside)
    line_ends = np.flatnonzero(kinds == _END)
    first = np.searchsorted(begins, line_ends)
    return Lines(
        data=block.data,
        numbers=block.numbers,
        starts=line_ends.astype(np.int64),
        values=_values(codes, kinds, inside, ends),
        first=first.astype(np.int64),
        groups=_groups(codes, kinds, inside, begins),
    )


def _number_bytes(codes: Bytes, kinds: Bytes) -> Bools:
    """Which bytes belong to numbers, words that hold digits not yet told apart."""
    digit: Bools = kinds == _DIGIT
    inside: Bools = digit.copy()
    inside[:-1] |= (kinds[:-1] == _POINT) & digit[1:]
    exponents = np.flatnonzero((kinds[1:-2] == _E) & digit[:-3]) + 1
    plain = digit[exponents + 1]
    signed = (kinds[exponents + 1] == _SIGN) & digit[exponents + 2]
    inside[exponents[plain | signed]] = True
    inside[exponents[signed] + 1] = True
    signs = np.flatnonzero((kinds[1:-1] == _SIGN) & inside[2:]) + 1
    before = kinds[signs - 1]
    bound = (before == _DIGIT) | (before == _LETTER) | (before == _E) | (before == _POINT)
    inside[signs[~bound]] = True
    inside[_thousands(codes, digit, np.flatnonzero((kinds[:-1] == _COMMA) & digit[1:]))] = True
    return inside


def _thousands(codes: Bytes, digit: Bools, commas: Ints) -> Ints:
    """Those commas that group thousands: one to three digits before, exactly three after.

    The digits before are not the decimals of another number (``15.2,150``) nor seconds (``45,123``).
    """
    last = len(codes) - 1  # a line end, as is the first byte
    ahead = digit[np.minimum(commas[:, None] + np.arange(1, 5), last)]
    commas = commas[digit[commas - 1] & ahead[:, :3].all(axis=1) & ~ahead[:, 3]]
    if not len(commas):
        return commas
    behind = digit[np.maximum(commas[:, None] - np.arange(2, 5), 0)]
    size = np.where(behind[:, 0], np.where(behind[:, 1], np.where(behind[:, 2], 4, 3), 2), 1)
    left = codes[np.maximum(commas - size - 1, 0)]
    fits = (size <= 3) & (left != ord(".")) & ((left != _COLON) | (size != 2))
    grouping: Ints = commas[fits]
    return grouping


def _runs(codes: Bytes, kinds: Bytes, inside: Bools) -> tuple[Ints, Ints]:
    """First byte and end of every number; digits that belong to a word are taken out of ``inside``."""
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    begins, ends = edges[0::2], edges[1::2]
    before = kinds[begins - 1]
    near = np.flatnonzero(before >= _E)
    at, further = begins[near] - 1, kinds[np.maximum(begins[near] - 2, 0)]
    behind_word = (further == _LETTER) | (further == _E)
    joint = (kinds[at] == _JOINT) | (kinds[at] == _SIGN)
    hour = (codes[at] == _T) & (further == _DIGIT)  # 2024-10-11T13:44:45
    near = near[np.where(joint, behind_word, ~hour)]
    if not len(near):
        return begins, ends
    near = np.union1d(near, _second_parts(codes, begins, ends, near))
    inside[_spans(begins[near], ends[near])] = False
    free = np.ones(len(begins), np.bool_)
    free[near] = False
    return begins[free], ends[free]


def _second_parts(codes: Bytes, begins: Ints, ends: Ints, near: Ints) -> Ints:
    """Runs that go on with a word whose digits end right before them: ``mAP50-95``, ``mAP@0.5:0.95: 0.4``."""
    first = near[near + 1 < len(begins)]
    behind = first + 1
    touching = begins[behind] == ends[first] + 1
    first, behind = first[touching], behind[touching]
    tie, after = codes[ends[first]], codes[ends[behind]]
    next_one = np.where(after == ord(" "), codes[np.minimum(ends[behind] + 1, len(codes) - 1)], after)
    key = (codes[begins[first] - 1] == ord("@")) & ((next_one == _COLON) | (next_one == ord("=")))
    parts: Ints = behind[(tie == ord("-")) & (after != ord("-")) | (tie == _COLON) & key]
    return parts


def _spans(begins: Ints, ends: Ints) -> Ints:
    """All positions of some stretches."""
    sizes = ends - begins
    offsets = np.cumsum(sizes) - sizes
    return np.repeat(begins - offsets, sizes) + np.arange(int(sizes.sum()))


def _values(codes: Bytes, kinds: Bytes, inside: Bools, ends: Ints) -> NDArray[np.float64]:
    """All numbers in order, parsed as one column of a table."""
    if not len(ends):
        return np.empty(0)
    kept = inside
    commas = np.flatnonzero(inside & (kinds == _COMMA))
    if len(commas):
        kept = inside.copy()
        kept[commas] = False
    text = codes.copy()
    text[ends] = _LF
    kept[ends] = True
    column = _picked(text, kept)
    kept[ends] = False
    try:
        parsed = pl.read_csv(column, has_header=False, quote_char=None, schema={"v": pl.Float64})["v"]
    except pl.exceptions.PolarsError:
        parsed, _ = numbers(pl.Series(column.decode("ascii").split("\n")[:-1], dtype=pl.String))
    return (parsed.fill_null(np.nan) if parsed.null_count() else parsed).to_numpy()


def _picked(codes: Bytes, kept: Bools) -> bytes:
    """The bytes of a mask, by polars: five times as fast as numpy where the mask changes every few bytes."""
    return pl.Series(codes).filter(pl.Series(kept)).to_numpy().tobytes()


def _groups(codes: Bytes, kinds: Bytes, inside: Bools, begins: Ints) -> tuple[tuple[str, Ints], ...]:
    """Skeletons and their lines."""
    text = codes.copy()
    text[begins] = ord(NUM)
    kept = ~inside
    kept[begins] = True
    blank = kinds == _BLANK
    kept[1:] &= ~(blank[1:] & blank[:-1])
    kept[0] = False  # the line end put before the block
    lines = pl.Series("s", [_picked(text, kept)[:-1].decode("utf-8")]).str.split("\n").explode()
    grouped = (
        pl.DataFrame({"s": lines})
        .with_row_index("line")
        .group_by("s", maintain_order=True)
        .agg(pl.col("line").cast(pl.Int64))
    )
    return tuple(
        (str(skeleton).strip(" "), of_it.to_numpy())
        for skeleton, of_it in zip(grouped["s"], grouped["line"], strict=True)
    )
