"""Gathers what the records of an event file hold, until it is taken away as rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.events import event as tfevent
from afterrun.loaders.events import histograms as tfhistograms
from afterrun.loaders.events import summary as tfsummary
from afterrun.loaders.events import tensor as tftensor
from afterrun.loaders.events.event import Event, Value
from afterrun.loaders.events.histograms import Buckets, Limits
from afterrun.loaders.events.record import Window
from afterrun.loaders.events.scalars import Book, Points, heads, points
from afterrun.loaders.events.tensor import Numbers
from afterrun.loaders.events.wide import Places
from afterrun.loaders.protowire import Field, WireError, float32

VECTOR_LIMIT = 16
"""A tensor of 2 to this many numbers becomes the tags ``name[0]``, ``name[1]``, ...; longer ones are counted."""

TEXT_CHARACTERS = 10_000
TEXT_TAGS = 500
"""Longer texts are cut, further ones counted: they describe a run, they are not its data."""

LATEST_WALL_S = 9.2e9
"""Wall times outside 1970 to 2261 cannot be held as int64 nanoseconds and are no times of a run."""

_SCALARS = (None, b"", b"scalars")

_KINDS = {
    b"images": "image",
    b"audio": "audio clip",
    b"graphs": "graph",
    b"graph_keras_model": "graph",
    b"graph_run_metadata": "run-metadata record",
    b"graph_run_metadata_graph": "run-metadata record",
    b"graph_keras_run_metadata": "run-metadata record",
}
"""Plugin -> what to call its values."""

_BLOBS = {tfevent.IMAGE: "image", tfevent.AUDIO: "audio clip", tfevent.OLD_HISTOGRAM: "old-style histogram"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Scalars in write order. ``timed`` is false where the wall time was left out or impossible."""

    code: NDArray[np.int32]
    step: NDArray[np.int64]
    wall_ns: NDArray[np.int64]
    timed: NDArray[np.bool_]
    value: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HistogramRows:
    """Histograms with the step and time of their events; ``order`` is the number of the record in the file."""

    order: Places
    step: NDArray[np.int64]
    wall_ns: NDArray[np.int64]
    timed: NDArray[np.bool_]
    buckets: Buckets


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened: ``start``, ``finish`` or ``checkpoint``."""

    t_ns: int | None
    step: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Times:
    """Step and wall time of each record of a window; ``absent`` where the event has no wall time."""

    step: NDArray[np.int64]
    wall_ns: NDArray[np.int64]
    possible: NDArray[np.bool_]
    absent: NDArray[np.bool_]

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Which records have a time."""
        return self.possible & ~self.absent


