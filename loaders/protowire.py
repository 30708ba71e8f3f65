"""Protobuf wire format, read without schemas and without copies.

A message is a run of (field number, wire type, payload). That is all a log reader needs: it knows the
numbers of the fields it wants and skips the others, however big. Source: protobuf encoding guide.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a protobuf message."""


class Field(NamedTuple):
    """One field: its payload lies at ``view[at:end]``; ``value`` is the number of a varint, else 0."""

    number: int
    wire: int
    at: int
    end: int
    value: int


def varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """The unsigned number at ``at`` and the place after it."""
    number = shift = 0
    while at < end and shift < 70:
        byte = view[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise WireError("a varint does not end")


def signed(number: int) -> int:
    """An int64 field's number: negatives are written as two's complement of 64 bits."""
    return number - (1 << 64) if number >> 63 else number


def fields(view: memoryview, at: int, end: int) -> Iterator[Field]:
    """The fields of the message ``view[at:end]`` in order; raises ``WireError`` where it breaks off."""
    while at < end:
        key = view[at]
        if key < 0x80:
            at += 1
        else:
            key, at = varint(view, at, end)
        number, wire = key >> 3, key & 7
        value, start = 0, at
        if wire == BYTES:
            length, start = varint(view, at, end)
            at = start + length
        elif wire == VARINT:
            value, at = varint(view, at, end)
        elif wire == FIXED32:
            at += 4
        elif wire == FIXED64:
            at += 8
        else:
            raise WireError(f"wire type {wire} is not in use")
        if at > end or number == 0:
            raise WireError(f"field {number} runs past the end of its message")
        yield Field(number, wire, start, at, value)


def float64(view: memoryview, at: int) -> float:
    """The double at ``at``."""
    number: float = struct.unpack_from("<d", view, at)[0]
    return number


def float32(view: memoryview, at: int) -> float:
    """The float at ``at``, widened."""
    number: float = struct.unpack_from("<f", view, at)[0]
    return number


def text(view: memoryview, at: int, end: int) -> str:
    """The string at ``view[at:end]``; what is not UTF-8 becomes U+FFFD."""
    return bytes(view[at:end]).decode("utf-8", "replace")
