"""Unaligned loads, varints and ragged ranges, many at a time: the vocabulary of the fast event reader."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Words = NDArray[np.uint64]

_NO_END = np.uint64(0x80 << 56)


def load(data: Bytes, places: Places, width: int) -> Bytes:
    """The ``width`` bytes from each place on, end to end.

    One wide load copies as fast as one of a single byte, so callers ask once for all they need.
    """
    if width == 0:
        return np.empty(0, np.uint8)
    wide = np.ndarray((data.size - width + 1,), f"V{width}", data.data, strides=(1,))
    return wide[places].view(np.uint8)


def words(data: Bytes, places: Places, count: int) -> Words:
    """``count`` little-endian words from each place on, as ``[place, word]``."""
    found: Words = load(data, places, 8 * count).view("<u8")
    return found.reshape(places.size, count)


def varints(word: Words) -> tuple[Words, Places, NDArray[np.bool_]]:
    """Key and varint of a field that begins a word: the number, the bytes it takes, whether it ends in time.

    Varints of up to seven bytes (numbers below 2**49) are taken apart by masks and shifts; the key is the
    first byte and not looked at.
    """
    x = word >> np.uint64(8) | _NO_END
    last = ~x & np.uint64(0x8080_8080_8080_8080)
    last &= np.uint64(0) - last
    keep = last | (last - np.uint64(1))
    length = (np.bitwise_count(keep) >> np.uint8(3)).astype(np.int64)
    x &= keep & np.uint64(0x7F7F_7F7F_7F7F_7F7F)
    x = x & np.uint64(0x007F_007F_007F_007F) | (x & np.uint64(0x7F00_7F00_7F00_7F00)) >> np.uint64(1)
    x = x & np.uint64(0x0000_3FFF_0000_3FFF) | (x & np.uint64(0x3FFF_0000_3FFF_0000)) >> np.uint64(2)
    x = x & np.uint64(0x0000_0000_0FFF_FFFF) | (x & np.uint64(0x0FFF_FFFF_0000_0000)) >> np.uint64(4)
    return x, length, last != 0


def ranges(first: Places, sizes: Places) -> Places:
    """``first[0], first[0] + 1, ...`` for ``sizes[0]`` places, then the same for the next, end to end."""
    ends = np.cumsum(sizes)
    places: Places = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(first - (ends - sizes), sizes)
    return places
