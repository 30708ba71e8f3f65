"""CRC-32C of many short byte strings at once, and the mask event files put on it.

A CRC is linear: what a byte adds depends on its value and its distance from the end alone. So the bytes at
one distance, of all records, take one table look-up together. Source of polynomial and mask:
tensorflow/core/lib/hash/crc32c.h.
"""

from __future__ import annotations

from functools import cache

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.tfwide import Bytes, Places, load

Crcs = NDArray[np.uint32]

SHORT_BYTES = 96
"""Longer strings are left to google-crc32c one by one, whose cost is then in the bytes, not in the call."""

_FEW = 256
_BLOCK = 2048
"""Strings taken together: their bytes stay in the second-level cache."""

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
    effects, empty = _tables()
    crc: Crcs = effects[7][lengths & 0xFF] ^ empty[8]
    for i in range(1, (int(lengths.max(initial=0)).bit_length() + 7) // 8):
        crc ^= effects[7 - i][(lengths >> 8 * i) & 0xFF]
    return crc


def of_strings(data: Bytes, starts: Places, ends: Places) -> Crcs:
    """CRC of each ``data[starts[i]:ends[i]]``. ``data`` has ``SHORT_BYTES`` to spare at its front."""
    crc = np.empty(starts.size, np.uint32)
    short = ends - starts <= SHORT_BYTES
    if np.count_nonzero(short) < _FEW:
        short[:] = False
    for i in np.flatnonzero(~short).tolist():
        crc[i] = google_crc32c.value(data[starts[i] : ends[i]].tobytes())
    together = np.flatnonzero(short)
    for at in range(0, together.size, _BLOCK):
        block = together[at : at + _BLOCK]
        crc[block] = _of_short(data, ends[block], (ends - starts)[block])
    return crc


def _of_short(data: Bytes, ends: Places, sizes: Places) -> Crcs:
    effects, empty = _tables()
    longest, shortest = int(sizes.max(initial=0)), int(sizes.min(initial=0))
    columns = np.ascontiguousarray(load(data, ends - longest, longest).reshape(ends.size, longest).T)
    crc: Crcs = empty[sizes]
    for distance in range(longest):
        byte = columns[longest - 1 - distance]
        if distance >= shortest:
            byte = byte * (sizes > distance)
        crc ^= effects[distance].take(byte)
    return crc


@cache
def _tables() -> tuple[Crcs, Crcs]:
    """``[distance, byte]``: what a byte adds to the CRC; and the CRC of as many zero bytes as the index."""
    effects = np.empty((SHORT_BYTES, 256), np.uint32)
    effects[0] = np.arange(256)
    for _ in range(8):
        effects[0] = effects[0] >> 1 ^ (effects[0] & 1) * np.uint32(_POLYNOMIAL)
    for distance in range(1, SHORT_BYTES):
        before = effects[distance - 1]
        effects[distance] = before >> 8 ^ effects[0][before & 0xFF]
    return effects, np.array([google_crc32c.value(bytes(n)) for n in range(SHORT_BYTES + 1)], np.uint32)
