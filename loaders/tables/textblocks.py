"""A text file of any common encoding as blocks of whole lines, in bounded memory.

Blocks are UTF-8 bytes (bytes that are not UTF-8 stay as they are, see ``decode``), so that a plain block
can be handed to a fast parser undecoded. Line ends are LF, CR LF, CR, or CR CR LF (text mode twice), also
mixed in one file; a block never ends inside a line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from afterrun.loaders.limits import MAX_LINE_BYTES

BLOCK_BYTES = 2 * 2**20
"""Size of one block: large enough for a fast parser, small enough that its rows as long form stay small."""

_LF = 10
_PIECE_BYTES = 2**17  # what the processor's cache takes
_LARGEST_FREED_BYTES = 28 * 2**20  # glibc's threshold follows up to 32 MiB
_LINE_END = re.compile(r"\r*\n|\r")
_LINE_END_BYTES = re.compile(rb"\r*\n|\r")
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Whole lines. ``first_line`` counts from 1, 0: not counted; ``cut``: the last line of the file has no line end."""

    data: bytes
    first_line: int
    cut: bool = False
    too_long: int = 0
    """Lines over ``MAX_LINE_BYTES`` given up just before this block."""


def encoding_of(head: bytes) -> str:
    """``utf-8``, ``utf-8-sig``, ``utf-16-le`` or ``utf-16-be`` from the first bytes of a file.

    UTF-16 without its mark is known by zeros in every second byte. Anything else is read as UTF-8 with
    Latin-1 for the bytes that are not.
    """
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    for mark, name in _UTF16.items():
        if head.startswith(mark):
            return name
    sample = head[:256]
    if len(sample) >= 8:
        half = len(sample) // 2
        if sample[1::2].count(0) > 0.9 * half and sample[0::2].count(0) == 0:
            return "utf-16-le"
        if sample[0::2].count(0) > 0.9 * half and sample[1::2].count(0) == 0:
            return "utf-16-be"
    return "utf-8"


def _latin1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("afterrun-latin1", _latin1)


def decode(data: bytes) -> tuple[str, bool]:
    """Text of a block, and whether some bytes were not UTF-8 and were read as Latin-1."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("utf-8", "afterrun-latin1"), True


@lru_cache(maxsize=4)
def decode_head(head: bytes) -> str:
    """Text of the first bytes of a file, for sniffing; never raises. The last character may be cut.

    Remembered, because every text format asks for the same head. Bytes that are not UTF-8 are replaced:
    a sniffer judges the rest.
    """
    encoding = encoding_of(head)
    if encoding.startswith("utf-16"):
        return head.decode(encoding, "ignore").removeprefix("\ufeff")
    return head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def split_lines(text: str) -> list[str]:
    """Lines without their ends; the last one may be empty where the text ends with a line end."""
    if "\r" not in text:
        return text.split("\n")
    return _LINE_END.split(text)


@cache
def keep_memory() -> None:
    """Make the C library keep the memory of one block for the next.

    glibc gives freed blocks back to the system and takes them again page by page, which costs a third of the time;
    it stops doing so for sizes up to that of the largest one ever freed (mallopt(3), M_MMAP_THRESHOLD). The
    array is never touched, so it takes no memory. Other C libraries are not affected.
    """
    np.empty(_LARGEST_FREED_BYTES, np.uint8)


def _utf8_chunks(path: Path, block_bytes: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        chunk = file.read(block_bytes)
        encoding = encoding_of(chunk)
        wide = codecs.getincrementaldecoder(encoding)("replace") if encoding.startswith("utf-16") else None
        chunk = chunk.removeprefix(codecs.BOM_UTF8)
        first = True
        while chunk:
            if wide is not None:
                text = wide.decode(chunk)
                chunk = (
                    text.removeprefix("\ufeff").encode("utf-8", "replace")
                    if first
                    else text.encode("utf-8", "replace")
                )
            first = False
            yield chunk
            chunk = file.read(block_bytes)


def _last_end(data: bytes) -> int:
    """Index after the last sure line end, 0 where there is none; CRs at the end may belong to a LF to come."""
    return data.rfind(b"\n") + 1 or data.rstrip(b"\r").rfind(b"\r") + 1


def text_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[TextBlock]:
    """Stream a file as blocks of whole lines. Raises ``OSError`` where it cannot be opened or read.

    A line over ``MAX_LINE_BYTES`` is given up to its end; the next block says so in ``too_long``.
    """
    line = 1
    for block in uncounted_blocks(path, block_bytes):
        line += block.too_long
        yield replace(block, first_line=line)
        line += count_lines(block.data)


def uncounted_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[TextBlock]:
    """As ``text_blocks``, without the time to count lines: ``first_line`` is 0."""
    keep_memory()
    rest, lost, skipping = b"", 0, False
    for chunk in _utf8_chunks(path, block_bytes):
        data = chunk
        if skipping:
            end = _LINE_END_BYTES.search(data)
            if end is None:
                continue
            data, skipping = data[end.end() :], False
        cut = _last_end(data)
        if rest and not cut:  # a CR at the end of the rest may be a line end after all
            data, rest = rest + data, b""
            cut = _last_end(data)
        whole, rest = b"".join((rest, memoryview(data)[:cut])) if cut else b"", data[cut:]
        if whole:
            yield TextBlock(whole, 0, too_long=lost)
            lost = 0
        if len(rest) > MAX_LINE_BYTES:
            rest, lost, skipping = b"", lost + 1, True
    if rest or lost:
        yield TextBlock(rest, 0, cut=bool(rest) and not rest.endswith(b"\r"), too_long=lost)


def skip_lines(block: TextBlock, count: int) -> TextBlock:
    """The block without its first ``count`` lines."""
    at = 0
    for _ in range(count):
        end = _LINE_END_BYTES.search(block.data, at)
        at = len(block.data) if end is None else end.end()
    return TextBlock(block.data[at:], block.first_line + count, block.cut, block.too_long)


def count_lines(data: bytes) -> int:
    """Number of line ends in a block."""
    if b"\r" not in data:
        codes = np.frombuffer(data, np.uint8)
        pieces = (codes[i : i + _PIECE_BYTES] for i in range(0, len(codes), _PIECE_BYTES))
        return sum(int(np.count_nonzero(piece == _LF)) for piece in pieces)
    return sum(1 for _ in _LINE_END_BYTES.finditer(data))
