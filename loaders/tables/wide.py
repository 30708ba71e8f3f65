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

from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import (
    AxisColumns,
    AxisPlan,
    AxisRule,
    axis_columns,
    holds_moments,
    is_wall_name,
    plan_axes,
)
from afterrun.loaders.tables.cells import is_nothing, numbers
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.labels import Labels, labelled, plan_labels, row_labels
from afterrun.loaders.tables.reader import RowBlock, TableReader
from afterrun.loaders.wanted import Wanted

AxisMaker = Callable[[Mapping[str, pl.Series]], AxisColumns]
"""Axis columns from numeric columns by name, for dialects whose axes stand in no column."""

_Read = Mapping[int, tuple[pl.Series, pl.Series | None]]

_MOMENTS_TRIED = 20
_NAMED = 8
_LEAST_CHOSEN = 2
"""Columns from which a block can be narrowed."""


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
        """Remember whether the words of a column are always the same."""
        self.first_text = texts[0] if self.first_text is None and texts else self.first_text
        self.constant = self.constant and all(t == self.first_text for t in texts)

    @property
    def holds_words(self) -> bool:
        """Words and no number: a setting or a remark, no metric."""
        return self.first_text is not None and (self.text or not self.numbers)


@dataclass(frozen=True, slots=True)
class _Plan:
    axes: AxisPlan
    columns: tuple[_Column, ...]
    moments: tuple[int, ...]
    labels: Labels
    chosen: tuple[int, ...]
    """Positions of the columns to be read, ..."""
    tagged: frozenset[int]
    """... and of those that become rows."""


