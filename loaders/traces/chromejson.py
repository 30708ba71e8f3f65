"""The text of a Chrome trace file in pieces that hold whole events, and what stands around them.

The events are one array: the value of ``traceEvents``, or the whole file. It is cut where one event ends and
the next begins, which a pattern finds without parsing; a wrong cut cannot go unseen, for neither side of it is
JSON then. A file that breaks off, or whose head is damaged, gives the events it holds.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from afterrun.loaders.limits import MIB

PIECE_BYTES = 2 * MIB
"""Size of a block of text; peak memory is some ten times this."""

MAX_EVENT_BYTES = 64 * MIB
"""Text without any boundary between events that is held before it is given up; also the longest head."""

_KEYS = rb'"(?:ph|name|cat|pid|tid|ts|dur|id|bp|s|args)"\s*:'
BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*" + _KEYS + rb")")
"""Between two events: the brace that ends one, the comma, up to the brace of the next."""

_FIRST = re.compile(rb"\{\s*" + _KEYS)
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_END = re.compile(rb'(?:\A|\})\s*\](?=\s*(?:,\s*"|\}|\Z))')
_WINDOWS = (MIB // 16, MIB)
_NUMBER = rb'"%s"\s*:\s*(-?\d{1,19})(?=[,}\s])'


class EventText:
    """One pass over the blocks of a file. ``head`` and ``tail`` are complete once ``pieces`` has run to its end.

    ``closed`` says that the array of events ended as it should, ``whole`` that the text behind it did, too;
    ``lost`` counts stretches in which no event could be found.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._bare = False
        self.head = b""
        self.tail = b""
        self.closed = False
        self.whole = False
        self.lost = 0

    def pieces(self) -> Iterator[bytes]:
        """Events as text, divided by commas, without the brackets around them."""
        buffer = self._opened()
        for block in self._blocks:
            buffer += block
            cut = _last_boundary(buffer)
            if cut is not None:
                yield buffer[: cut.start() + 1]
                buffer = buffer[cut.end() :]
            elif len(buffer) > MAX_EVENT_BYTES:
                self.lost += 1
                buffer = b""
        last = self._without_tail(buffer).strip().removesuffix(b",")
        if last:
            yield last

    def surroundings(self) -> dict[str, Any]:
        """The values beside the array of events; of a damaged or cut file those that can be told."""
        if self._bare:
            return {}
        for text in (self.head + b"[]" + (self.tail or b"}"), self.head + b"[]}"):
            try:
                value = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
        found: dict[str, Any] = {}
        for key in (b"baseTimeNanoseconds", b"rank", b"world_size"):
            match = re.search(_NUMBER % key, self.tail) or re.search(_NUMBER % key, self.head)
            if match:
                place = found if key == b"baseTimeNanoseconds" else found.setdefault("distributedInfo", {})
                place[key.decode()] = int(match[1])
        return found

    def _opened(self) -> bytes:
        """The text behind the bracket that opens the array; what stands before it becomes the head."""
        buffer = b""
        for block in self._blocks:
            buffer += block
            start = _ARRAY.search(buffer)
            if start:
                self.head = buffer[: start.end() - 1].removeprefix(b"\xef\xbb\xbf")
                return buffer[start.end() :]
            if buffer.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
                self._bare = True
                return buffer[buffer.index(b"[") + 1 :]
            if len(buffer) > MAX_EVENT_BYTES:
                break
        first = _FIRST.search(buffer)
        if first is None:
            self.lost += bool(buffer.strip())
            return b""
        self.head = buffer[: first.start()]
        return buffer[first.start() :]

    def _without_tail(self, rest: bytes) -> bytes:
        """The last events; where the array ends in ``rest``, what follows becomes the tail."""
        ends = list(_END.finditer(rest))
        for end in ends:
            tail = rest[end.end() :]
            if self._is_tail(tail):
                self.tail, self.closed, self.whole = tail, True, True
                return rest[: end.end()].rstrip()[:-1]
        last_event = max((m.start() for m in _FIRST.finditer(rest)), default=-1)
        for end in ends:
            if end.start() > last_event and not self._bare:
                self.tail, self.closed = rest[end.end() :], True
                return rest[: end.end()].rstrip()[:-1]
        return rest

    def _is_tail(self, tail: bytes) -> bool:
        if self._bare:
            return not tail.strip()
        try:
            msgspec.json.decode(b'{"":0' + tail)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True


def _last_boundary(buffer: bytes) -> re.Match[bytes] | None:
    """The last place between two events; the end is looked at first, for it is nearly always there."""
    for window in (*_WINDOWS, len(buffer)):
        found = deque(BOUNDARY.finditer(buffer, max(0, len(buffer) - window)), maxlen=1)
        if found:
            return found[0]
    return None
