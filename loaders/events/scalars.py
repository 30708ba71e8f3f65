"""Scalars of event files, many records at once.

Records that differ only in wall time, step, tag and number are decoded together. One of them is read the
slow way (``tfevent``); the bytes that may differ (its *holes*) follow from it, and every record that is
equal in all other bytes to another one already understood shares its layout. Grouping goes by a hash,
but each byte is then compared: a hash that collides costs a second round, never a wrong name.

Whatever does not fit (other field orders, huge or negative steps, odd tensors, damage) is handed back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.events import event as tfevent
from afterrun.loaders.events import tensor as tftensor
from afterrun.loaders.events.event import Event
from afterrun.loaders.events.record import Window
from afterrun.loaders.events.wide import Bytes, Places, Words, load, varints, words
from afterrun.loaders.protowire import WireError

_PREFIX_LIMITS = (32, 64, 128, 256)
"""Records are taken together whose bytes before the first number are at most this many."""

_SUFFIX_BYTES = 2048
"""Longest stretch from the first number of a record to its end; longer records go the slow way."""

_ROUND_RECORDS = 16
_ROUNDS = 32
"""A round on fewer records than this is slower than one at a time; so are very many rounds."""

_PRIME = np.uint64(0x9E37_79B9_7F4A_7C15)
_SLOT_BITS = 16
_HIGH_BYTES = np.array([0] + [(1 << 64) - (1 << 8 * (8 - n)) for n in range(1, 9)], np.uint64)
"""Mask of the n bytes of a word that lie last in the file."""


class Hole(NamedTuple):
    """A number: how many bytes before the end of its record it begins, and its layout."""

    back: int
    layout: str


@dataclass(slots=True)
class Book:
    """What a file has taught so far: tags by number, their plugins, layouts by their fixed bytes.

    Tags are kept apart by whether their numbers come as tensors, since only those need a plugin.
    """

    codes: dict[tuple[bytes, bool], int] = field(default_factory=dict)
    plugins: dict[bytes, bytes] = field(default_factory=dict)
    layouts: dict[tuple[tuple[Hole, ...], bytes, bytes], tuple[int, ...] | int] = field(default_factory=dict)

    def code(self, tag: bytes, *, is_tensor: bool) -> int:
        """The number of a tag, a new one if it is new."""
        return self.codes.setdefault((tag, is_tensor), len(self.codes))

    def learn(self, event: Event) -> None:
        """Remember the plugins an event names; writers name one only with the first value of a tag."""
        for value in event.values:
            if value.plugin is not None:
                self.plugins.setdefault(value.tag, value.plugin)


@dataclass(slots=True)
class Heads:
    """What every event begins with. ``body`` is the place behind wall time and step."""

    wall_s: NDArray[np.float64]
    step: NDArray[np.int64]
    body: Places
    regular: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Points:
    """Numbers in write order: the record they stand in, the code of their tag, the value."""

    record: Places
    code: NDArray[np.int32]
    value: NDArray[np.float64]


Leftover = tuple[int, Event | None]
"""A record that is not decoded yet, with its event where that was parsed already."""


def heads(window: Window) -> Heads:
    """Wall time and step of every record that begins with them, as nearly all do."""
    word = words(window.data, window.starts + 1, 2)
    tail = np.ascontiguousarray(word[:, 1])
    has_step = tail & np.uint64(0xFF) == 0x10
    step, length, ended = varints(tail)
    body = window.starts + 9 + (length + 1) * has_step
    regular = (window.data[window.starts] == 0x09) & (body < window.ends) & (~has_step | ended)
    return Heads(word[:, 0].copy().view("<f8"), (step * has_step).view(np.int64), body, regular)


def points(window: Window, head: Heads, book: Book, records: Places) -> tuple[list[Points], list[Leftover]]:
    """Decode those of these records that can be decoded together; the rest is handed back in write order."""
    view = window.data.data
    regular = head.regular[records]
    pending = records[regular]
    left: list[Leftover] = [(i, None) for i in records[~regular].tolist()]
    found: list[Points] = []
    while pending.size >= _ROUND_RECORDS and len(found) < _ROUNDS:
        seed = int(pending[0])
        event = _parsed(view, window, seed)
        holes = None if event is None else _holes(view, event, window, seed)
        if (
            event is not None
            and holes is not None
            and int(window.ends[seed]) - holes[0].back > int(head.body[seed])
        ):
            book.learn(event)
            taken, pending = _round(window, head, book, pending, holes)
            if taken.record.size:
                found.append(taken)
        if pending.size and pending[0] == seed:
            left.append((seed, event))
            pending = pending[1:]
    left += [(i, None) for i in pending.tolist()]
    return found, sorted(left, key=lambda item: item[0])


def _parsed(view: memoryview, window: Window, record: int) -> Event | None:
    try:
        return tfevent.parse(view, int(window.starts[record]), int(window.ends[record]))
    except WireError:
        return None


def _holes(view: memoryview, event: Event, window: Window, record: int) -> tuple[Hole, ...] | None:
    """Where the numbers of this event are, if each has a fixed width and nothing else is in it."""
    start, end = int(window.starts[record]), int(window.ends[record])
    usual = event.wall_at == start + 1 and event.step_at in (None, start + 10)
    if not usual or not event.values or event.session or event.blobs or event.is_version:
        return None
    holes = []
    for value in event.values:
        place: tuple[int, str] | None = None
        if value.kind == tfevent.SIMPLE:
            place = (value.at, "<f4")
        elif value.kind == tfevent.TENSOR:
            place = _tensor_place(view, value)
        if place is None:
            return None
        holes.append(Hole(end - place[0], place[1]))
    return tuple(holes) if holes[0].back <= _SUFFIX_BYTES else None


def _tensor_place(view: memoryview, value: tfevent.Value) -> tuple[int, str] | None:
    try:
        return tftensor.place(tftensor.parse(view, value.at, value.end))
    except WireError:
        return None


def _round(
    window: Window, head: Heads, book: Book, pending: Places, holes: tuple[Hole, ...]
) -> tuple[Points, Places]:
    """Decode those pending records that have exactly these holes; returns the others as well."""
    cut = window.ends[pending] - holes[0].back
    size = cut - head.body[pending]
    limit = next((x for x in _PREFIX_LIMITS if size[0] <= x), 0)
    candidates = np.flatnonzero((size > limit // 2 * (limit > _PREFIX_LIMITS[0])) & (size <= limit))
    if not candidates.size:
        return _NO_POINTS, pending
    record, cut, size = pending[candidates], cut[candidates], size[candidates]
    prefix = _prefix(window.data, cut, size)
    suffix = _suffix(window.data, cut, holes)
    example, same = _group(size, [*prefix, *suffix.T])
    examples = np.flatnonzero(example == np.arange(example.size))
    codes = np.full((example.size, len(holes)), -1, np.int32)
    for i in examples.tolist():
        body = int(cut[i] - size[i])
        key = holes, window.data[body : int(cut[i])].tobytes(), suffix[i].tobytes()
        codes[i] = _codes(window, book, int(record[i]), key)
    codes = codes[example]
    good = np.flatnonzero(same & (codes[:, 0] >= 0))
    value = np.column_stack(
        [_numbers(window.data, window.ends[record[good]] - h.back, h.layout) for h in holes]
    )
    taken = Points(np.repeat(record[good], len(holes)), codes[good].ravel(), value.ravel())
    rest = np.ones(pending.size, np.bool_)
    rest[candidates[good]] = False
    return taken, pending[rest]


def _codes(
    window: Window, book: Book, record: int, key: tuple[tuple[Hole, ...], bytes, bytes]
) -> tuple[int, ...] | int:
    """Codes of the tags of a record whose fixed bytes are ``key``, -1 if its holes are others."""
    codes = book.layouts.get(key)
    if codes is None:
        view = window.data.data
        event = _parsed(view, window, record)
        codes = -1
        if event is not None and _holes(view, event, window, record) == key[0]:
            book.learn(event)
            codes = tuple(book.code(v.tag, is_tensor=v.kind == tfevent.TENSOR) for v in event.values)
        book.layouts[key] = codes
    return codes


def _group(size: Places, columns: list[Words]) -> tuple[Places, NDArray[np.bool_]]:
    """For each record an example it may be equal to, and whether all its words are."""
    key = size.view(np.uint64) * _PRIME
    for word in columns:
        key ^= word
        key *= _PRIME
        key ^= key >> np.uint64(32)
    slot = (key * _PRIME >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
    table = np.empty(1 << _SLOT_BITS, np.int64)
    table[slot] = np.arange(slot.size)
    example = table[slot]
    same = size == size[example]
    for word in columns:
        same &= word == word[example]
    return example, same


def _prefix(data: Bytes, cut: Places, size: Places) -> list[Words]:
    """The ``size`` bytes before each cut as words, nearest first; what is no part of them is zero."""
    count, full = -(-int(size.max()) // 8), int(size.min()) // 8
    rows = words(data, cut - 8 * count, count)
    columns = [np.ascontiguousarray(rows[:, count - 1 - j]) for j in range(count)]
    for j in range(full, count):
        columns[j] &= _HIGH_BYTES[np.clip(size - 8 * j, 0, 8)]
    return columns


def _suffix(data: Bytes, cut: Places, holes: tuple[Hole, ...]) -> Words:
    """The bytes behind the first number as words ``[record, word]``; the other numbers in them are zero."""
    first = tftensor.width(holes[0].layout)
    size = holes[0].back - first
    mask = np.zeros(-(-size // 8) * 8, np.uint8)
    mask[:size] = 0xFF
    for hole in holes[1:]:
        mask[size - hole.back : size - hole.back + tftensor.width(hole.layout)] = 0
    return words(data, cut + first, mask.size // 8) & mask.view(np.uint64)


def _numbers(data: Bytes, places: Places, layout: str) -> NDArray[np.float64]:
    return tftensor.widen(load(data, places, tftensor.width(layout)), layout)


_NO_POINTS = Points(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0))
