"""Blocks of JSON rows into the long form of ``metrics``: axes, parameters, and the books.

Every number is one row under its flattened name. Words that never change are parameters; a column that says
train or val of every row is put in front of the tags of its rows; other words are left out and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, replace

import numpy as np
import polars as pl

from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLosses
from afterrun.loaders.names import SPLIT_WORDS
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.axes import (
    AxisColumns,
    AxisPlan,
    AxisRule,
    axis_columns,
    flat,
    holds_moments,
    is_wall_name,
    plan_axes,
)
from afterrun.loaders.tables.wide import melt

JsonAxes = Callable[[JsonBlock], AxisColumns]
"""Axis columns of a block, for dialects whose axes stand in no column of their own."""

SPLIT_KEYS = frozenset(
    {"mode", "split", "phase", "stage", "subset", "set", "partition", "type", "kind", "event", "prefix"}
)
"""Names whose words may say which split a row is of (lower case)."""

_MOMENTS_TRIED = 20
_NAMED = 8


@dataclass(slots=True)
class _Word:
    """What the words of one name turned out to be."""

    first: str
    constant: bool = True


@dataclass(frozen=True, slots=True)
class _Axes:
    """The plan of the file by names, for blocks differ in their columns."""

    plan: AxisPlan
    names: tuple[str, ...]

    def name(self, position: int | None) -> str | None:
        """Name of an axis column, None where there is no such axis."""
        return None if position is None else self.names[position]

    def within(self, names: Iterable[str]) -> AxisPlan:
        """The plan for a block with these columns."""
        places = {name: i for i, name in enumerate(names)}
        here = {
            axis: places.get(self.names[at])
            for axis in ("step", "epoch", "tokens", "wall")
            if (at := getattr(self.plan, axis)) is not None
        }
        return replace(self.plan, **here)  # type: ignore[arg-type]  # the four names above


class JsonTable:
    """Turns the blocks of one file into batches. Stateful: one object for one file.

    ``make_axes`` overrides the axis columns that ``rule`` finds by name and content.
    """

    def __init__(
        self,
        blocks: Iterable[JsonBlock],
        losses: JsonLosses,
        rule: AxisRule | None = None,
        make_axes: JsonAxes | None = None,
    ) -> None:
        self._blocks = blocks
        self._losses = losses
        self._rule = rule or AxisRule()
        self._make_axes = make_axes
        self._axes: _Axes | None = None
        self._split: str | None = None
        self._order: dict[str, None] = {}
        self._words: dict[str, _Word] = {}
        self._seq = 0

    def batches(self) -> Iterator[Batch]:
        """Rows of ``metrics`` block by block, then parameters, losses and notes."""
        for block in self._blocks:
            axes = self._axis_columns(block)
            values = self._tagged(block)
            if not values:
                continue
            frame = melt(values, axes, np.ones(block.rows, dtype=np.bool_), self._seq)
            self._seq += len(frame)
            if len(frame):
                yield Batch(frames={"metrics": frame})
        yield self._end()

    def _tagged(self, block: JsonBlock) -> dict[str, pl.Series]:
        """Numbers by tag, in the order in which the names first came up in the file."""
        self._order |= dict.fromkeys(block.numbers)
        ordered = {n: block.numbers[n] for n in self._order if n in block.numbers}
        tagged = self._split_up(replace(block, numbers=ordered)).numbers
        for name, words in block.words.items():
            if name != self._split:
                self._see(name, words)
        return dict(tagged)

    def _split_up(self, block: JsonBlock) -> JsonBlock:
        """The values of each split under names of their own, where a column says which split a row is of."""
        if self._split is None:
            self._split = next((n for n, w in block.words.items() if _is_split(n, w)), None)
        words = None if self._split is None else block.words.get(self._split)
        names = [*block.numbers]
        for word in [] if words is None else words.drop_nulls().unique(maintain_order=True):
            block = moved(block, (words == word).fill_null(value=False), f"{word.strip().lower()}/", names)
        return block

    def _see(self, name: str, words: pl.Series) -> None:
        distinct = words.drop_nulls().unique(maintain_order=True).to_list()
        if distinct:
            seen = self._words.setdefault(name, _Word(distinct[0]))
            seen.constant = seen.constant and distinct == [seen.first]

    def _axis_columns(self, block: JsonBlock) -> AxisColumns:
        if self._make_axes is not None:
            return self._make_axes(block)
        if self._axes is None or (self._orderless() and block.numbers.keys() - self._order.keys()):
            self._axes = self._planned(block)
        plan = self._axes.within(block.numbers)
        wall = self._axes.name(self._axes.plan.wall)
        clock = None if plan.clock or wall is None else block.words.get(wall)
        return axis_columns(plan, dict(enumerate(block.numbers.values())), clock)

    def _orderless(self) -> bool:
        return self._axes is not None and self._axes.plan.step is None and self._axes.plan.epoch is None

    def _planned(self, block: JsonBlock) -> _Axes:
        names = (*block.numbers, *block.words)
        moments = [
            len(block.numbers) + i
            for i, (name, words) in enumerate(block.words.items())
            if is_wall_name(name) and holds_moments(words.drop_nulls().head(_MOMENTS_TRIED).to_list())
        ]
        values = dict(enumerate(block.numbers.values()))
        # rows of several splits repeat an axis; each split is looked at apart
        apart = [c for n, c in self._split_up(block).numbers.items() if n not in block.numbers]
        values |= {len(names) + i: column for i, column in enumerate(apart)}
        if apart:
            axes = {n for group in astuple(self._rule) for n in group}
            values = {i: c for i, c in values.items() if i >= len(names) or flat(names[i]) in axes}
        plan = plan_axes((*names, *("" for _ in apart)), values, moments, self._rule)
        return _Axes(plan, names)

    def _end(self) -> Batch:
        """Parameters, and what was lost."""
        settings = Settings()
        clock = self._axes.name(self._axes.plan.wall) if self._axes is not None else None
        for name, word in self._words.items():
            if word.constant and name != clock:
                settings.add(name, word.first)
        varied = [n for n, w in self._words.items() if not w.constant and n != clock]
        notes = [*self._losses.notes(), *settings.notes()]
        if self._axes is not None and self._seq:
            notes += self._axes.plan.notes
        if varied:
            more = f" and {len(varied) - _NAMED} more" if len(varied) > _NAMED else ""
            notes.append(f"words left out: {', '.join(varied[:_NAMED])}{more}")
        return Batch(frames=settings.frames(), damaged=self._losses.damaged, notes=tuple(notes))


def _is_split(name: str, words: pl.Series) -> bool:
    """Whether every word of a column is one that names a split."""
    distinct = words.drop_nulls().unique().to_list()
    return (
        name.lower() in SPLIT_KEYS
        and bool(distinct)
        and all(w.strip().lower() in SPLIT_WORDS for w in distinct)
    )


def moved(block: JsonBlock, rows: pl.Series, prefix: str, names: Iterable[str]) -> JsonBlock:
    """The block with the values of some rows under other names: ``prefix`` before each of ``names``."""
    numbers: dict[str, pl.Series] = {}
    chosen = set(names)
    for name, column in block.numbers.items():
        if name not in chosen:
            numbers[name] = column
            continue
        both = pl.select(pl.when(rows).then(column).alias("there"), pl.when(~rows).then(column).alias("here"))
        if both["here"].null_count() < len(column):
            numbers[name] = both["here"]
        if both["there"].null_count() < len(column):
            numbers[prefix + name] = both["there"]
    return replace(block, numbers=numbers)
