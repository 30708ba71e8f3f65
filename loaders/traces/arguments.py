"""Values inside events: only the names that are asked for, each for itself where one has a wrong type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
import polars as pl
from msgspec import Raw

from afterrun.loaders.traces.events import ERRORS

_LAST_NUMBER = re.compile(r"(\d{1,18})\s*$")

A = TypeVar("A", bound=msgspec.Struct)


def decoded(kind: type[A], raws: Sequence[Raw]) -> list[A]:
    """One ``kind`` for each raw value; what is missing or of another type stays null."""
    text = b"[" + b",".join(raws) + b"]"
    try:
        return _decoder(kind).decode(text)  # type: ignore[no-any-return]  # list of the kind asked for
    except ERRORS:
        return [_loosely(kind, raw) for raw in raws]


@cache
def _decoder(kind: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[kind], strict=False)  # type: ignore[valid-type]  # a type at run time


def _loosely(kind: type[A], raw: Raw) -> A:
    values: dict[str, Any] = {}
    try:
        found = msgspec.json.decode(raw, type=dict[str, Raw])
    except ERRORS:
        found = {}
    for entry in msgspec.structs.fields(kind):
        try:
            values[entry.name] = msgspec.json.decode(found[entry.encode_name], type=entry.type, strict=False)
        except (KeyError, *ERRORS):
            continue
    return kind(**values)


def whole_numbers(values: Sequence[object]) -> pl.Series:
    """Int64 of identifiers: numbers, or texts that end in one (``stream 7``); null for anything else."""
    try:
        return pl.Series(values, dtype=pl.Int64, strict=True)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series([_whole(value) for value in values], dtype=pl.Int64)


_MOST = 2**63


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        found = _LAST_NUMBER.search(value)
        return int(found[1]) if found else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _MOST else None
    return value if isinstance(value, int) and -_MOST <= value < _MOST else None
