"""Damages event files on purpose, and knows which records stay whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support import events


@dataclass(frozen=True)
class Damaged:
    """The bytes of a damaged file, and the numbers of the records that lie in it untouched."""

    kind: str
    data: bytes
    intact: frozenset[int]


Records = Sequence[bytes]
"""Whole records, frames included; record 0 is the version."""


def _limits(records: Records) -> list[tuple[int, int]]:
    limits, at = [], 0
    for record in records:
        limits.append((at, at + len(record)))
        at += len(record)
    return limits


def _outside(records: Records, start: int, stop: int) -> frozenset[int]:
    """Records that share no byte with ``start:stop``."""
    return frozenset(i for i, (a, b) in enumerate(_limits(records)) if b <= start or a >= stop)


def flip(records: Records, dice: random.Random) -> Damaged:
    """One bit anywhere."""
    data = bytearray(b"".join(records))
    at = dice.randrange(len(data))
    data[at] ^= 1 << dice.randrange(8)
    return Damaged("flip", bytes(data), _outside(records, at, at + 1))


def overwrite(records: Records, dice: random.Random) -> Damaged:
    """A run of other bytes."""
    data = bytearray(b"".join(records))
    at, size = dice.randrange(len(data)), dice.randrange(1, 60)
    size = min(size, len(data) - at)
    data[at : at + size] = bytes(byte ^ dice.randrange(1, 256) for byte in data[at : at + size])
    return Damaged("overwrite", bytes(data), _outside(records, at, at + size))


def zero(records: Records, dice: random.Random) -> Damaged:
    """A run of zeros, as from a block that never reached the disk."""
    data = bytearray(b"".join(records))
    at, size = dice.randrange(len(data)), dice.randrange(1, 600)
    size = min(size, len(data) - at)
    data[at : at + size] = bytes(size)
    return Damaged("zero", bytes(data), _outside(records, at, at + size))


def cut(records: Records, dice: random.Random) -> Damaged:
    """The end is missing."""
    data = b"".join(records)
    at = dice.randrange(1, len(data))
    return Damaged("cut", data[:at], _outside(records, at, len(data)))


def insert(records: Records, dice: random.Random) -> Damaged:
    """Foreign bytes in between; between two records they hurt neither."""
    data = b"".join(records)
    at = dice.randrange(len(data))
    intact = frozenset(i for i, (a, b) in enumerate(_limits(records)) if at <= a or at >= b)
    return Damaged("insert", data[:at] + dice.randbytes(dice.randrange(1, 40)) + data[at:], intact)


def delete(records: Records, dice: random.Random) -> Damaged:
    """A run of bytes is missing."""
    data = b"".join(records)
    at, size = dice.randrange(len(data)), dice.randrange(1, 100)
    return Damaged("delete", data[:at] + data[at + size :], _outside(records, at, at + size))


def false_length(records: Records, dice: random.Random) -> Damaged:
    """A record that claims another length, with the right checksum for the claim."""
    at = dice.randrange(len(records))
    true = len(records[at]) - 16
    bits = dice.choice([31, 32, 40, 48, 62, 63, 64])
    total = sum(map(len, records))
    claim = dice.choice(
        [true + 1, max(0, true - 1), true + dice.randrange(2, 400), (1 << bits) - 1, total // 2]
    )
    parts = [*records[:at], events.header(claim) + records[at][12:], *records[at + 1 :]]
    return Damaged("false length", b"".join(parts), frozenset(range(len(records))) - {at})


def swallow(records: Records, dice: random.Random) -> Damaged:
    """A record that claims exactly the next few as its own, with the right checksum for the claim."""
    at = dice.randrange(len(records) - 4)
    claim = sum(map(len, records[at : at + 4])) - 16
    parts = [*records[:at], events.header(claim) + records[at][12:], *records[at + 1 :]]
    return Damaged("swallow", b"".join(parts), frozenset(range(len(records))) - {at})


Kind = Callable[[Records, random.Random], Damaged]

KINDS: tuple[Kind, ...] = (
    flip,
    overwrite,
    zero,
    cut,
    insert,
    delete,
    false_length,
    swallow,
)
