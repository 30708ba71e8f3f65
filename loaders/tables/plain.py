"""Blocks of delimited text that can be parsed whole, and what tells them from those to be cut line by line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.tables.textblocks import decode

_NUMERIC_BYTES = b"0123456789+-.eE nNaAiIfFtTyY\n"
_TRICKY = (b'"', b"#", b"\0", b"\r")
_LABELS_SOUGHT = 24
_NO_HEADER = frozenset(b"0123456789+-.")


def plain_cells(data: bytes, labels: Sequence[str], delimiter: str) -> pl.DataFrame | None:
    """Cells of a block whose lines are all equally wide and hold no quote, comment or damage, else None.

    Float64 where every cell is a number or empty, else String; the result is what cutting line by line
    would give, so whatever could be read in two ways is left to that.
    """
    data = with_lf(data)
    if not _is_rectangular(data, len(labels), delimiter):
        return None
    numeric = _numbers(data, range(len(labels)), delimiter)
    if numeric is not None:
        return numeric
    if any(mark in data for mark in _TRICKY) or not _is_utf8(data):
        return None
    if _may_hold_header(data, labels):
        return None
    return _parse(data, range(len(labels)), delimiter, pl.String())


def with_lf(data: bytes) -> bytes:
    """The block with LF for CR LF and CR CR LF."""
    return data.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n") if b"\r" in data else data


def _may_hold_header(data: bytes, labels: Sequence[str]) -> bool:
    """Whether a header may come again: it has at least half of the labels; one more than half cannot all be absent."""
    telling = labels[: len(labels) // 2 + 1]
    return len(telling) > _LABELS_SOUGHT or any(not t or t.encode() in data for t in telling)


def may_begin_header(data: bytes, starts: NDArray[np.int64], labels: Sequence[str], delimiter: str) -> bool:
    """As above, for a block whose lines begin at ``starts``: a line that begins with a number or nothing is none."""
    begins = set(np.unique(np.frombuffer(data, np.uint8)[starts]).tolist())
    return not begins <= _NO_HEADER | {ord(delimiter)} and _may_hold_header(data, labels)


def _is_rectangular(data: bytes, columns: int, delimiter: str) -> bool:
    """Whether every line, the last one included, has a line end and ``columns - 1`` delimiters."""
    if columns < 2 or not data.endswith(b"\n"):
        return False
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == ord("\n"))
    marks = np.flatnonzero(codes == ord(delimiter))
    if len(marks) != len(ends) * (columns - 1):
        return False
    grid = marks.reshape(len(ends), columns - 1)
    if (grid[:, -1] > ends).any() or (grid[1:, 0] < ends[:-1]).any():
        return False
    # Lines of tabs alone are blank lines when they are read one by one.
    return delimiter != "\t" or bool((np.diff(ends, prepend=-1) > columns).all())


def _is_utf8(data: bytes) -> bool:
    return data.isascii() or not decode(data)[1]


def cells_of(data: bytes, columns: Sequence[int], delimiter: str) -> pl.DataFrame:
    """Cells of lines with one for each of two columns or more: Float64 where every cell is a number or empty, else String."""
    found = _numbers(data, columns, delimiter)
    found = _parse(data, columns, delimiter, pl.String()) if found is None else found
    assert found is not None  # any text is text
    return found


def _numbers(data: bytes, columns: Sequence[int], delimiter: str) -> pl.DataFrame | None:
    if data.translate(None, _NUMERIC_BYTES + delimiter.encode()):
        return None
    return _parse(data, columns, delimiter, pl.Float64())


def _parse(data: bytes, columns: Sequence[int], delimiter: str, dtype: pl.DataType) -> pl.DataFrame | None:
    schema = {str(i): dtype for i in columns}
    try:
        return pl.read_csv(data, has_header=False, separator=delimiter, quote_char=None, schema=schema)
    except pl.exceptions.PolarsError:
        return None