class WideTable:
    """Turns the blocks of one reader into batches. Stateful: one object for one file.

    ``make_axes`` overrides the axis columns that ``rule`` finds. With ``wanted`` other columns are left out and,
    from the second block on, not even read.
    """

    def __init__(
        self,
        reader: TableReader,
        rule: AxisRule | None = None,
        make_axes: AxisMaker | None = None,
        wanted: Wanted | None = None,
    ) -> None:
        self._reader = reader
        self._rule = rule or AxisRule()
        self._make_axes = make_axes
        self._wanted = wanted
        self._plans: dict[tuple[str, ...], _Plan] = {}
        self._seq = 0
        self._given_up = Places()

    def batches(self) -> Iterator[Batch]:
        """Rows of ``metrics`` block by block, then parameters, losses and notes."""
        for block in self._reader.blocks(None if self._wanted is None else self._chosen):
            frame = self._long(block)
            if len(frame):
                yield Batch(frames={"metrics": frame})
        yield self._end()

    def _chosen(self, names: tuple[str, ...]) -> tuple[int, ...] | None:
        """Columns to be read of a section, None as long as that is not known."""
        plan = self._plans.get(names)
        return None if plan is None else plan.chosen

    def _long(self, block: RowBlock) -> pl.DataFrame:
        decimal_comma = self._reader.layout.decimal_comma
        plan = self._plans.get(block.names)
        columns = block.cells if plan is None else block.cells.select(map(str, plan.chosen))
        read = {int(s.name): numbers(s, decimal_comma=decimal_comma) for s in columns}
        if plan is None:
            plan = self._plan(block, read)
            read = {i: read[i] for i in plan.chosen}
        values: dict[int, pl.Series] = {}
        keep = np.ones(len(block.lines), dtype=np.bool_)
        for i, (column, words) in read.items():
            seen = plan.columns[i]
            seen.numbers += len(column) - column.null_count()
            if not seen.text:
                values[i] = column
                if words is not None:
                    self._judge(seen, block, block.cells[str(i)], words, keep)
            elif i not in (*plan.moments, plan.labels.split, plan.labels.name):
                seen.see(_texts(block.cells[str(i)]))
        if self._make_axes is None:
            clock = block.cells[str(plan.axes.wall)] if plan.axes.wall in plan.moments else None
            axes = axis_columns(plan.axes, values, clock)
        else:
            axes = self._make_axes({block.names[i]: s for i, s in values.items()})
        tagged = {block.names[i]: s for i, s in values.items() if i in plan.tagged}
        frame = melt(tagged, axes, keep, self._seq)
        if plan.labels:
            plain = {block.names[i] for i in plan.axes.positions}
            frame = labelled(frame, tagged, keep, row_labels(plan.labels, block.cells), plain)
        self._seq += len(frame)
        return frame

    def _plan(self, block: RowBlock, read: _Read) -> _Plan:
        """What the columns of a section are: more words than numbers make a column of words."""
        columns, values, moments = [], {}, []
        for i, (numeric, words) in read.items():
            name = block.names[i]
            if words is None or int(words.sum()) <= len(numeric) - numeric.null_count():
                values[i] = numeric
                columns.append(_Column(name))
                continue
            columns.append(_Column(name, text=True))
            if is_wall_name(name) and holds_moments(
                _texts(block.cells[str(i)].filter(words).head(_MOMENTS_TRIED))
            ):
                moments.append(i)
        words_of = {
            i: _texts(block.cells[str(i)])
            for i, column in enumerate(columns)
            if column.text and i not in moments
        }
        labels = plan_labels(block.names, words_of, list(values))
        order = _curve_by_curve(row_labels(labels, block.cells)) if labels else None
        axes = plan_axes(block.names, values, moments, self._rule, order)
        every = self._wanted is None or self._make_axes is not None or bool(labels)
        tagged = {i for i in values if i != axes.index and (every or self._reads(block.names[i]))}
        chosen = range(len(columns)) if every else sorted(tagged.union(axes.positions))
        if len(chosen) < _LEAST_CHOSEN:
            chosen = sorted({*chosen, *range(min(len(columns), _LEAST_CHOSEN))})
        plan = _Plan(axes, tuple(columns), tuple(moments), labels, tuple(chosen), frozenset(tagged))
        self._plans[block.names] = plan
        return plan

    def _reads(self, name: str) -> bool:
        return self._wanted is not None and self._wanted.reads(name)

    def _judge(
        self, column: _Column, block: RowBlock, cells: pl.Series, words: pl.Series, keep: NDArray[np.bool_]
    ) -> None:
        """Book the words of a numeric column; a short row that holds one has lost a delimiter."""
        short = set(block.short)
        for row in words.arg_true().to_list():
            line = int(block.lines[row])
            if row not in short:
                column.bad.add(line)
                column.see([cells[row].strip()])
            elif keep[row]:
                self._given_up.add(line)
                keep[row] = False

    def _end(self) -> Batch:
        """Parameters from columns of one word, and what was lost."""
        columns = [plan.columns[i] for plan in self._plans.values() for i in plan.chosen]
        words = [c for c in columns if c.holds_words]
        params = {c.name: json.dumps(c.first_text) for c in words if c.constant}
        bad = [c for c in columns if c.bad.count and not c.holds_words]
        losses = self._reader.losses
        notes = [*self._layout_notes(), *losses.notes(), *_bad_cells(bad)]
        if self._make_axes is None:
            notes += [n for plan in self._plans.values() for n in plan.axes.notes]
        if self._given_up.count:
            notes.append(f"short rows with unreadable cells left out: {self._given_up}")
        varied = [c.name for c in words if not c.constant]
        if varied:
            more = f" and {len(varied) - _NAMED} more" if len(varied) > _NAMED else ""
            notes.append(f"columns of words left out: {', '.join(varied[:_NAMED])}{more}")
        notes += [
            f"{c.name!r} holds words; its {c.numbers} numbers were left out" for c in words if c.numbers
        ]
        frames = {"params": pl.DataFrame({"key": [*params], "value": [*params.values()]})} if params else {}
        damaged = losses.damaged + self._given_up.count + sum(c.bad.count for c in bad)
        return Batch(frames=frames, damaged=damaged, notes=tuple(notes))

    def _layout_notes(self) -> Iterator[str]:
        layout = self._reader.layout
        if layout.decimal_comma:
            yield f"numbers have a decimal comma, cells are separated by {layout.delimiter!r}"
        if layout.preamble:
            yield f"{layout.preamble} line{'s' if layout.preamble > 1 else ''} before the header skipped"