@dataclass(slots=True)
class Collector:
    """Everything read so far from one file. ``broken`` counts values and records that are none."""

    book: Book = field(default_factory=Book)
    rows: list[Rows] = field(default_factory=list)
    histograms: list[HistogramRows] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    hparams: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    records: int = 0
    broken: int = 0
    untimed: int = 0
    cut_texts: int = 0
    _slow: list[tuple[int, int, float]] = field(default_factory=list)
    _limits: list[Limits] = field(default_factory=list)
    _buckets: list[Buckets] = field(default_factory=list)

    def add(self, window: Window) -> None:
        """Take in the records of a window."""
        view, head = window.data.data, heads(window)
        self._limits = [tfhistograms.find(window, head)]
        records = np.arange(window.starts.size)
        if self._limits[0].record.size:
            records = np.delete(records, self._limits[0].record)
        found, left = points(window, head, self.book, records)
        absent = np.zeros(window.starts.size, np.bool_)
        for record, parsed in left:
            try:
                event = parsed or tfevent.parse(view, int(window.starts[record]), int(window.ends[record]))
            except WireError:
                self.broken += 1
                continue
            head.wall_s[record], absent[record] = event.wall_s or 0.0, event.wall_s is None
            head.step[record] = event.step
            self._event(record, event, view)
        times = Times(head.step, *nanoseconds(head.wall_s), absent)
        self._take_scalars([*found, self._slow_points()], times)
        self._take_histograms(times)
        self.records += window.starts.size

    def _take_scalars(self, found: list[Points], times: Times) -> None:
        """Turn the numbers of a window into rows, without those of plugins that are not about scalars."""
        record, code, value = _in_write_order(found)
        plugin = [self.book.plugins.get(tag) if is_tensor else None for tag, is_tensor in self.book.codes]
        foreign = np.array([name not in _SCALARS for name in plugin], np.bool_)
        if foreign.any():
            for one, count in Counter(code[foreign[code]].tolist()).items():
                self.skipped[_kind(plugin[one])] += count
            kept = ~foreign[code]
            record, code, value = record[kept], code[kept], value[kept]
        if record.size:
            self.untimed += int(np.count_nonzero(~(times.possible | times.absent)[record]))
            self.rows.append(
                Rows(code, times.step[record], times.wall_ns[record], times.timed[record], value)
            )

    def _take_histograms(self, times: Times) -> None:
        limits = [found for found in self._limits if found.record.size]
        if limits:
            self._buckets.append(tfhistograms.buckets(tfhistograms.join(limits)))
        for some in self._buckets:
            at, step, wall_ns = some.record, times.step[some.record], times.wall_ns[some.record]
            self.histograms.append(HistogramRows(self.records + at, step, wall_ns, times.timed[at], some))
        self._limits, self._buckets = [], []

    def _slow_points(self) -> Points:
        record, code, value = zip(*self._slow, strict=True) if self._slow else ((), (), ())
        self._slow = []
        return Points(np.array(record, np.int64), np.array(code, np.int32), np.array(value, np.float64))

    def _event(self, record: int, event: Event, view: memoryview) -> None:
        self.book.learn(event)
        self.skipped.update(event.blobs)
        for part in (event.session, *event.values):
            try:
                if isinstance(part, Value):
                    self._value(record, part, view)
                elif part is not None:
                    self._session(event, part, view)
            except WireError:
                self.broken += 1

    def _session(self, event: Event, part: Field, view: memoryview) -> None:
        found = tfsummary.session(view, part)
        if found is not None:
            self.marks.append(Mark(_nanosecond(event.wall_s), event.step, *found))

    def _value(self, record: int, value: Value, view: memoryview) -> None:
        plugin = self.book.plugins.get(value.tag) if value.plugin is None else value.plugin
        if plugin == b"hparams":
            self.hparams |= {} if value.content is None else tfsummary.hparams(view, value.content)
        elif value.kind == tfevent.SIMPLE:
            self._scalar(record, value.tag, float32(view, value.at), is_tensor=False)
        elif value.kind == tfevent.HISTO:
            self._limits.append(tfhistograms.parse(view, record, value.tag, value.at, value.end))
        elif value.kind == tfevent.TENSOR:
            self._tensor(record, value, plugin, view)
        elif value.kind in _BLOBS:
            self.skipped[_BLOBS[value.kind]] += 1

    def _tensor(self, record: int, value: Value, plugin: bytes | None, view: memoryview) -> None:
        tensor = tftensor.parse(view, value.at, value.end)
        if plugin == b"histograms":
            self._buckets.append(tfhistograms.of_tensor(view, record, value.tag, tensor))
        elif plugin == b"text":
            self._text(value.tag, tftensor.strings(view, tensor))
        elif plugin not in _SCALARS:
            self.skipped[_kind(plugin)] += 1
        elif not tensor.numeric or not 1 <= tensor.size <= VECTOR_LIMIT:
            self.skipped["tensor without a scalar"] += 1
        elif tensor.size == 1:
            self._scalar(record, value.tag, float(tftensor.numbers(view, tensor)[0]), is_tensor=True)
        else:
            for i, number in enumerate(tftensor.numbers(view, tensor).tolist()):
                self._scalar(record, value.tag + b"[%d]" % i, number, is_tensor=True)

    def _scalar(self, record: int, tag: bytes, number: float, *, is_tensor: bool) -> None:
        self._slow.append((record, self.book.code(tag, is_tensor=is_tensor), number))

    def _text(self, tag: bytes, strings: list[str]) -> None:
        name = tag_name(tag)
        if name not in self.texts and len(self.texts) >= TEXT_TAGS:
            self.skipped["text"] += 1
            return
        cut = [string[:TEXT_CHARACTERS] for string in strings[:VECTOR_LIMIT]]
        self.cut_texts += cut != strings
        said = json.dumps(cut[0] if len(cut) == 1 else cut, ensure_ascii=False)
        if self.texts.get(name, said) != said:
            self.skipped["earlier text"] += 1
        self.texts[name] = said


def tag_name(tag: bytes) -> str:
    """A tag as text, without the blanks around it; what is not UTF-8 becomes U+FFFD."""
    return tag.decode("utf-8", "replace").strip()


def nanoseconds(wall_s: Numbers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Seconds since 1970 as int64 nanoseconds, and which of them are times at all (the others give 0).

    Whole seconds and the rest are converted apart, so that no digit of the double is lost.
    """
    possible = (wall_s >= 0) & (wall_s < LATEST_WALL_S)
    sane = wall_s if possible.all() else np.where(possible, wall_s, 0.0)
    whole = np.floor(sane)
    return whole.astype(np.int64) * 1_000_000_000 + np.rint((sane - whole) * 1e9).astype(np.int64), possible


def _nanosecond(wall_s: float | None) -> int | None:
    if wall_s is None or not 0 <= wall_s < LATEST_WALL_S:
        return None
    return int(nanoseconds(np.array([wall_s]))[0][0])


def _kind(plugin: bytes | None) -> str:
    """What to call a value of this plugin."""
    name = plugin or b""
    return _KINDS.get(name) or f"{tag_name(name[:40])} value"


def _in_write_order(found: list[Points]) -> tuple[Places, NDArray[np.int32], Numbers]:
    filled = [points for points in found if points.record.size]
    if len(filled) == 1:
        return filled[0].record, filled[0].code, filled[0].value
    record = np.concatenate([p.record for p in found])
    order = np.argsort(record, kind="stable")
    return (
        record[order],
        np.concatenate([p.code for p in found])[order],
        np.concatenate([p.value for p in found])[order],
    )
