"""From the events of a block to rows of ``metrics``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.textlog.events import Bools, Events, Floats, Group, evaluate
from afterrun.loaders.textlog.grammar import Field
from afterrun.loaders.textlog.moments import NO_TIME
from afterrun.loaders.textlog.tokens import NUM, Ints, Lines

Codes = NDArray[np.int32]

MAX_TAGS = 100_000
"""Tags of one file; keys beyond that are the words of prose."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in write order: the tag's number, the value, and the event that says the rest.

    ``no_step``: the step of the event is none of these rows.
    """

    events: Events
    tag: Codes
    value: Floats
    event: Ints
    no_step: Bools | None = None

    def __len__(self) -> int:
        return len(self.tag)

    def where(self, kept: Bools) -> Rows:
        """The rows of a mask."""
        if kept.all():
            return self
        return replace(self, tag=self.tag[kept], value=self.value[kept], event=self.event[kept])

    def steps(self) -> Floats:
        """Step of each row, NaN where there is none."""
        step = self.events.step[self.event]
        return step if self.no_step is None else np.where(self.no_step, np.nan, step)

    def first_of_event(self) -> Ints:
        """Indices of the first row of each event."""
        return np.flatnonzero(np.diff(self.event, prepend=-1))


@dataclass(slots=True)
class Tags:
    """The tags of one file by number."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, tag: str) -> int:
        """The number of a tag; -1 where there are too many."""
        known = self.codes.get(tag, -1)
        if known < 0 and len(self.codes) < MAX_TAGS:
            known = self.codes[tag] = len(self.codes)
        return known

    def series(self, codes: Codes) -> pl.Series:
        """The column of names."""
        return pl.Series("tag", list(self.codes), dtype=pl.Categorical).gather(codes.astype(np.uint32))


def make_rows(lines: Lines, events: Events, tags: Tags) -> Rows:
    """All rows of a block; a number that is none makes no row."""
    parts = [
        _of_group(lines, events, group, mine, tags)
        for group, mine in zip(events.groups, events.of_group, strict=True)
        if group.reading.record.fields
    ]
    if not parts:
        return Rows(events, np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64))
    if len(parts) == 1:
        return Rows(events, *parts[0])
    tag, value, event = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(event, kind="stable")
    return Rows(events, tag[order], value[order], event[order])


def _of_group(
    lines: Lines, events: Events, group: Group, mine: Ints, tags: Tags
) -> tuple[Codes, Floats, Ints]:
    """Tag, value and event of the rows of one group, event by event."""
    fields = group.reading.record.fields
    values = np.empty((len(mine), len(fields)))
    codes = np.empty(values.shape, np.int32)
    for i, field_ in enumerate(fields):
        values[:, i] = evaluate(lines, group.lines, field_.number)
        codes[:, i] = _tag_codes(lines, group.lines, field_, tags)
    spelled = np.array([f.number.slot is None for f in fields])
    kept = (spelled | ~np.isnan(values)) & (codes >= 0) & events.alive[mine][:, None]
    event = np.broadcast_to(mine[:, None], values.shape)
    if kept.all():
        return codes.ravel(), values.ravel(), event.ravel()
    return codes[kept], values[kept], event[kept]


def _tag_codes(lines: Lines, of_group: Ints, field_: Field, tags: Tags) -> Codes | int:
    """The number of the tag, -1 where there are too many; for each line where numbers in it tell tags apart."""
    if not field_.named_by:
        return tags.code(field_.tag)
    numbers = np.stack([lines.column(of_group, slot) for slot in field_.named_by], axis=1)
    names, inverse = np.unique(numbers, axis=0, return_inverse=True)
    codes = [tags.code(_spelled(field_.tag, name)) for name in names.tolist()]
    return np.array(codes, np.int32)[inverse.ravel()]


def _spelled(tag: str, numbers: Sequence[float]) -> str:
    parts = tag.split(NUM)
    told = [f"{n:.15g}" for n in numbers]
    return "".join(chain.from_iterable(zip(parts, [*told, ""], strict=True)))


def to_frame(rows: Rows, tags: Tags, first_seq: int) -> pl.DataFrame:
    """Rows as the columns of ``metrics``; an axis that is nowhere recorded is left out."""
    events, at = rows.events, rows.event
    columns: dict[str, object] = {
        "tag": tags.series(rows.tag),
        "seq": np.arange(first_seq, first_seq + len(rows)),
        "step": _integers(rows.steps(), pl.Int64()),
        "value": rows.value,
    }
    if not np.isnan(events.rank).all():
        columns["rank"] = _integers(events.rank[at], pl.Int32())
    if not np.isnan(events.tokens).all():
        columns["tokens"] = _integers(events.tokens[at], pl.Int64())
    if not np.isnan(events.epoch).all():
        columns["epoch"] = pl.Series(events.epoch[at], nan_to_null=True, dtype=pl.Float64)
    if (events.wall != NO_TIME).any():
        wall = events.wall[at]
        columns["wall_ns"] = pl.Series(wall).set(pl.Series(wall == NO_TIME), None)
    return pl.DataFrame(columns)


def _integers(values: Floats, dtype: pl.DataType) -> pl.Series:
    """Whole numbers, null where NaN or outside of the type."""
    return pl.Series(values, nan_to_null=True).cast(dtype, strict=False)
