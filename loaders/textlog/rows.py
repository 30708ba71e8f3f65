"""From the events of a block to rows of ``metrics``, and which of them are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.names import canonical
from afterrun.loaders.textlog.events import Bools, Events, Floats, evaluate
from afterrun.loaders.textlog.moments import NO_TIME
from afterrun.loaders.textlog.tokens import Ints, Lines

Codes = NDArray[np.int32]

MAX_TAGS = 100_000
"""Tags of one file; keys beyond that are the words of prose."""

REPEATS = 3
"""Values of a tag, not all the same, from which generic lines in doubt count as metrics."""

REPEATED_EPOCHS = 1 / 3
"""Share of rows in the epoch of the row before from which the epoch does not count the rows of a tag."""

_CONSTANT_KINDS = frozenset({"rate", "axis"})


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in write order. ``doubtful`` ones come from lines that are not sure to hold metrics, ``generic`` ones from
    grammars that are asked last; NaN and ``NO_TIME`` in the axes mean not recorded.
    """

    tag: Codes
    value: Floats
    step: Floats
    epoch: Floats
    tokens: Floats
    rank: Floats
    wall: Ints
    event: Ints
    by_epoch: Bools
    doubtful: Bools
    generic: Bools

    def __len__(self) -> int:
        return len(self.tag)

    def where(self, kept: Bools) -> Rows:
        """The rows of a mask."""
        if kept.all():
            return self
        return Rows(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))


@dataclass(slots=True)
class Tags:
    """The tags of one file by number."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, tag: str) -> int | None:
        """The number of a tag; None where there are too many."""
        known = self.codes.get(tag)
        if known is None and len(self.codes) < MAX_TAGS:
            known = self.codes[tag] = len(self.codes)
        return known

    def series(self, codes: Codes) -> pl.Series:
        """The column of names."""
        return pl.Series("tag", list(self.codes), dtype=pl.Categorical).gather(codes.astype(np.uint32))


def make_rows(lines: Lines, events: Events, tags: Tags) -> Rows:
    """All rows of a block; a number that is none makes no row."""
    tag: list[Codes] = []
    value: list[Floats] = []
    event: list[Ints] = []
    order: list[Ints] = []
    doubtful = np.zeros(len(events), np.bool_)
    generic = np.zeros(len(events), np.bool_)
    for group, mine in zip(events.groups, events.of_group, strict=True):
        doubtful[mine] = not group.reading.record.sure
        generic[mine] = group.reading.grammar.use == "generic"
        for place, one in enumerate(group.reading.record.fields):
            code = tags.code(one.tag)
            if code is None:
                continue
            found = evaluate(lines, group.lines, one.number)
            kept = events.alive[mine]
            if one.number.slot is not None:
                kept = kept & ~np.isnan(found)
            value.append(found[kept])
            event.append(mine[kept])
            order.append(mine[kept] * MAX_TAGS + place)
            tag.append(np.full(int(kept.sum()), code, np.int32))
    if not tag:
        return _rows_of(
            events, *(np.empty(0, t) for t in (np.int32, np.float64, np.int64)), doubtful, generic
        )
    sequence = np.argsort(np.concatenate(order), kind="stable")
    parts = (np.concatenate(tag)[sequence], np.concatenate(value)[sequence], np.concatenate(event)[sequence])
    return _rows_of(events, *parts, doubtful, generic)


def _rows_of(events: Events, tag: Codes, value: Floats, at: Ints, doubtful: Bools, generic: Bools) -> Rows:
    return Rows(
        tag=tag,
        value=value,
        step=events.step[at],
        epoch=events.epoch[at],
        tokens=events.tokens[at],
        rank=events.rank[at],
        wall=events.wall[at],
        event=at,
        by_epoch=events.by_epoch[at],
        doubtful=doubtful[at],
        generic=generic[at],
    )


@dataclass(slots=True)
class Judge:
    """Which rows are kept; decided on the first rows of a file and then firm.

    ``generic``: whether lines of no known trainer count at all. ``no_step``: tags with several rows an epoch,
    whose step the epoch cannot be.
    """

    generic: bool = True
    _trusted: set[int] = field(default_factory=set)
    _no_step: set[int] = field(default_factory=set)

    def look(self, rows: Sequence[Rows], tags: Tags) -> None:
        """Learn from the first rows of the file."""
        if not rows:
            return
        first = rows[0] if len(rows) == 1 else concat(rows)
        self._learn(first, tags)
        unplaced = np.isnan(first.step) & np.isfinite(first.epoch)
        if unplaced.any():  # epochs with fractions: those that happen to be whole are no steps either
            self._no_step.update(np.unique(first.tag[first.by_epoch]).tolist())
        for code in np.unique(first.tag[first.by_epoch]).tolist():
            epochs = first.epoch[(first.tag == code) & first.by_epoch]
            if len(epochs) > 1 and np.mean(np.diff(epochs) == 0) > REPEATED_EPOCHS:
                self._no_step.add(code)

    def keep(self, rows: Rows, tags: Tags) -> Rows:
        """The rows that count, steps taken off where the epoch is none."""
        if rows.doubtful.any():
            self._learn(rows, tags)
        kept = ~rows.doubtful | np.isin(rows.tag, list(self._trusted))
        if not self.generic:
            kept &= ~rows.generic
        rows = rows.where(kept)
        if self._no_step:
            stuck = rows.by_epoch & np.isin(rows.tag, list(self._no_step))
            rows = replace(rows, step=np.where(stuck, np.nan, rows.step))
        return rows

    def _learn(self, rows: Rows, tags: Tags) -> None:
        """Trust tags of doubtful lines that repeat and move, and those that beyond-doubt lines hold, too."""
        names: list[str] = []
        self._trusted.update(np.unique(rows.tag[~rows.doubtful]).tolist())
        for code in np.unique(rows.tag[rows.doubtful]).tolist():
            if code in self._trusted:
                continue
            values = rows.value[rows.tag == code]
            names = names or list(tags.codes)
            moves = len(np.unique(values)) > 1 or not np.isfinite(values).all()
            if len(values) >= REPEATS and (moves or canonical(names[code]).kind in _CONSTANT_KINDS):
                self._trusted.add(code)


def concat(rows: Sequence[Rows]) -> Rows:
    """Rows of several blocks, one after the other."""
    return Rows(*(np.concatenate([getattr(r, n) for r in rows]) for n in Rows.__dataclass_fields__))


def to_frame(rows: Rows, tags: Tags, first_seq: int) -> pl.DataFrame:
    """Rows as the columns of ``metrics``."""
    return pl.DataFrame(
        {
            "rank": _integers(rows.rank, pl.Int32()),
            "tag": tags.series(rows.tag),
            "seq": np.arange(first_seq, first_seq + len(rows)),
            "step": _integers(rows.step, pl.Int64()),
            "epoch": pl.Series(rows.epoch, nan_to_null=True, dtype=pl.Float64),
            "tokens": _integers(rows.tokens, pl.Int64()),
            "wall_ns": pl.Series(rows.wall).set(pl.Series(rows.wall == NO_TIME), None),
            "value": rows.value,
        }
    )


def _integers(values: Floats, dtype: pl.DataType) -> pl.Series:
    """Whole numbers, null where NaN or outside of the type."""
    return pl.Series(values, nan_to_null=True).cast(dtype, strict=False)
