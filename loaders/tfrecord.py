"""TFRecord framing of event files: from bytes on disk to the limits of every record.

A record is ``u64 length, u32 masked crc32c(length), payload, u32 masked crc32c(payload)``, little endian.
The length is always checked. Payloads are checked on request, and from the moment anything looks wrong.
After damage the walk goes on at the next 12 bytes that pass as a header; claims of length are held
against the bytes left before anything is allocated. Work is linear in the size of the file.

Source: tensorflow/core/lib/io/record_writer.h (layout), tensorflow/core/lib/hash/crc32c.h (mask).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from io import FileIO

import google_crc32c
import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES
"""What framing adds to a payload."""

WINDOW_BYTES = 4 << 20
LARGEST_BYTES = 64 << 20
"""A record above this size is skipped unread: no curve is that big."""

PAD_BYTES = 288
"""Zero bytes around the data of a window, so that wide loads near its ends stay inside."""

WASTE_FACTOR, WASTE_BYTES = 4, 64 << 20
"""How many bytes of false records may be checksummed, for each byte of the file and at least, before
lengths are trusted again: a file made of false headers must not cost the square of its size."""

_WALL_TIME = 0x09
"""First byte of nearly every event: the key of ``wall_time``."""

_MASK = 0xA282EAD8

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


class Anomaly(Exception):  # noqa: N818  # a turn of events, not an error: read again with checksums
    """Something in the file is not as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What framing could not hand over, or had to mend.

    ``lost`` counts records; where their headers are gone too it is an estimate from the bytes.
    ``mended`` records had a damaged header but an intact payload. ``stray_bytes`` lie between records
    and are too few to have been one.
    """

    lost: int = 0
    lost_bytes: int = 0
    mended: int = 0
    stray_bytes: int = 0
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

    def load(self, at: int) -> tuple[Bytes, int]:
        """Bytes from file offset ``at`` on, and the place where they stop.

        The byte at ``at`` is ``data[PAD_BYTES]``. A sound record that begins there is inside as a whole,
        unless it is larger than ``LARGEST_BYTES``.
        """
        self._file.seek(at)
        length = claimed(self._file.read(HEADER_BYTES))
        framed = 0 if length is None or length > LARGEST_BYTES else length + FRAME_BYTES
        count = min(self.size - at, max(WINDOW_BYTES, framed))
        if count + 2 * PAD_BYTES > self._buffer.size:
            self._buffer = np.zeros(count + 2 * PAD_BYTES, np.uint8)
        self._file.seek(at)
        got = self._file.readinto(self._buffer[PAD_BYTES : PAD_BYTES + count]) or 0
        if got < count:  # the file shrank under our hands
            self.size = at + got
        stop = PAD_BYTES + got
        self._buffer[stop : stop + PAD_BYTES] = 0
        return self._buffer, stop


def claimed(head: bytes) -> int | None:
    """The length that a header of 12 bytes claims, None if its checksum is wrong or bytes are missing."""
    if len(head) < HEADER_BYTES or _mask(google_crc32c.value(head[:8])) != int.from_bytes(
        head[8:12], "little"
    ):
        return None
    return int.from_bytes(head[:8], "little")


def trusting(file: RecordFile) -> Iterator[Window]:
    """The records of a file in order, payloads unchecked. Raises ``Anomaly`` at the first doubt."""
    at = 0
    while at < file.size:
        data, stop = file.load(at)
        marks, ends = _chain(data, stop)
        reached = int(ends[-1]) if ends.size else PAD_BYTES
        tally = NOTHING
        if at + stop - PAD_BYTES >= file.size:
            tally, at = _tail(data, reached, stop), file.size
        elif reached == PAD_BYTES:
            raise Anomaly
        else:
            at += reached - PAD_BYTES
        yield Window(data, marks + HEADER_BYTES, ends - FOOTER_BYTES, at, tally)


def checking(file: RecordFile, at: int = 0) -> Iterator[Window]:
    """The records from an offset on, every payload checked, with a way through any damage."""
    walk = _Walk(file, at)
    while at < file.size:
        window = walk.step(at)
        at = window.next_at
        yield window


class _Walk:
    """Finds intact records one after the other; ``done`` is the offset up to which all is counted."""

    def __init__(self, file: RecordFile, at: int) -> None:
        self.file = file
        self.done = at
        self.allowance = WASTE_FACTOR * file.size + WASTE_BYTES
        self._dirty = False

    def step(self, at: int) -> Window:
        """The records of the window at file offset ``at``."""
        data, stop = self.file.load(at)
        shift = at - PAD_BYTES
        gaps = _Gaps(data, stop)
        resume = self._records(gaps, stop, shift)
        if resume is None and shift + stop >= self.file.size:
            self._end(gaps, stop, shift)
            resume = self.file.size
        elif resume is None:
            dark = self.done <= at
            self._dirty |= dark and bool(data[PAD_BYTES:stop].any())
            resume = shift + stop - HEADER_BYTES + 1 if dark else self.done
        return gaps.window(resume)

    def _records(self, gaps: _Gaps, stop: int, shift: int) -> int | None:
        """Keep what is intact; returns where to load again if a record runs past the window."""
        marks, ends = _headers(gaps.data, PAD_BYTES, stop, self.file.size - shift)
        gaps.typical = float(np.median(ends - marks)) if marks.size else 0.0
        place = max(self.done - shift, PAD_BYTES)
        inside = int(np.searchsorted(ends, stop, side="right"))
        if self.done == place + shift and gaps.keep_run(place, marks[:inside], ends[:inside]):
            place = int(ends[inside - 1])
            self.done = place + shift
        later = int(np.searchsorted(marks, place))
        for mark, end in zip(marks[later:].tolist(), ends[later:].tolist(), strict=True):
            if mark < place:
                continue
            if end > stop and mark > PAD_BYTES:
                return int(mark + shift)
            whole = end <= stop
            intact = whole and gaps.is_intact(mark, end)
            if whole and not intact and self.allowance > 0:
                self.allowance -= end - mark
                continue
            gaps.close(self.done - shift, mark)
            if intact:
                gaps.keep(mark, end)
            else:
                gaps.tally += Tally(oversize=1) if not whole else Tally(lost=1, lost_bytes=end - mark)
            place, self.done, self._dirty = end, end + shift, False
        return None

    def _end(self, gaps: _Gaps, stop: int, shift: int) -> None:
        """Name what is left behind the last record."""
        left = self.done - shift
        rest = gaps.data[max(left, PAD_BYTES) : stop]
        if not rest.any() and not self._dirty:
            gaps.tally += Tally(zero_bytes=stop - left)
        elif left >= PAD_BYTES and not gaps.is_intact(left, stop) and _is_cut(rest):
            gaps.tally += Tally(cut_bytes=rest.size)
        else:
            gaps.close(left, stop)
        self.done = stop + shift


class _Gaps:
    """The records of one window and what lies between them; places are those of ``data``."""

    def __init__(self, data: Bytes, stop: int) -> None:
        self.data = data
        self.typical = 0.0
        self.tally = NOTHING
        self._raw = data[:stop].tobytes()
        self._kept: list[Places] = [np.empty((0, 2), np.int64)]

    def is_intact(self, mark: int, end: int) -> bool:
        return _intact(self._raw, mark, end)

    def keep_run(self, place: int, marks: Places, ends: Places) -> bool:
        """Keep all these records at once if one follows the other from ``place`` and all are intact."""
        if not marks.size or marks[0] != place or (ends[:-1] != marks[1:]).any():
            return False
        raw, crc32c = self._raw, google_crc32c.value
        starts, bodies = (marks + HEADER_BYTES).tolist(), (ends - FOOTER_BYTES).tolist()
        found = np.array([crc32c(raw[a:b]) for a, b in zip(starts, bodies, strict=True)], np.uint32)
        footers = np.ndarray((self.data.size - 3,), "V4", self.data.data, strides=(1,))[ends - FOOTER_BYTES]
        if (_masked(found) != footers.view("<u4")).any():
            return False
        self._kept.append(np.column_stack([marks, ends]))
        return True

    def keep(self, mark: int, end: int) -> None:
        self._kept.append(np.array([[mark, end]]))

    def close(self, left: int, right: int) -> None:
        """Account for the unreadable bytes ``left:right``; a record that only lost its header is kept."""
        size = right - left
        if size <= 0:
            return
        if size < FRAME_BYTES:
            self.tally += Tally(stray_bytes=size)
        elif left >= PAD_BYTES and self.is_intact(left, right):
            self.keep(left, right)
            self.tally += Tally(mended=1)
        else:
            self.tally += Tally(lost=self._records_in(left, right), lost_bytes=size)

    def _records_in(self, left: int, right: int) -> int:
        """How many records filled these bytes, at least 1."""
        size, first = right - left, 0
        length = claimed(self._raw[left : left + HEADER_BYTES]) if left >= PAD_BYTES else None
        if length is not None and length + FRAME_BYTES <= size:
            size, first = size - length - FRAME_BYTES, 1
        return max(1, first + round(size / self.typical) if self.typical else first)

    def window(self, next_at: int) -> Window:
        marks, ends = np.concatenate(self._kept).T
        return Window(self.data, marks + HEADER_BYTES, ends - FOOTER_BYTES, next_at, self.tally)


def _tail(data: Bytes, reached: int, stop: int) -> Tally:
    """What the bytes behind the last whole record are; raises ``Anomaly`` unless they are harmless."""
    rest = data[reached:stop]
    if not rest.any():
        return Tally(zero_bytes=rest.size)
    if (
        _is_cut(rest)
        and not _headers(data, reached + 1, stop, stop)[0].size
        and not _intact(rest.tobytes(), 0, rest.size)
    ):
        return Tally(cut_bytes=rest.size)
    raise Anomaly


def _is_cut(rest: Bytes) -> bool:
    """Whether this is the beginning of one record: less than a header, or a sound header that claims more."""
    length = claimed(rest[:HEADER_BYTES].tobytes())
    return rest.size < HEADER_BYTES or (length is not None and length > rest.size - FRAME_BYTES)


def _chain(data: Bytes, stop: int) -> tuple[Places, Places]:
    """Limits of the records that follow each other from the beginning of the window, as far as they do.

    All places that may begin an event are looked at together; only where the next record does not
    begin like one (or something inside a payload does) its header is read by itself.
    """
    marks = np.flatnonzero(data[PAD_BYTES + HEADER_BYTES : stop] == _WALL_TIME) + PAD_BYTES
    marks, ends = _sound(data, marks, stop)
    breaks = [*np.flatnonzero(ends[:-1] != marks[1:]).tolist(), marks.size - 1]
    pieces: list[tuple[Places, Places]] = []
    place = PAD_BYTES
    while place + FRAME_BYTES <= stop:
        i = int(np.searchsorted(marks, place))
        if i < marks.size and marks[i] == place:
            last = breaks[bisect_left(breaks, i)] + 1
            piece = marks[i:last], ends[i:last]
        else:
            piece = _sound(data, np.array([place]), stop)
        if not piece[0].size:
            break
        pieces.append(piece)
        place = int(piece[1][-1])
    if not pieces:
        return marks[:0], ends[:0]
    return np.concatenate([m for m, _ in pieces]), np.concatenate([e for _, e in pieces])


def _headers(data: Bytes, first: int, stop: int, limit: int) -> tuple[Places, Places]:
    """All places from ``first`` on whose 12 bytes pass as the header of a record that ends by ``limit``."""
    zero = data[first + 5 : stop - FOOTER_BYTES] == 0  # no length reaches 2**40: cheap, and leaves few
    marks = np.flatnonzero(zero[:-2] & zero[1:-1] & zero[2:]) + first
    return _sound(data, marks, limit)


def _sound(data: Bytes, marks: Places, limit: int) -> tuple[Places, Places]:
    """Those of the places whose header passes its checksum and whose record ends by ``limit``."""
    wide = np.ndarray((data.size - 15,), "V16", data.data, strides=(1,))  # one load for length and checksum
    head = wide[marks].view("<u8").reshape(-1, 2)
    near = np.flatnonzero(head[:, 0] <= limit)
    marks, length = marks[near], head[near, 0].astype(np.int64)
    ends = marks + length + FRAME_BYTES
    good = (ends <= limit) & (head[near, 1].astype(np.uint32) == _length_crc(length))
    return marks[good], ends[good]


def _intact(raw: bytes, mark: int, end: int) -> bool:
    """Whether the payload of the record ``raw[mark:end]`` has the checksum behind it."""
    body = end - FOOTER_BYTES
    crc = google_crc32c.value(raw[mark + HEADER_BYTES : body])
    return body >= mark + HEADER_BYTES and raw[body:end] == _mask(crc).to_bytes(4, "little")


def _mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFF_FFFF


def _masked(crc: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_MASK)


def _length_crc(length: Places) -> NDArray[np.uint32]:
    """Masked checksum of each length: a CRC is linear, so eight table look-ups make one."""
    tables = _byte_tables()
    crc = tables[0][length & 0xFF]
    for i in range(1, (int(length.max(initial=0)).bit_length() + 7) // 8):
        crc = crc ^ tables[i][(length >> 8 * i) & 0xFF]
    return _masked(crc)


@cache
def _byte_tables() -> NDArray[np.uint32]:
    """``[i, b]``: what byte i of a length adds to its checksum when it is b; that of 0 is in ``[0]``."""
    zero = google_crc32c.value(bytes(8))
    rows = [
        [google_crc32c.value(bytes([0] * i + [b] + [0] * (7 - i))) ^ zero for b in range(256)]
        for i in range(8)
    ]
    tables = np.array(rows, np.uint32)
    tables[0] ^= np.uint32(zero)
    return tables
