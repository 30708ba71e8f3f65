"""Blocks of a text log as plain lines: one encoding, one line end, no control characters.

What a terminal would act on is resolved: colours and cursor codes are dropped; a carriage return or a run of
backspaces, as progress bars use to draw over themselves, ends a line. Lines keep the number that ``grep -n``
and editors give them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.textblocks import decode, uncounted_blocks

BLOCK_BYTES = 2**20
"""Small enough for the arrays of one block to stay in the processor's cache, large enough to be worth a block."""

_ANSI = re.compile(
    rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]{0,999}(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHM])"
)
_BACKSPACES = re.compile(rb"\x08+")
_RETURNS = re.compile(rb"\r+\n")
_ZEROS = re.compile(rb"[^\r\n]*\0[^\r\n]*")

_PLAIN = bytes(10 if b in b"\r\n" else 32 if b < 32 or b == 127 else b for b in range(256))
_LF, _CR = 10, 13


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines. ``data`` is UTF-8 and ends with LF; ``numbers`` are line numbers of the file, from 1.

    ``cut``: the last line of the file has no line end.
    """

    data: bytes
    numbers: NDArray[np.int64]
    cut: bool = False


@dataclass(slots=True)
class Damage:
    """What was given up while cleaning. ``zeros``: lines overwritten with zero bytes."""

    too_long: int = 0
    latin1: bool = False
    zeros: Places | None = None

    @property
    def lines(self) -> int:
        """Number of lines given up."""
        return self.too_long + (self.zeros.count if self.zeros else 0)

    def notes(self) -> Iterator[str]:
        """One sentence for each kind of loss."""
        if self.too_long:
            yield f"{self.too_long} lines too long to be a log line left out"
        if self.zeros:
            yield f"lines overwritten with zero bytes left out: {self.zeros}"
        if self.latin1:
            yield "bytes that are not UTF-8 were read as Latin-1"


def clean_blocks(path: Path, damage: Damage, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Stream a file. Raises ``OSError`` where it cannot be read; losses are booked in ``damage``."""
    line = 1
    for block in uncounted_blocks(path, block_bytes):
        damage.too_long += block.too_long
        if not block.data:
            continue
        found = clean(block.data, line, damage, cut=block.cut)
        line = int(found.numbers[-1]) + block.data.endswith(b"\n")
        yield found


def clean(data: bytes, first_line: int, damage: Damage, *, cut: bool = False) -> Block:
    """One block of whole lines of any line ends."""
    if b"\0" in data:
        data = _without_zeros(data, first_line, damage)
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    if b"\x08" in data:
        data = _BACKSPACES.sub(b"\r", data)
    if b"\r" in data:
        data = _RETURNS.sub(b"\n", data)
    if not data.isascii():
        text, latin1 = decode(data)
        if latin1:
            damage.latin1, data = True, text.encode("utf-8", "replace")
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"
    codes = np.frombuffer(data, np.uint8)
    if b"\r" in data:
        ends = codes[(codes == _LF) | (codes == _CR)]
        numbers = first_line + np.cumsum(ends == _LF) - (ends == _LF)
    else:
        numbers = np.arange(first_line, first_line + int(np.count_nonzero(codes == _LF)))
    return Block(data.translate(_PLAIN), numbers.astype(np.int64), cut)


def _without_zeros(data: bytes, first_line: int, damage: Damage) -> bytes:
    """Lines that hold zero bytes emptied: what stands beside the zeros may be half a number."""
    for hit in _ZEROS.finditer(data):
        if hit[0].strip(b"\0 \t"):
            damage.zeros = damage.zeros or Places()
            damage.zeros.add(first_line + data.count(b"\n", 0, hit.start()))
    return _ZEROS.sub(b"", data)
