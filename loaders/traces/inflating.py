"""Bytes of a file, plain or gzip, block by block; what can be had before damage is handed out.

A gzip is known by its magic number, never by its name. Reading stops, and says so, where the stream is damaged,
ends early, or grows beyond the limits of ``afterrun.loaders.limits``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

from isal import isal_zlib

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import MIB, check_inflation
from afterrun.loaders.registry import Source

GZIP_MAGIC = b"\x1f\x8b"

_WITH_HEADER = 31
"""Window bits that make zlib expect a gzip header."""

_READ_BYTES = MIB // 4
_STEP_BYTES = MIB // 4
"""Most bytes that come out at once, and so the most that damage behind them can take along."""

_HEAD_BYTES = 65_536


@lru_cache(maxsize=16)
def opening(head: bytes) -> bytes:
    """The first bytes of the content, inflated where ``head`` begins a gzip; for sniffers, never raises."""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(_WITH_HEADER).decompress(head, _HEAD_BYTES)
    except zlib.error:
        return b""


class Blocks:
    """The content of one source in blocks of about ``block_bytes``. ``trouble`` says why it ended early, if it did."""

    def __init__(self, source: Source, block_bytes: int) -> None:
        self._source = source
        self._block_bytes = block_bytes
        self.trouble = ""

    def __iter__(self) -> Iterator[bytes]:
        with self._source.path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            if packed:
                yield from self._gathered(self._inflated(file))
                return
            while block := file.read(self._block_bytes):
                yield block

    def _gathered(self, steps: Iterator[bytes]) -> Iterator[bytes]:
        parts: list[bytes] = []
        held = 0
        for step in steps:
            parts.append(step)
            held += len(step)
            if held >= self._block_bytes:
                yield b"".join(parts)
                parts, held = [], 0
        if parts:
            yield b"".join(parts)

    def _inflated(self, file: BinaryIO) -> Iterator[bytes]:
        """What comes out, at most ``_STEP_BYTES`` at once; members that follow one another are one content."""
        member = isal_zlib.decompressobj(_WITH_HEADER)
        data, total, full, within = b"", 0, False, False
        while True:
            if not data and not full:
                data = file.read(_READ_BYTES)
                if not data:
                    break
            try:
                out = member.decompress(data, _STEP_BYTES)
                total += len(out)
                check_inflation(self._source.name, self._source.size_bytes, total)
            except isal_zlib.error:  # type: ignore[misc]  # its stub takes the class for an instance
                self.trouble = "the gzip is damaged and was read up to there"
                return
            except LimitError as error:
                self.trouble = str(error)
                return
            if out:
                yield out
            within, full, data = True, len(out) == _STEP_BYTES, member.unconsumed_tail
            if member.eof:
                within, full, data = False, False, member.unused_data.lstrip(b"\0")
                member = isal_zlib.decompressobj(_WITH_HEADER)
        if within:
            self.trouble = "the gzip ends early"
