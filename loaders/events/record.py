"""TFRecord framing of event files: from bytes on disk to the limits of every record.

A record is ``u64 length, u32 masked crc32c(length), payload, u32 masked crc32c(payload)``, little endian.
Here lies the straight way through a file in which all checksums are right. At the first that is not it gives
up, and ``tfwalk`` finds a way through the damage.

Source: tensorflow/core/lib/io/record_writer.h.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, fields
from io import FileIO

import google_crc32c
import numpy as np

from afterrun.loaders.events.crc import as_stored, has_crc, masked, of_lengths, of_strings
from afterrun.loaders.events.wide import Bytes, Places, load, words

HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES
"""What framing adds to a payload."""

WINDOW_BYTES = 4 << 20
LARGEST_BYTES = 64 << 20
"""A record above this size is skipped unread: no curve is that big."""

PAD_BYTES = 288
"""Zero bytes around the data of a window, so that wide loads near its ends stay inside."""

_SIZES_KEPT = 1000
"""The last sizes of records, whose median tells how many fill a stretch that cannot be read."""

_WALL_TIME = 0x09
"""First byte of nearly every event: the key of ``wall_time``."""


class Anomaly(Exception):  # noqa: N818  # a turn of events, not an error: the walk takes over
    """Something in the file is not as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What framing could not hand over, or had to mend.

    ``lost`` counts records; where their headers are gone too it is an estimate from the bytes.
    ``mended`` records had a damaged header but an intact payload.
    """

    lost: int = 0
    lost_bytes: int = 0
    mended: int = 0
    oversize: int = 0
    cut_bytes: int = 0
    zero_bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class Window:
    """Whole records: payload i is ``data[starts[i]:ends[i]]``. The next window reuses ``data``.

    ``next_at`` is the file offset up to which the file is read with this window.
    """

    data: Bytes
    starts: Places
    ends: Places
    next_at: int
    tally: Tally = NOTHING


class RecordFile:
    """A file of records, seen through one window of memory."""

    def __init__(self, file: FileIO, size: int) -> None:
        self.size = size
        self._file = file
        self._buffer = np.zeros(min(size, WINDOW_BYTES) + 2 * PAD_BYTES, np.uint8)
        self._sizes: Places = np.empty(0, np.int64)

    def remember(self, sizes: Places) -> None:
        """Take note of the sizes of records, frames included."""
        self._sizes = np.concatenate([self._sizes, sizes])[-_SIZES_KEPT:]

    def typical_bytes(self) -> float:
        """Median size of the last records, 0 before the first."""
        return float(np.median(self._sizes)) if self._sizes.size else 0.0

    def begins_with(self, magic: bytes) -> bool:
        """Whether these are the first bytes of the file."""
        self._file.seek(0)
        return self._file.read(len(magic)) == magic

    def claimed_at(self, at: int) -> int | None:
        """The length that a header at this file offset claims, None if there is no sound one."""
        self._file.seek(at)
        return claimed(self._file.read(HEADER_BYTES))

    def is_intact(self, at: int, end: int) -> bool:
        """Whether the payload of the record at these file offsets has the checksum behind it."""
        self._file.seek(at + HEADER_BYTES)
        crc = 0
        left = end - FOOTER_BYTES - at - HEADER_BYTES
        while left > 0 and (part := self._file.read(min(left, WINDOW_BYTES))):
            crc = google_crc32c.extend(crc, part)
            left -= len(part)
        return as_stored(crc) == self._file.read(FOOTER_BYTES)

    def load(self, at: int) -> tuple[Bytes, int]:
        """Bytes from file offset ``at`` on, and the place where they stop.

        The byte at ``at`` is ``data[PAD_BYTES]``. A sound record that begins there is inside as a whole,
        unless it is larger than ``LARGEST_BYTES``.
        """
        length = self.claimed_at(at)
        framed = 0 if length is None or length > LARGEST_BYTES else length + FRAME_BYTES
        count = min(self.size - at, max(WINDOW_BYTES, framed))
        if count + 2 * PAD_BYTES > self._buffer.size:
            self._buffer = np.zeros(count + 2 * PAD_BYTES, np.uint8)
        self._file.seek(at)
        got = self._file.readinto(self._buffer.data[PAD_BYTES : PAD_BYTES + count]) or 0
        if got < count:  # the file shrank under our hands
            self.size = at + got
        stop = PAD_BYTES + got
        self._buffer[stop : stop + PAD_BYTES] = 0
        return self._buffer, stop


def claimed(head: bytes) -> int | None:
    """The length that a header of 12 bytes claims, None if its checksum is wrong or bytes are missing."""
    if len(head) < HEADER_BYTES or not has_crc(head[:8], head[8:HEADER_BYTES]):
        return None
    return int.from_bytes(head[:8], "little")


def straight(file: RecordFile) -> Iterator[Window]:
    """The records of a file in order. Raises ``Anomaly`` at the first thing that is not as it should be."""
    at = 0
    while at < file.size:
        data, stop = file.load(at)
        marks, ends = _chain(data, stop)
        reached = int(ends[-1]) if ends.size else PAD_BYTES
        if not all_intact(data, marks, ends):
            raise Anomaly
        file.remember(ends - marks)
        tally = NOTHING
        if at + stop - PAD_BYTES >= file.size:
            tally, at = _tail(data, reached, stop), file.size
        elif reached == PAD_BYTES:
            raise Anomaly
        else:
            at += reached - PAD_BYTES
        yield Window(data, marks + HEADER_BYTES, ends - FOOTER_BYTES, at, tally)


def _tail(data: Bytes, reached: int, stop: int) -> Tally:
    """What the bytes behind the last whole record are; raises ``Anomaly`` unless they are harmless."""
    rest = data[reached:stop]
    if not rest.any():
        return Tally(zero_bytes=rest.size)
    whole = intact(rest.tobytes(), 0, rest.size)
    if whole or not is_cut(rest) or headers(data, reached + 1, stop, stop)[0].size:
        raise Anomaly
    return Tally(cut_bytes=rest.size)


def is_cut(rest: Bytes) -> bool:
    """Whether this is the beginning of one record: less than a header, or a sound header that claims more."""
    length = claimed(rest[:HEADER_BYTES].tobytes())
    return rest.size < HEADER_BYTES or (length is not None and length > rest.size - FRAME_BYTES)


def _chain(data: Bytes, stop: int) -> tuple[Places, Places]:
    """Limits of the records that follow each other from the beginning of the window, as far as they do.

    First only places that may begin an event are looked at; all of them if a record begins otherwise.
    """
    marks = np.flatnonzero(data[PAD_BYTES + HEADER_BYTES : stop] == _WALL_TIME) + PAD_BYTES
    marks, ends = _linked(*_sound(data, marks, stop))
    reached = int(ends[-1]) if ends.size else PAD_BYTES
    length = claimed(data[reached : reached + HEADER_BYTES].tobytes())
    if length is None or reached + length + FRAME_BYTES > stop:
        return marks, ends
    return _linked(*headers(data, PAD_BYTES, stop, stop))


def _linked(marks: Places, ends: Places) -> tuple[Places, Places]:
    """Those records that follow each other from the beginning of the window; others lie inside of them."""
    breaks = [*np.flatnonzero(ends[:-1] != marks[1:]).tolist(), marks.size - 1]
    pieces = [slice(0)]
    place = PAD_BYTES
    while True:
        i = int(np.searchsorted(marks, place))
        if i == marks.size or marks[i] != place:
            break
        pieces.append(slice(i, breaks[bisect_left(breaks, i)] + 1))
        place = int(ends[pieces[-1].stop - 1])
    return np.concatenate([marks[piece] for piece in pieces]), np.concatenate(
        [ends[piece] for piece in pieces]
    )


def headers(data: Bytes, first: int, stop: int, limit: int) -> tuple[Places, Places]:
    """All places from ``first`` on whose 12 bytes pass as the header of a record that ends by ``limit``.

    A first look leaves few places, also in a run of zeros: no length reaches 2**40, and none up to
    ``LARGEST_BYTES`` has the checksum 0.
    """
    zero = data[first:stop] == 0
    count = max(0, zero.size - HEADER_BYTES + 1)
    byte = [zero[i : i + count] for i in range(HEADER_BYTES)]
    small, unchecked = byte[5] & byte[6] & byte[7], byte[8] & byte[9] & byte[10] & byte[11]
    marks = np.flatnonzero(small & ~unchecked)
    return _sound(data, marks + first, limit)


def _sound(data: Bytes, marks: Places, limit: int) -> tuple[Places, Places]:
    """Those of the places whose header passes its checksum and whose record ends by ``limit``."""
    head = words(data, marks, 2)  # length, then checksum and four bytes more
    near = np.flatnonzero(head[:, 0] <= limit)
    marks, length = marks[near], head[near, 0].astype(np.int64)
    ends = marks + length + FRAME_BYTES
    good = (ends <= limit) & (head[near, 1].astype(np.uint32) == masked(of_lengths(length)))
    return marks[good], ends[good]


def all_intact(data: Bytes, marks: Places, ends: Places) -> bool:
    """Whether all these records have the checksums of their payloads behind them."""
    found = masked(of_strings(data, marks + HEADER_BYTES, ends - FOOTER_BYTES))
    return bool((found == load(data, ends - FOOTER_BYTES, FOOTER_BYTES).view("<u4")).all())


def intact(raw: bytes, mark: int, end: int) -> bool:
    """Whether the payload of the record ``raw[mark:end]`` has the checksum behind it."""
    body = end - FOOTER_BYTES
    return body >= mark + HEADER_BYTES and has_crc(raw[mark + HEADER_BYTES : body], raw[body:end])
