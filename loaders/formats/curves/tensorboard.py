"""TensorBoard event files: scalars of TF1, TF2 and PyTorch, histograms, hyper-parameters, texts.

Scalars are decoded many at a time (``tfscalars``), the rest one by one (``tfevent``); images, audio and
graphs are counted and passed over. Every checksum is checked, which is cheap when many are checked
together (``tfcrc``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.events.gather import Collector, HistogramRows, Mark, Rows, tag_name
from afterrun.loaders.events.record import (
    HEADER_BYTES,
    LARGEST_BYTES,
    NOTHING,
    Anomaly,
    RecordFile,
    Tally,
    Window,
    claimed,
    straight,
)
from afterrun.loaders.events.walk import around_damage
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import TEXT, Batch

FLUSH_ROWS = 1 << 20
FLUSH_BUCKETS = 1 << 22
"""How many scalars and histogram buckets are held before they are handed on."""

KINDS_NAMED = 8
"""How many kinds of skipped values a note tells apart."""

_NAME = re.compile(r"tfevents\.\d+")
_OTHER_FORMATS = (".csv", ".json", ".txt", ".png", ".gz", ".zip", ".tar")
_FIRST_BYTES = frozenset({0x09, 0x10, *(number << 3 | 2 for number in range(3, 11))})
"""Keys of the fields an event can begin with."""

_LFS = b"version https://git-lfs"


class TensorBoard(Loader):
    """``events.out.tfevents.*``."""

    format = "tensorboard"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A sound record header before the first byte of an event, or else the name of an event file."""
        if claimed(head[:HEADER_BYTES]) is not None and len(head) > HEADER_BYTES:
            return head[HEADER_BYTES] in _FIRST_BYTES
        return _NAME.search(path.name) is not None and not path.name.endswith(_OTHER_FORMATS)

    def load(self, source: Source) -> Iterator[Batch]:
        """All values in write order. Raises ``UnreadableError`` if the file holds no intact record."""
        with source.path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                yield Batch(status="empty", notes=("0 bytes: nothing was written",))
                return
            yield from _batches(RecordFile(file, size))


def _batches(file: RecordFile) -> Iterator[Batch]:
    reading = _Reading()
    try:
        for window in straight(file):
            reading.add(window)
            yield from reading.full()
    except Anomaly:
        for window in around_damage(file, reading.at):
            reading.add(window)
            yield from reading.full()
    yield reading.last(file)


@dataclass(slots=True)
class _Reading:
    """What a pass over a file has collected, and how many rows it has handed on already."""

    collector: Collector = field(default_factory=Collector)
    tally: Tally = NOTHING
    given: int = 0
    scalars: int = 0
    held: int = 0
    buckets: int = 0
    at: int = 0

    def add(self, window: Window) -> None:
        self.collector.add(window)
        self.held = sum(rows.value.size for rows in self.collector.rows)
        self.buckets = sum(rows.buckets.counts.size for rows in self.collector.histograms)
        self.tally += window.tally
        self.at = window.next_at

    def full(self) -> Iterator[Batch]:
        """A batch if enough is held."""
        if self.held >= FLUSH_ROWS or self.buckets >= FLUSH_BUCKETS:
            yield Batch(frames=self._frames())

    def last(self, file: RecordFile) -> Batch:
        """What is left, what was lost, and what there is to say about the file."""
        collector, tally = self.collector, self.tally
        frames = self._frames()
        if collector.hparams or collector.texts:
            frames["params"] = _params(collector.hparams, collector.texts)
        damaged = tally.lost + collector.broken
        if not collector.records and damaged:
            raise UnreadableError(_no_record(file))
        empty = not self.given and not frames and not damaged
        notes = tuple(_notes(collector, tally, empty=empty))
        return Batch(frames=frames, damaged=damaged, notes=notes, status="empty" if empty else None)

    def _frames(self) -> dict[str, pl.DataFrame]:
        """Take what is held away as frames."""
        collector = self.collector
        frames = {}
        if collector.rows:
            names = [tag_name(tag) for tag, _ in collector.book.codes]
            frames["metrics"] = _metrics(collector.rows, names, self.scalars)
        if collector.histograms:
            frames["histograms"] = _histograms(collector.histograms)
        if collector.marks:
            frames["marks"] = _marks(collector.marks)
        collector.rows, collector.histograms, collector.marks = [], [], []
        self.scalars, self.held, self.buckets = self.scalars + self.held, 0, 0
        self.given += sum(frame.height for frame in frames.values())
        return frames


