"""What a value that W&B wrote as JSON is: a number, a tree of numbers, a histogram, or something to name and skip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from afterrun.loaders.limits import LENIENT_JSON, MAX_JSON_DEPTH
from afterrun.loaders.tables.cells import is_nothing, number

INTERNAL = "_wandb"
"""The key under which W&B keeps its own affairs, in configuration and summary."""

_NAMED = 4


def decoded(raw: bytes) -> object:
    """The JSON value, bare NaN and Infinity allowed; raises ``ValueError`` where it is none."""
    try:
        return LENIENT_JSON.decode(raw.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def number_of(value: object) -> float | None:
    """The number that a value is or spells (``"NaN"``, ``"Infinity"``)."""
    if isinstance(value, (int, float)):
        return float(value)
    return number(value.strip()) if isinstance(value, str) else None


def media_type(value: object) -> str | None:
    """The type of a value that stands for a file or a table, None where it is plain data."""
    kind = value.get("_type") if isinstance(value, Mapping) else None
    return kind if isinstance(kind, str) else None


def histogram(value: Mapping[str, object]) -> tuple[list[float], list[float]] | None:
    """(edges, counts) of a W&B histogram, one edge more than counts; None where it is none."""
    counts, edges, packed = (value.get(k) for k in ("values", "bins", "packedBins"))
    if not isinstance(counts, list):
        return None
    if isinstance(packed, Mapping):
        low, width, n = (number_of(packed.get(k)) for k in ("min", "size", "count"))
        if low is None or width is None or n != len(counts):
            return None
        edges = [low + i * width for i in range(len(counts) + 1)]
    if not isinstance(edges, list) or len(edges) != len(counts) + 1:
        return None
    read = [number_of(x) for x in edges], [number_of(x) for x in counts]
    limits, amounts = ([x for x in part if x is not None] for part in read)
    if len(limits) != len(edges) or len(amounts) != len(counts) or any(b < a for a, b in pairwise(limits)):
        return None
    return limits, amounts


@dataclass(slots=True)
class Skipped:
    """What was named and left out, by key."""

    media: dict[str, Counter[str]] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, key: str, value: object) -> None:
        """Book one value that is no number; nothing recorded is nothing left out."""
        kind = media_type(value)
        if kind is not None:
            self.media.setdefault(kind, Counter())[key] += 1
        elif value is not None and not (isinstance(value, str) and is_nothing(value)):
            self.words[key] += 1

    def notes(self) -> Iterator[str]:
        """One sentence a kind."""
        for kind, keys in sorted(self.media.items()):
            yield f"{_values(keys)} of type {kind} skipped: {_named(keys)}"
        if self.words:
            yield f"{_values(self.words)} without a number skipped: {_named(self.words)}"


def _values(keys: Counter[str]) -> str:
    return f"{keys.total():,} value{'s' if keys.total() > 1 else ''}"


def _named(keys: Counter[str]) -> str:
    names = list(keys)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def leaves(key: str, value: object, depth: int = 0) -> Iterator[tuple[str, object]]:
    """The plain values in a tree, with dotted keys; media stay whole."""
    if isinstance(value, Mapping) and media_type(value) is None and depth < MAX_JSON_DEPTH:
        for name, inner in value.items():
            yield from leaves(f"{key}.{name}", inner, depth + 1)
    else:
        yield key, value
