"""CRC-32C of many short byte strings at once, and the mask event files put on it.

A CRC is linear: two strings of one length differ in their CRC by what their differences add, and what a
byte adds depends on its value and its distance from the end alone. Records of one length are much alike,
so few of their bytes need a look at all. Source of polynomial and mask: tensorflow/core/lib/hash/crc32c.h.
"""

from __future__ import annotations

from functools import cache

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.events.wide import Bytes, Places, words

Crcs = NDArray[np.uint32]

SHORT_BYTES = 96
"""Longer strings are left to google-crc32c one by one, whose cost is then in the bytes, not in the call."""

_FEW = 32
"""Fewer strings of one length are left to google-crc32c as well."""

_BLOCK = 1 << 13
"""Strings taken together: their words stay in the second-level cache."""

_POLYNOMIAL = 0x82F6_3B78
_MASK = 0xA282_EAD8


def masked(crc: Crcs) -> Crcs:
    """CRCs as they are stored: rotated by 15 bits and shifted by a constant."""
    return (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_MASK)


def as_stored(crc: int) -> bytes:
    """One CRC as it stands in the file: masked, little endian."""
    return (((crc >> 15 | crc << 17) + _MASK) & 0xFFFF_FFFF).to_bytes(4, "little")


def has_crc(content: bytes, stored: bytes) -> bool:
    """Whether these four bytes are the CRC of the content as it is stored."""
    return as_stored(google_crc32c.value(content)) == stored


def of_lengths(lengths: Places) -> Crcs:
    """CRC of each length, written as eight bytes."""
    effects = _effects()
    crc: Crcs = effects[7][lengths & 0xFF] ^ np.uint32(google_crc32c.value(bytes(8)))
    for i in range(1, (int(lengths.max(initial=0)).bit_length() + 7) // 8):
        crc ^= effects[7 - i][(lengths >> 8 * i) & 0xFF]
    return crc


def of_strings(data: Bytes, starts: Places, ends: Places) -> Crcs:
    """CRC of each ``data[starts[i]:ends[i]]``. ``data`` has eight bytes to spare before the first."""
    crc = np.empty(starts.size, np.uint32)
    sizes = ends - starts
    counts = np.bincount(np.minimum(sizes, SHORT_BYTES + 1), minlength=SHORT_BYTES + 2)
    many = counts >= _FEW
    many[[0, SHORT_BYTES + 1]] = False
    for i in np.flatnonzero(~many[np.minimum(sizes, SHORT_BYTES + 1)]).tolist():
        crc[i] = google_crc32c.value(data[starts[i] : ends[i]].tobytes())
    for size in np.flatnonzero(many).tolist():
        alike = np.flatnonzero(sizes == size)
        for at in range(0, alike.size, _BLOCK):
            block = alike[at : at + _BLOCK]
            crc[block] = _of_alike(data, ends[block], size)
    return crc


def _of_alike(data: Bytes, ends: Places, size: int) -> Crcs:
    """CRC of strings of one length: that of the first, and what the bytes add in which others differ from it."""
    count = -(-size // 8)
    columns = np.ascontiguousarray(words(data, ends - 8 * count, count).T)
    columns ^= columns[:, :1].copy()
    places = np.flatnonzero(np.bitwise_or.reduce(columns, axis=1).view(np.uint8))
    places = places[places >= 8 * count - size]
    differences = columns.view(np.uint8).reshape(count, -1, 8)[places // 8, :, places % 8]
    added = _effects().take(differences + 256 * (8 * count - 1 - places)[:, None])
    crc: Crcs = np.bitwise_xor.reduce(added, axis=0)
    return crc ^ np.uint32(google_crc32c.value(data[ends[0] - size : ends[0]].tobytes()))


@cache
def _effects() -> Crcs:
    """``[distance, byte]``: what a byte that far from the end adds to a CRC."""
    effects = np.empty((SHORT_BYTES, 256), np.uint32)
    effects[0] = np.arange(256)
    for _ in range(8):
        effects[0] = effects[0] >> 1 ^ (effects[0] & 1) * np.uint32(_POLYNOMIAL)
    for distance in range(1, SHORT_BYTES):
        before = effects[distance - 1]
        effects[distance] = before >> 8 ^ effects[0][before & 0xFF]
    return effects