def load_wide(path: Path, rule: AxisRule | None = None, wanted: Wanted | None = None) -> Iterator[Batch]:
    """All batches of one wide table. Raises as ``TableReader`` does."""
    yield from WideTable(TableReader(path), rule, wanted=wanted).batches()


Bands = Mapping[str, tuple[pl.Series | None, pl.Series | None]]
"""Tag -> lowest and highest of the values that each aggregated value stands for."""


def melt(
    values: Mapping[str, pl.Series],
    axes: AxisColumns,
    keep: NDArray[np.bool_],
    first_seq: int,
    bands: Bands | None = None,
) -> pl.DataFrame:
    """Long ``metrics`` rows of numeric columns: one for each value that is not null, row-major.

    ``values``: tag -> Float64 of equal length; ``keep``: rows that count; ``seq`` begins at ``first_seq``;
    ``bands`` become ``low`` and ``high``.
    """
    grid = np.empty((len(keep), len(values)))
    present = np.repeat(keep[:, None], len(values), axis=1)
    for i, column in enumerate(values.values()):
        grid[:, i] = column.to_numpy()
        if column.null_count():
            present[:, i] &= column.is_not_null().to_numpy()
    tags = np.broadcast_to(np.arange(len(values), dtype=np.uint32), grid.shape)
    if present.all():
        counts: NDArray[np.int64] | int = len(values)
        cells, of = grid.ravel(), tags.ravel()
    else:
        counts, cells, of = np.count_nonzero(present, axis=1), grid[present], tags[present]
    frame = {
        "tag": pl.Series(list(values), dtype=pl.Categorical()).gather(pl.Series(of)),
        "seq": pl.Series(np.arange(first_seq, first_seq + len(cells), dtype=np.int64)),
        "value": pl.Series(cells),
    }
    for name, axis in (
        ("step", axes.step),
        ("epoch", axes.epoch),
        ("tokens", axes.tokens),
        ("wall_ns", axes.wall_ns),
    ):
        if axis is not None:
            frame[name] = _repeated(axis, counts)
    if bands:
        none = pl.repeat(None, len(keep), dtype=pl.Float64, eager=True)
        for i, name in enumerate(("low", "high")):
            columns = [bands.get(tag, (None, None))[i] for tag in values]
            ends = pl.DataFrame([(none if c is None else c).alias(str(k)) for k, c in enumerate(columns)])
            frame[name] = pl.Series(ends.to_numpy()[present]).fill_nan(None)
    return pl.DataFrame(frame)


def _repeated(axis: pl.Series, counts: NDArray[np.int64] | int) -> pl.Series:
    """Each value as often as its row has cells; as an array where there is no null, which is faster."""
    if not axis.null_count():
        return pl.Series(np.repeat(axis.to_numpy(), counts))
    at = np.repeat(np.arange(len(axis), dtype=np.uint32), counts)
    return axis.gather(pl.Series(at))


def _curve_by_curve(labels: pl.Series) -> NDArray[np.int64]:
    """Rows of one label after the other, each in order."""
    return np.argsort(labels.fill_null("").rank("dense").to_numpy(), kind="stable")


def _texts(cells: pl.Series) -> list[str]:
    """Distinct words of a column, in order."""
    if cells.dtype != pl.String:
        return []
    distinct = cells.drop_nulls().str.strip_chars().unique(maintain_order=True)
    return [t for t in distinct.to_list() if not is_nothing(t)]


def _bad_cells(columns: list[_Column]) -> Iterator[str]:
    for column in columns[:_NAMED]:
        cells = f"{column.bad.count} cell{'s' if column.bad.count > 1 else ''}"
        yield f"{column.name!r}: {cells} without a number left out: {column.bad}"
    if len(columns) > _NAMED:
        yield f"cells without a number in {len(columns) - _NAMED} more columns left out"
