"""The block log of a ``.wandb`` file: from bytes on disk to the payload of every record.

After a file header of 7 bytes (``:W&B``, a magic number, a version) the file is cut into blocks of 32 KiB. A
record is one piece or several: ``u32 checksum, u16 length, u8 type, payload``, little endian; no piece crosses
a block, and a block's last bytes stay zero where no piece fits. The checksum is plain CRC-32 (zlib) over the
type and the payload. Damage costs the rest of its block: a length that cannot be trusted tells nothing about
what follows, but the next block begins at a known place.

Source: wandb/sdk/internal/datastore.py; the layout is that of the LevelDB log.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from afterrun.loaders.limits import MIB

FILE_MAGIC = b":W&B"
FILE_HEADER = struct.pack("<4sHB", FILE_MAGIC, 0xBEE1, 0)
BLOCK_BYTES = 2**15
MAX_RECORD_BYTES = 64 * MIB
"""A record of many pieces is given up above this size: no history row is that big."""

_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_PIECE = struct.Struct("<IHB")
_SEEDS = tuple(zlib.crc32(bytes([kind])) for kind in range(_LAST + 1))
_READ_BLOCKS = 32


class BlockLog:
    """One pass over a file; the counts are complete once ``records`` is through.

    ``lost_bytes`` lie in damaged stretches, ``lost_tail_bytes`` of them behind the last good record;
    ``cut_bytes`` are those of a record that the end of the file cuts off, ``zero_bytes`` were never written.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.good_records = 0
        self.good_bytes = 0
        self.damaged_blocks = 0
        self.lost_bytes = 0
        self.lost_tail_bytes = 0
        self.cut_bytes = 0
        self.zero_bytes = 0
        self.oversize = 0
        self.false_header = False
        self._file = file
        self._parts: list[bytes] = []
        self._held = 0

    def records(self) -> Iterator[bytes]:
        """Payloads of all intact records, in order."""
        at = len(FILE_HEADER)
        while data := self._file.read(_READ_BLOCKS * BLOCK_BYTES):
            if at:
                self.false_header = data[:at] != FILE_HEADER
            for start in range(0, len(data), BLOCK_BYTES):
                yield from self._block(data[start : start + BLOCK_BYTES], at)
                at = 0
        if self._parts:
            self.cut_bytes += self._drop()

    def _block(self, block: bytes, at: int) -> Iterator[bytes]:
        end = len(block)
        while end - at >= _PIECE.size:
            checksum, length, kind = _PIECE.unpack_from(block, at)
            stop = at + _PIECE.size + length
            if stop > end and _FULL <= kind <= _LAST and stop <= BLOCK_BYTES and not _goes_on(block, at + 1):
                self.cut_bytes += end - at
                return
            payload = block[at + _PIECE.size : stop]
            if stop > end or not _FULL <= kind <= _LAST or zlib.crc32(payload, _SEEDS[kind]) != checksum:
                self._give_up(block, at)
                return
            yield from self._piece(kind, payload)
            at = stop
        if end < BLOCK_BYTES and any(block[at:]):
            self.cut_bytes += end - at

    def _piece(self, kind: int, payload: bytes) -> Iterator[bytes]:
        """The record that this piece completes, if it does."""
        if kind in (_FULL, _FIRST) and self._parts:
            self._lose(self._drop())
        if kind == _FULL:
            self._count(payload)
            yield payload
        elif kind == _FIRST:
            self._hold(payload)
        elif not self._parts:  # the beginning lies in a damaged block
            self._lose(len(payload) + _PIECE.size)
        elif self._held + len(payload) > MAX_RECORD_BYTES:
            self.oversize += 1
            self._drop()
        else:
            self._hold(payload)
            if kind == _LAST:
                whole = b"".join(self._parts)
                self._drop()
                self._count(whole)
                yield whole

    def _hold(self, payload: bytes) -> None:
        self._parts.append(payload)
        self._held += len(payload)

    def _drop(self) -> int:
        """Forget the pieces held; their size in the file."""
        size = self._held + _PIECE.size * len(self._parts)
        self._parts, self._held = [], 0
        return size

    def _count(self, payload: bytes) -> None:
        self.good_records += 1
        self.good_bytes += len(payload) + _PIECE.size
        self.lost_tail_bytes = 0

    def _lose(self, size: int) -> None:
        self.lost_bytes += size
        self.lost_tail_bytes += size

    def _give_up(self, block: bytes, at: int) -> None:
        """Skip to the end of the block, whose bytes from ``at`` on are zero or damaged."""
        if not any(block[at:]):
            self.zero_bytes += len(block) - at
            return
        self.damaged_blocks += 1
        self._lose(len(block) - at + self._drop())


def _goes_on(block: bytes, first: int) -> bool:
    """Whether an intact piece begins at ``first`` or later: what seems cut off was damaged."""
    for at in range(first, len(block) - _PIECE.size):
        if _FULL <= block[at + 6] <= _LAST:
            checksum, length, kind = _PIECE.unpack_from(block, at)
            stop = at + _PIECE.size + length
            if length and stop <= len(block):
                payload = block[at + _PIECE.size : stop]
                if zlib.crc32(payload, _SEEDS[kind]) == checksum:
                    return True
    return False
