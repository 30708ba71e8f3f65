"""Wide tables (one row a moment, one column a metric) into the long form of ``metrics``.

Every cell that holds a number becomes one row, in row-major order, axis columns included; a cell that
holds nothing becomes none, a cell of words is counted. What a column is, and which columns are axes, is
decided on its first block and then holds for the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.axes import (
    AxisColumns,
    AxisPlan,
    AxisRule,
    axis_columns,
    holds_moments,
    is_wall_name,
    plan_axes,
)
from afterrun.loaders.cells import is_nothing, numbers
from afterrun.loaders.schema import Batch
from afterrun.loaders.tablereader import Places, RowBlock, TableReader

AxisMaker = Callable[[Mapping[str, pl.Series]], AxisColumns]
"""Axis columns from numeric columns by name, for dialects whose axes stand in no column."""

_MOMENTS_TRIED = 20
_COLUMNS_NAMED = 8


@dataclass(slots=True)
class _Column:
    """What one column turned out to hold."""

    name: str
    text: bool = False
    numbers: int = 0
    bad: Places = field(default_factory=Places)
    first_text: str | None = None
    constant: bool = True

    def see(self, texts: list[str]) -> None:
        for text in texts:
            if self.first_text is None:
                self.first_text = text
            elif text != self.first_text:
                self.constant = False
                return


@dataclass(frozen=True, slots=True)
class _Plan:
    axes: AxisPlan
    columns: tuple[_Column, ...]
    moments: tuple[int, ...]


class WideTable:
    """Turns the blocks of one reader into batches. Stateful: one object for one file.

    ``rename`` maps names of the header to tags; names not in it are their own tag.
    ``make_axes`` overrides the axis columns found by ``rule``.
    """

    def __init__(
        self,
        reader: TableReader,
        rule: AxisRule | None = None,
        *,
        make_axes: AxisMaker | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> None:
        self._reader = reader
        self._rule = rule or AxisRule()
        self._make_axes = make_axes
        self._rename = rename or {}
        self._plans: dict[tuple[str, ...], _Plan] = {}
        self._seq = 0
        self._given_up = Places()

    def batches(self) -> Iterator[Batch]:
        """Rows of ``metrics`` block by block, then parameters, losses and notes."""
        for block in self._reader.blocks():
            frame = self._long(block)
            if len(frame):
                yield Batch(frames={"metrics": frame})
        yield self._end()

    def _long(self, block: RowBlock) -> pl.DataFrame:
        decimal_comma = self._reader.layout.decimal_comma
        read = {i: numbers(s, decimal_comma=decimal_comma) for i, s in enumerate(block.cells)}
        plan = self._plans.get(block.names)
        if plan is None:
            plan = self._plans[block.names] = self._plan(block, read)
        values: dict[int, pl.Series] = {}
        keep = np.ones(len(block.lines), dtype=np.bool_)
        for i, (column, words) in read.items():
            if plan.columns[i].text:
                if i not in plan.moments:
                    plan.columns[i].see(_texts(block.cells[str(i)]))
            else:
                values[i] = column
                self._judge(plan.columns[i], block, i, words, keep)
        wall_text = block.cells[str(plan.axes.wall)] if plan.axes.wall in plan.moments else None
        axes = axis_columns(plan.axes, values, wall_text)
        if self._make_axes is not None:
            axes = self._make_axes({block.names[i]: s for i, s in values.items()})
        tags = {i: self._rename.get(block.names[i], block.names[i]) for i in values if i != plan.axes.index}
        frame = melt({tags[i]: s for i, s in values.items() if i in tags}, axes, keep, self._seq)
        for i in tags:
            plan.columns[i].numbers += len(values[i]) - values[i].null_count()
        self._seq += len(frame)
        return frame

    def _judge(
        self, column: _Column, block: RowBlock, i: int, words: pl.Series | None, keep: NDArray[np.bool_]
    ) -> None:
        """Book the words of a numeric column; a short row that holds one has lost a delimiter."""
        if words is None:
            return
        cells = block.cells[str(i)]
        short = set(block.short)
        for row in words.arg_true().to_list():
            line = int(block.lines[row])
            if row in short:
                if keep[row]:
                    self._given_up.add(line)
                keep[row] = False
            else:
                column.bad.add(line)
                column.see([cells[row].strip()])

    def _plan(self, block: RowBlock, read: Mapping[int, tuple[pl.Series, pl.Series | None]]) -> _Plan:
        columns, values, moments = [], {}, []
        for i, (numeric, words) in read.items():
            name = block.names[i]
            is_text = words is not None and int(words.sum()) > len(numeric) - numeric.null_count()
            if words is not None and is_text and is_wall_name(name):
                first = _texts(block.cells[str(i)].filter(words).head(_MOMENTS_TRIED))
                if holds_moments(first):
                    moments.append(i)
            if not is_text:
                values[i] = numeric
            columns.append(_Column(name, text=is_text))
        axes = plan_axes(block.names, values, moments, self._rule)
        return _Plan(axes, tuple(columns), tuple(moments))

    def _end(self) -> Batch:
        params: dict[str, str] = {}
        notes = list(self._layout_notes())
        damaged = self._reader.losses.damaged + self._given_up.count
        for plan in self._plans.values():
            notes += plan.axes.notes if self._make_axes is None else ()
            skipped = []
            for i, column in enumerate(plan.columns):
                words_only = column.text or (not column.numbers and column.bad.count)
                if words_only and i not in plan.moments:
                    if column.constant and column.first_text is not None:
                        params[column.name] = json.dumps(column.first_text)
                    elif column.first_text is not None:
                        skipped.append(column.name)
            bad = [c for c in plan.columns if c.numbers and c.bad.count]
            damaged += sum(c.bad.count for c in bad)
            notes += _bad_cells(bad)
            if skipped:
                notes.append(f"columns of words left out: {_list(skipped)}")
        if self._given_up.count:
            notes.append(f"short rows with unreadable cells left out: {self._given_up}")
        notes += self._reader.losses.notes()
        frames = {"params": pl.DataFrame({"key": [*params], "value": [*params.values()]})} if params else {}
        return Batch(frames=frames, damaged=damaged, notes=tuple(notes))

    def _layout_notes(self) -> Iterator[str]:
        layout = self._reader.layout
        if layout.decimal_comma:
            yield f"numbers have a decimal comma, cells are separated by {layout.delimiter!r}"
        if layout.preamble:
            yield f"{layout.preamble} lines before the header were skipped"


def load_wide(path: Path, rule: AxisRule | None = None) -> Iterator[Batch]:
    """All batches of one wide table. Raises as ``TableReader`` does."""
    yield from WideTable(TableReader(path), rule).batches()


def melt(
    values: Mapping[str, pl.Series], axes: AxisColumns, keep: NDArray[np.bool_], first_seq: int
) -> pl.DataFrame:
    """Long ``metrics`` rows of numeric columns: one for each value that is not null, row-major.

    ``values``: tag -> Float64 of equal length; ``keep``: rows that count; ``seq`` begins at ``first_seq``.
    """
    table = pl.DataFrame(dict(values))
    grid = table.to_numpy()
    present = np.repeat(keep[:, None], len(values), axis=1)
    if sum(c.null_count() for c in table):
        present &= table.select(pl.all().is_not_null()).to_numpy()
    rows, cols = np.nonzero(present)
    frame = {
        "tag": pl.Series(list(values), dtype=pl.Categorical()).gather(cols),
        "seq": pl.Series(np.arange(first_seq, first_seq + len(rows), dtype=np.int64)),
        "value": pl.Series(grid[rows, cols]),
    }
    for name, axis in (
        ("step", axes.step),
        ("epoch", axes.epoch),
        ("tokens", axes.tokens),
        ("wall_ns", axes.wall_ns),
    ):
        if axis is not None:
            frame[name] = axis.gather(rows)
    return pl.DataFrame(frame)


def _texts(cells: pl.Series) -> list[str]:
    if cells.dtype != pl.String:
        return []
    return [
        t
        for t in cells.drop_nulls().str.strip_chars().unique(maintain_order=True).to_list()
        if not is_nothing(t)
    ]


def _bad_cells(columns: list[_Column]) -> Iterator[str]:
    for column in columns[:_COLUMNS_NAMED]:
        cells = f"{column.bad.count} cell{'s' if column.bad.count > 1 else ''}"
        yield f"{column.name!r}: {cells} without a number left out: {column.bad}"
    if len(columns) > _COLUMNS_NAMED:
        yield f"cells without a number in {len(columns) - _COLUMNS_NAMED} more columns left out"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _COLUMNS_NAMED} more" if len(names) > _COLUMNS_NAMED else ""
    return ", ".join(names[:_COLUMNS_NAMED]) + more
