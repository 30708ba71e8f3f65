"""What the first bytes of a file of JSON lines say, for sniffers: names and values of its first rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from afterrun.loaders.jsonlog.lines import JsonLosses, flatten
from afterrun.loaders.limits import LENIENT_JSON
from afterrun.loaders.registry import HEAD_BYTES
from afterrun.loaders.tables.cells import is_nothing, number
from afterrun.loaders.tables.textblocks import decode_head, split_lines

_PAIR = re.compile(
    r'"((?:[^"\\]|\\.)*)"\s*:\s*(?:("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*|-?Infinity|NaN|true|false)(?=\s*[,}\]]))'
)


@dataclass(frozen=True, slots=True)
class Peek:
    """The first rows. ``numbers`` and ``words``: flattened names with the first value of each.

    ``rows`` whole objects were seen, and ``cut`` says that there was more than was looked at.
    """

    numbers: Mapping[str, float]
    words: Mapping[str, str]
    rows: int
    cut: bool
    containers: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All flattened names."""
        return frozenset(self.numbers) | frozenset(self.words)


@lru_cache(maxsize=16)
def peek_rows(head: bytes) -> Peek | None:
    """The first rows of JSON lines, None where the file is none: most lines must be objects.

    Reads nothing else, never raises. Of a first line longer than the head what can be seen is told.
    """
    text = decode_head(head).strip("\0").lstrip()
    if not text.startswith("{"):
        return None
    cut = len(head) >= HEAD_BYTES
    lines = [line.strip("\0 \t") for line in split_lines(text)]
    whole = [line for line in (lines[:-1] if cut else lines) if line]
    rows = [row for row in map(_row, whole) if row is not None]
    if not whole:
        return _visible(lines[0])
    if len(rows) * 2 < len(whole) or not any(rows):
        return None
    numbers: dict[str, float] = {}
    words: dict[str, str] = {}
    containers: set[str] = set()
    for row in rows:
        containers |= {k for k, v in row.items() if isinstance(v, (dict, list))}
        for name, value in flatten("", row, 0, JsonLosses()):
            _put(name, value, numbers, words)
    return Peek(numbers, words, len(rows), cut, frozenset(containers))


def _row(line: str) -> dict[str, object] | None:
    try:
        value = LENIENT_JSON.decode(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _visible(line: str) -> Peek | None:
    """Scalars of an object whose end is out of sight; names inside of others lose what they stand in."""
    numbers: dict[str, float] = {}
    words: dict[str, str] = {}
    for name, text, other in _PAIR.findall(line):
        _put(name, text[1:-1] if text else _lenient(other), numbers, words)
    return Peek(numbers, words, 0, cut=True) if numbers else None


def _lenient(text: str) -> float:
    try:
        return float(LENIENT_JSON.decode(text))
    except (ValueError, TypeError):
        return float("nan")


def _put(name: str, value: float | str, numbers: dict[str, float], words: dict[str, str]) -> None:
    if isinstance(value, str):
        read = number(value.strip())
        if read is None:
            if not is_nothing(value):
                words.setdefault(name, value)
            return
        value = read
    numbers.setdefault(name, value)