def _metrics(rows: list[Rows], names: list[str], first: int) -> pl.DataFrame:
    """One row a scalar, in write order from number ``first`` on."""
    code, step, wall_ns, timed, value = (
        np.concatenate([getattr(r, column) for r in rows])
        for column in ("code", "step", "wall_ns", "timed", "value")
    )
    frame = pl.DataFrame(
        {
            "tag": pl.Series(names, dtype=TEXT)[code],
            "seq": pl.Series(np.arange(first, first + code.size)),
            "step": step,
            "wall_ns": wall_ns,
            "value": value,
        }
    )
    if timed.all():
        return frame
    return frame.with_columns(wall_ns=pl.when(pl.Series(timed)).then("wall_ns"))


def _histograms(found: list[HistogramRows]) -> pl.DataFrame:
    """One row a histogram, in write order."""
    order, step, wall_ns, timed = (
        np.concatenate([getattr(rows, column) for rows in found])
        for column in ("order", "step", "wall_ns", "timed")
    )
    sizes, edges, counts = (
        np.concatenate([getattr(rows.buckets, column) for rows in found])
        for column in ("sizes", "edges", "counts")
    )
    frame = pl.DataFrame(
        {
            "order": order,
            "tag": pl.Series([tag_name(tag) for rows in found for tag in rows.buckets.tags], dtype=TEXT),
            "step": step,
            "wall_ns": wall_ns,
            "edges": _lists(edges, sizes + (sizes > 0)),
            "counts": _lists(counts, sizes),
            "timed": timed,
        }
    )
    timed_ns = pl.when("timed").then("wall_ns").alias("wall_ns")
    return frame.with_columns(timed_ns).sort("order", maintain_order=True).drop("order", "timed")


def _lists(flat: NDArray[np.float64], sizes: NDArray[np.int64]) -> pl.Series:
    """A list column of these sizes out of numbers that stand end to end."""
    each = np.arange(sizes.size)
    parts = pl.DataFrame({"i": pl.Series(np.repeat(each, sizes)).set_sorted(), "x": flat})
    filled = parts.group_by("i", maintain_order=True).agg("x")
    if filled.height < sizes.size:
        filled = pl.DataFrame({"i": each}).join(filled, on="i", how="left", maintain_order="left")
    return filled["x"].fill_null([])


def _marks(found: list[Mark]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "t_ns": pl.Series([m.t_ns for m in found], dtype=pl.Int64),
            "step": pl.Series([m.step for m in found], dtype=pl.Int64),
            "kind": pl.Series([m.kind for m in found], dtype=TEXT),
            "text": pl.Series([m.text for m in found], dtype=pl.String),
        }
    )


def _params(hparams: dict[str, str], texts: dict[str, str]) -> pl.DataFrame:
    """Hyper-parameters under their own names, texts under ``text/<tag>``."""
    pairs = hparams | {f"text/{tag}": value for tag, value in texts.items()}
    return pl.DataFrame(
        {
            "key": pl.Series(list(pairs), dtype=TEXT),
            "value": pl.Series(list(pairs.values()), dtype=pl.String),
        }
    )


def _no_record(file: RecordFile) -> str:
    if file.begins_with(_LFS):
        return "a git-lfs pointer stands in place of the file; run `git lfs pull`"
    return f"no intact record in {file.size:,} bytes; not an event file, or damaged from the first byte on"


def _notes(collector: Collector, tally: Tally, *, empty: bool) -> Iterator[str]:
    """Sentences for a person, the most important first."""
    damaged, mended = _count(tally.lost, "damaged record"), _count(tally.mended, "record")
    oversize, untimed = _count(tally.oversize, "record"), _count(collector.untimed, "scalar")
    said = {
        "file ends inside a record (still written or cut)": tally.cut_bytes,
        f"{damaged} in {tally.lost_bytes:,} bytes skipped": tally.lost,
        f"{_count(collector.broken, 'value')} could not be decoded": collector.broken,
        f"{mended} with a damaged header kept; the content has the right checksum": tally.mended,
        f"{oversize} above {LARGEST_BYTES >> 20} MiB skipped unread": tally.oversize,
        f"{tally.zero_bytes:,} zero bytes at the end (reserved, never written)": tally.zero_bytes,
        f"{untimed} with an impossible wall time kept without it": collector.untimed,
        f"{_count(collector.cut_texts, 'long text')} shortened": collector.cut_texts,
    }
    yield from (sentence for sentence, number in said.items() if number)
    if collector.skipped:
        named = sorted(collector.skipped.most_common(KINDS_NAMED))
        others = collector.skipped.total() - sum(number for _, number in named)
        kinds = [_count(number, kind) for kind, number in named] + [f"{others:,} others"] * bool(others)
        yield ", ".join(kinds) + " skipped"
    elif empty and collector.records:
        yield "version record only"


def _count(number: int, noun: str) -> str:
    head, _, tail = noun.partition(" without ")
    plural = head if number == 1 else head + "s"
    return f"{number:,} {plural}" + (f" without {tail}" if tail else "")
