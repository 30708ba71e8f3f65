"""Damages JSON of traces on purpose, and knows which objects stay whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """A file as bytes, and where its objects lie."""

    data: bytes
    extents: Sequence[tuple[int, int]]

    def outside(self, start: int, stop: int) -> frozenset[int]:
        """Numbers of objects that share no byte with ``start:stop``."""
        return frozenset(i for i, (a, b) in enumerate(self.extents) if b <= start or a >= stop)


def text_of(objects: Sequence[bytes], head: bytes, between: bytes, tail: bytes) -> Text:
    """Objects between a head and a tail."""
    extents, at = [], len(head)
    for item in objects:
        extents.append((at, at + len(item)))
        at += len(item) + len(between)
    return Text(head + between.join(objects) + tail, extents)


def flip(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """One bit anywhere."""
    data = bytearray(text.data)
    at = dice.randrange(len(data))
    data[at] ^= 1 << dice.randrange(8)
    return bytes(data), text.outside(at, at + 1)


def overwrite(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """A run of other bytes."""
    at = dice.randrange(len(text.data))
    foreign = dice.randbytes(dice.randrange(1, 300))[: len(text.data) - at]
    stop = at + len(foreign)
    return text.data[:at] + foreign + text.data[stop:], text.outside(at, stop)


def zeros(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """A block that never reached the disk."""
    at, size = dice.randrange(len(text.data)), dice.randrange(1, 900)
    stop = min(at + size, len(text.data))
    return text.data[:at] + bytes(stop - at) + text.data[stop:], text.outside(at, stop)


def cut(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """The end is missing."""
    at = dice.randrange(len(text.data))
    return text.data[:at], frozenset(i for i, (_, b) in enumerate(text.extents) if b <= at)


def delete(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """A run of bytes is missing."""
    at, size = dice.randrange(len(text.data)), dice.randrange(1, 500)
    return text.data[:at] + text.data[at + size :], text.outside(at, at + size)


def double(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """A block stands twice, the copy anywhere."""
    start, size, at = dice.randrange(len(text.data)), dice.randrange(1, 800), dice.randrange(len(text.data))
    data = text.data[:at] + text.data[start : start + size] + text.data[at:]
    return data, frozenset(i for i, (a, b) in enumerate(text.extents) if b <= at or a >= at)


def insert(text: Text, dice: random.Random) -> tuple[bytes, frozenset[int]]:
    """Signs that mean something in JSON, in between."""
    at = dice.randrange(len(text.data))
    foreign = bytes(dice.choices(b'"\\{}[],:\n u', k=dice.randrange(1, 9)))
    data = text.data[:at] + foreign + text.data[at:]
    return data, frozenset(i for i, (a, b) in enumerate(text.extents) if b <= at or a >= at)


Damage = Callable[[Text, random.Random], tuple[bytes, frozenset[int]]]

DAMAGES: tuple[Damage, ...] = (flip, overwrite, zeros, cut, delete, double, insert)
