"""The way around damage in an event file.

The walk goes on at the next 12 bytes that pass as a header and have an intact payload behind
them. Claims of length are held against the bytes left before anything is allocated. A record that only lost
its header is found again by the checksum behind its payload. Work is linear in the size of the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterrun.loaders.events.record import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    PAD_BYTES,
    RecordFile,
    Tally,
    Window,
    all_intact,
    claimed,
    headers,
    intact,
    is_cut,
)
from afterrun.loaders.events.wide import Bytes, Places

WASTE_FACTOR, WASTE_BYTES = 4, 64 << 20
"""How many bytes of false records may be checksummed, for each byte of the file and at least, before
lengths are trusted again: a file made of false headers must not cost the square of its size."""


def around_damage(file: RecordFile, at: int) -> Iterator[Window]:
    """The intact records from file offset ``at`` on; what lies between them is counted."""
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
        marks, ends = headers(gaps.data, PAD_BYTES, stop, self.file.size - shift)
        self.file.remember(ends - marks)
        gaps.typical_bytes = self.file.typical_bytes()
        place = max(self.done - shift, PAD_BYTES)
        inside = int(np.count_nonzero(ends <= stop))
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
            good = gaps.is_intact(mark, end) if whole else self.file.is_intact(mark + shift, end + shift)
            if not good and self.allowance > 0:
                self.allowance -= end - mark
                continue
            gaps.close(self.done - shift, mark)
            if good and whole:
                gaps.keep(mark, end)
            else:
                gaps.give_up(mark, end, oversize=good)
            place, self.done, self._dirty = end, end + shift, False
        return None

    def _end(self, gaps: _Gaps, stop: int, shift: int) -> None:
        """Name what is left behind the last record."""
        left = self.done - shift
        rest = gaps.data[max(left, PAD_BYTES) : stop]
        if not rest.any() and not self._dirty:
            gaps.zero_bytes += stop - left
        elif left >= PAD_BYTES and not gaps.is_intact(left, stop) and is_cut(rest):
            gaps.cut_bytes += rest.size
        else:
            gaps.close(left, stop)
        self.done = stop + shift


class _Gaps:
    """The records of one window and what lies between them; places are those of ``data``."""

    def __init__(self, data: Bytes, stop: int) -> None:
        self.data = data
        self.typical_bytes = 0.0
        self.lost = self.lost_bytes = self.mended = self.oversize = 0
        self.cut_bytes = self.zero_bytes = 0
        self._raw = data[:stop].tobytes()
        self._kept: list[Places] = [np.empty((0, 2), np.int64)]

    def is_intact(self, mark: int, end: int) -> bool:
        return intact(self._raw, mark, end)

    def keep_run(self, place: int, marks: Places, ends: Places) -> bool:
        """Keep all these records at once if one follows the other from ``place`` and all are intact."""
        if not marks.size or marks[0] != place or (ends[:-1] != marks[1:]).any() or ends[-1] > len(self._raw):
            return False
        if not all_intact(self.data, marks, ends):
            return False
        self._kept.append(np.column_stack([marks, ends]))
        return True

    def keep(self, mark: int, end: int) -> None:
        self._kept.append(np.array([[mark, end]]))

    def give_up(self, mark: int, end: int, *, oversize: bool) -> None:
        """Pass over a record that is too large to keep, or damaged with a length taken at its word."""
        self.oversize += oversize
        self.lost += not oversize
        self.lost_bytes += 0 if oversize else end - mark

    def close(self, left: int, right: int) -> None:
        """Account for the unreadable bytes ``left:right``; a record that only lost its header is kept."""
        size = right - left
        if size <= 0:
            return
        if left >= PAD_BYTES and self.is_intact(left, right):
            self.keep(left, right)
            self.mended += 1
        else:
            self.lost += self._records_in(left, right)
            self.lost_bytes += size

    def _records_in(self, left: int, right: int) -> int:
        """How many records filled these bytes, at least 1."""
        size, first = right - left, 0
        length = claimed(self._raw[left : left + HEADER_BYTES]) if left >= PAD_BYTES else None
        if length is not None and length + FRAME_BYTES <= size:
            size, first = size - length - FRAME_BYTES, 1
        return max(1, first + round(size / self.typical_bytes) if self.typical_bytes else first)

    def window(self, next_at: int) -> Window:
        """What was kept and counted, as the window that ends at file offset ``next_at``."""
        marks, ends = np.concatenate(self._kept).T
        tally = Tally(
            lost=self.lost,
            lost_bytes=self.lost_bytes,
            mended=self.mended,
            oversize=self.oversize,
            cut_bytes=self.cut_bytes,
            zero_bytes=self.zero_bytes,
        )
        return Window(self.data, marks + HEADER_BYTES, ends - FOOTER_BYTES, next_at, tally)
