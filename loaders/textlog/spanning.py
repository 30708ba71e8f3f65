"""Records that a trainer writes over several lines, put on one line each before anything is read.

A drawn table or a line of names above a line of numbers says nothing line by line. Grammars name such records
(``Grammar.spans``); the joined line has the number of the first one. A record that the end of a block breaks off
is kept back for the next block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from afterrun.loaders.textlog.clean import Block
from afterrun.loaders.textlog.grammar import Span, grammars

MAX_SPAN_BYTES = 64 * 1024
"""Size of a record begun at the end of a block from which it is not kept back."""

_LF = 10


def joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with each record of several lines on one line."""
    held: Block | None = None
    for each in blocks:
        block = each if held is None else _chained(held, each)
        found = _found(block.data, [s.whole for s in _spans() if s.probe in block.data])
        whole, held = _split(block, _begun_at(block.data, found))
        if whole.data:
            yield _on_one_line(whole, found)
    if held is not None:
        yield _on_one_line(held, _found(held.data, [s.left for s in _spans() if s.left is not None]))


@cache
def _spans() -> tuple[Span, ...]:
    return tuple(span for grammar in grammars() for span in grammar.spans)


def _found(data: bytes, patterns: Iterable[re.Pattern[bytes]]) -> list[tuple[int, int]]:
    """Where records begin and end."""
    return [m.span() for pattern in patterns for m in pattern.finditer(data)]


def _begun_at(data: bytes, found: Iterable[tuple[int, int]]) -> int | None:
    """The line in which a record begins that goes on beyond the end; ``found`` are those that do not."""
    tail = max([len(data) - MAX_SPAN_BYTES, 0, *(end for _, end in found)])
    begun = [s.begun.search(data, tail) for s in _spans() if data.find(s.opening, tail) >= 0]
    at = min((m.start() for m in begun if m is not None), default=None)
    return None if at is None else data.rfind(b"\n", 0, at) + 1


def _chained(first: Block, second: Block) -> Block:
    return Block(first.data + second.data, np.concatenate([first.numbers, second.numbers]), second.cut)


def _split(block: Block, at: int | None) -> tuple[Block, Block | None]:
    if at is None:
        return block, None
    lines = block.data.count(b"\n", 0, at)
    return (
        Block(block.data[:at], block.numbers[:lines]),
        Block(block.data[at:], block.numbers[lines:], block.cut),
    )


def _on_one_line(block: Block, found: Iterable[tuple[int, int]]) -> Block:
    """The block with some stretches of whole lines on one line each."""
    if not found:
        return block
    codes = np.frombuffer(block.data, np.uint8).copy()
    ends = np.flatnonzero(codes == _LF)
    kept = np.ones(len(ends), np.bool_)
    for begin, end in found:
        first, last = np.searchsorted(ends, [begin, end - 1])
        codes[ends[first:last]] = ord(" ")
        kept[first + 1 : last + 1] = False
    return Block(codes.tobytes(), block.numbers[kept], block.cut)
