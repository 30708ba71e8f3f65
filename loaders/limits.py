"""Guards of size, depth and ratio: what a hostile or broken file may cost before reading stops.

Every constant is a promise about memory or time, not about what is sensible; each stands far above
what real training logs hold. A guard that stops the reading of a whole source raises ``LimitError``;
guards on parts of a source (a line, a quoted cell) cost that part only and are noted.
"""

from __future__ import annotations

import json
from typing import Any

from afterrun.loaders.errors import LimitError

MIB = 2**20
GIB = 2**30

MAX_JSON_BYTES = 256 * MIB
"""Largest JSON document decoded as one value: Python objects take about eight times the text."""

MAX_JSON_DEPTH = 64
"""Deepest nesting that is followed when a decoded document is flattened into dotted keys."""

MAX_COLUMNS = 100_000
"""Most columns of one table; also the most tags that one wide source may bring."""

MAX_LINE_BYTES = 16 * MIB
"""Longest text line; a longer one is given up as damaged up to its line end."""

MAX_QUOTED_LINES = 64
"""Most lines one quoted cell may span; beyond that the opening quote counts as a stray one."""

MAX_INFLATED_BYTES = 2 * GIB
"""Most bytes one compressed source may turn into."""

MAX_INFLATE_RATIO = 200
"""Most bytes out for one byte in, once ``INFLATE_GRACE_BYTES`` have come out."""

INFLATE_GRACE_BYTES = 10 * MIB
"""Below this size no ratio is suspicious: a short log of zeros may well shrink a thousandfold."""

MAX_ARCHIVE_MEMBERS = 100_000
"""Most files taken from one archive."""

_LONGEST_INT = 19
"""Digits of the largest int64; longer integers are read as floats."""


def check_size(name: str, size_bytes: int, limit_bytes: int) -> None:
    """Raise ``LimitError`` where a source of ``size_bytes`` is over its limit."""
    if size_bytes > limit_bytes:
        raise LimitError(
            f"{name}: {size_bytes} bytes are over the limit of {limit_bytes} bytes for this format; "
            "split the file or keep only its end"
        )


def check_columns(name: str, columns: int) -> None:
    """Raise ``LimitError`` where a table has more than ``MAX_COLUMNS`` columns."""
    if columns > MAX_COLUMNS:
        raise LimitError(f"{name}: {columns} columns are over the limit of {MAX_COLUMNS}")


def check_inflation(name: str, bytes_in: int, bytes_out: int) -> None:
    """Raise ``LimitError`` where decompressing has produced too much, absolutely or by ratio.

    To be called after each block with the totals so far, so that a bomb is stopped on its way.
    """
    if bytes_out > MAX_INFLATED_BYTES:
        raise LimitError(f"{name}: decompresses to over {MAX_INFLATED_BYTES} bytes; reading was stopped")
    if bytes_out > INFLATE_GRACE_BYTES and bytes_out > MAX_INFLATE_RATIO * max(bytes_in, 1):
        raise LimitError(
            f"{name}: {bytes_in} bytes decompress to over {bytes_out}, more than {MAX_INFLATE_RATIO} to 1; "
            "reading was stopped"
        )


def _bounded_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INT else float(digits)


LENIENT_JSON = json.JSONDecoder(parse_int=_bounded_int)
"""Takes bare NaN and Infinity; integers beyond int64 become floats, so no digit string is costly."""


def decode_json(name: str, text: str) -> Any:
    """One JSON value from text, bare ``NaN``, ``Infinity`` and ``-Infinity`` allowed.

    Raises ``json.JSONDecodeError`` (a ``ValueError``) where the text is not JSON and ``LimitError``
    where it nests deeper than the interpreter's stack allows.
    """
    try:
        return LENIENT_JSON.decode(text)
    except RecursionError as error:
        raise LimitError(f"{name}: JSON nested too deep to be a log") from error
