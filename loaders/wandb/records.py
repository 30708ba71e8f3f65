"""The records of a ``.wandb`` file: which kind one is, and its items of key and value.

Payloads are protobuf messages ``Record`` with a running number and one field that says the kind. History,
summary, configuration and system metrics are lists of items: a key (``key``, or ``nested_key`` once for
each level) and a value as JSON text.

Source: wandb/proto/wandb_internal.proto.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from afterrun.loaders.protowire import BYTES, VARINT, Field, WireError, fields, text, varint
from afterrun.loaders.tables.cells import SECOND_NS

HISTORY, SUMMARY, OUTPUT, CONFIG, STATS, METRIC, OUTPUT_RAW = 2, 3, 4, 5, 7, 12, 13
RUN, EXIT, ENVIRONMENT = 17, 18, 26
_KINDS = frozenset({*range(2, 14), 17, 18, *range(20, 28), 100})

_KEY, _NESTED_KEY = 1, 2
_VALUE = 16
_VALUE_TAG = b"\x82\x01"  # the key of field 16 as bytes

_TYPE = b"\x12\x05_type"  # ``nested_key`` of the level that makes a tree a picture, a table, a histogram

Pair = tuple[bytes, bytes]
"""The undecoded key fields of an item, and its JSON text."""


class Record(NamedTuple):
    """Number of a record (0: not numbered), its kind, and where its message lies in the payload."""

    number: int
    kind: int
    at: int
    end: int


def record(payload: bytes) -> Record:
    """What a payload is; kind 0 where no field of a known kind is in it. Raises ``WireError``."""
    number = 0
    for field in fields(memoryview(payload), 0, len(payload)):
        if field.wire == BYTES and field.number in _KINDS:
            return Record(number, field.number, field.at, field.end)
        if field.number == 1 and field.wire == VARINT:
            number = field.value
    return Record(number, 0, 0, 0)


def items(data: bytes, at: int, end: int, number: int) -> tuple[list[Pair], list[Field]]:
    """The items in field ``number`` of the message ``data[at:end]``, and its other fields.

    Raises ``WireError`` where the message breaks off.
    """
    pairs: list[Pair] = []
    others: list[Field] = []
    tag = number << 3 | BYTES
    while at < end:
        if data[at] != tag:
            other = next(fields(memoryview(data), at, end))
            others.append(other)
            at = other.end
            continue
        size = data[at + 1] if at + 1 < end else 0
        start = at + 2
        if size >= 0x80:
            size, start = varint(memoryview(data), at + 1, end)
        at = start + size
        if at > end:
            raise WireError("an item runs past the end of its record")
        key, found, value = data[start:at].partition(_VALUE_TAG)
        if found and value and value[0] < 0x80 and value[0] == len(value) - 1:
            pairs.append((key, value[1:]))
        else:
            pairs.append(item(data[start:at]))
    return pairs, others


def item(data: bytes) -> Pair:
    """Key fields and value of one item of any layout; the value is empty where there is none."""
    keys, value = [], b""
    at = 0
    for field in fields(memoryview(data), 0, len(data)):
        if field.number == _VALUE and field.wire == BYTES:
            value = data[field.at : field.end]
        elif field.number in (_KEY, _NESTED_KEY):
            keys.append(data[at : field.end])
        at = field.end
    return b"".join(keys), value


def key_name(key: bytes) -> str:
    """The name that key fields spell; levels are joined by a point. Raises ``WireError``."""
    view = memoryview(key)
    found = [f for f in fields(view, 0, len(key)) if f.wire == BYTES]
    plain = [text(view, f.at, f.end) for f in found if f.number == _KEY]
    nested = [text(view, f.at, f.end) for f in found if f.number == _NESTED_KEY]
    return ".".join(nested) or "".join(plain[-1:])


def has_types(data: bytes, at: int, end: int) -> bool:
    """Whether a message may hold trees that ``rejoined`` makes whole; costs one search."""
    return data.find(_TYPE, at, end) >= 0


def rejoined(pairs: Sequence[Pair]) -> list[Pair]:
    """The items, with pictures, tables and histograms whole again.

    Newer clients write every leaf of a tree as an item of its own. What belongs to a tree with a ``_type`` says
    nothing alone. Raises ``WireError``.
    """
    heads = sorted({k[: -len(_TYPE)] for k, _ in pairs if k.endswith(_TYPE)} - {b""}, key=len)
    if not heads:
        return list(pairs)
    kept: list[Pair] = []
    trees: dict[bytes, list[bytes]] = {}
    for key, raw in pairs:
        head = next((h for h in heads if key.startswith(h) and len(key) > len(h)), None)
        if head is None:
            kept.append((key, raw))
        else:
            name = json.dumps(key_name(key[len(head) :])).encode()
            trees.setdefault(head, []).append(name + b":" + raw)
    return kept + [(head, b"{" + b",".join(members) + b"}") for head, members in trees.items()]


def timestamp_ns(data: bytes, at: int, end: int) -> int | None:
    """Nanoseconds since 1970 of a ``google.protobuf.Timestamp``; None for what is no int64 of them."""
    parts = {f.number: f.value for f in fields(memoryview(data), at, end)}
    ns = parts.get(1, 0) * SECOND_NS + parts.get(2, 0)
    return ns if 0 < ns < 2**63 else None
