"""CSV files that W&B writes: the export of a chart, ``run.history()``, and the table of runs.

Non-finite values are the words ``NaN``, ``Infinity``, ``-Infinity``; an empty cell means that nothing was logged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.personal import is_personal
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.axes import (
    SOFT_STEP_NAMES,
    AxisPlan,
    AxisRule,
    axis_columns,
    flat,
    plan_axes,
)
from afterrun.loaders.tables.cells import is_nothing, number, numbers
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.reader import RowBlock, TableReader
from afterrun.loaders.tables.wide import load_wide, melt
from afterrun.loaders.wandb.axes import HistoryAxes
from afterrun.loaders.wandb.panel import PanelColumn, looks_like_panel, panel_columns
from afterrun.loaders.wandb.sampling import sampled_note

_STEP = "_step"
_HISTORY_RULE = AxisRule(step=(_STEP,), soft_step=(), wall=("_timestamp",))
_TABLE_COLUMNS = frozenset(
    {"Created", "Runtime", "Sweep", "User", "Tags", "Notes", "ID", "End Time", "Hostname"}
)
_TABLE_WITHHELD = frozenset({"User", "Notes", "Hostname"})


class WandbPanelCsv(Loader):
    """Export of a W&B chart: an x axis, then value, lowest and highest of each run and metric."""

    format = "wandb-panel-csv"
    family = "curves"
    snapshot = True

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """Columns named `RUN - METRIC` behind the first, with `__MIN` among them or `Step` as the first."""
        layout = peek(head)
        return layout is not None and layout.delimiter == "," and looks_like_panel(layout.labels)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; each run or group of the chart is a sub-run. Raises as ``TableReader`` does."""
        yield from _Panel(TableReader(source.path)).batches()


class _Panel:
    """Turns the blocks of one chart export into batches."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._axis = reader.layout.labels[0]
        self._names = reader.layout.names
        self._runs = _by_run(panel_columns(reader.layout.labels))
        self._plan: AxisPlan | None = None
        self._seq = 0
        self._bad = 0

    def batches(self) -> Iterator[Batch]:
        for block in self._reader.blocks():
            if block.names != self._names:
                self._names, self._runs = block.names, _by_run(panel_columns(block.names))
            yield from self._block(block)
        losses = self._reader.losses
        bad = [f"{self._bad} cells without a number left out"] if self._bad else []
        axis = list(self._plan.notes) if self._plan else []
        notes = (f"x axis: {self._axis}", *axis, *losses.notes(), *bad)
        yield Batch(damaged=losses.damaged + self._bad, notes=notes)

    def _block(self, block: RowBlock) -> Iterator[Batch]:
        axis, words = numbers(block.cells["0"])
        dated = words is not None and 2 * int(words.sum()) > len(axis)
        if self._plan is None:
            soft = (*SOFT_STEP_NAMES, *_own_axis(flat(self._axis)))
            numeric, dates = ({}, [0]) if dated else ({0: axis}, [])
            self._plan = plan_axes([self._axis], numeric, dates, AxisRule(soft_step=soft))
        axes = axis_columns(self._plan, {0: axis}, block.cells["0"] if dated else None)
        for run, columns in self._runs.items():
            values = {c.metric: self._read(block, c.at) for c in columns}
            bands = {c.metric: (self._end(block, c.low), self._end(block, c.high)) for c in columns}
            keep = (
                pl.DataFrame(values).select(pl.any_horizontal(pl.all().is_not_null())).to_series().to_numpy()
            )
            if not dated:
                values.setdefault(self._axis, axis)
            frame = melt(values, axes, keep, self._seq, bands)
            self._seq += len(frame)
            if len(frame):
                yield Batch(frames={"metrics": frame}, subrun=run)

    def _read(self, block: RowBlock, at: int) -> pl.Series:
        values, words = numbers(block.cells[str(at)])
        self._bad += 0 if words is None else int(words.sum())
        return values

    def _end(self, block: RowBlock, at: int | None) -> pl.Series | None:
        return None if at is None else self._read(block, at)


def _by_run(columns: list[PanelColumn]) -> dict[str, list[PanelColumn]]:
    """Columns of each run, the last run first: charts list the newest run first."""
    runs: dict[str, list[PanelColumn]] = {}
    for column in reversed(columns):
        runs.setdefault(column.run, []).insert(0, column)
    return runs


def _own_axis(name: str) -> tuple[str, ...]:
    """An axis of the user's choice counts steps if it is whole and hardly ever falls; a time never does."""
    return () if "time" in name else (name,)


class WandbHistoryCsv(Loader):
    """What `run.history()` or `run.scan_history()` returned, saved as CSV."""

    format = "wandb-history-csv"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """A column `_step` among others."""
        layout = peek(head)
        return layout is not None and len(layout.labels) > 1 and _STEP in layout.labels

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; says so where the rows look drawn at random from a longer history."""
        steps: list[pl.Series] = []
        axes = HistoryAxes()
        for batch in load_wide(source.path, _HISTORY_RULE):
            frames = dict(batch.frames)
            if "metrics" in frames:
                steps.append(frames["metrics"].filter(pl.col("tag") == _STEP)["value"])
                frames["metrics"] = axes.place_long(frames["metrics"])
            if "params" in frames:
                frames |= _without_persons(frames.pop("params"))
            yield Batch(frames=frames, damaged=batch.damaged, notes=batch.notes)
        note = sampled_note(pl.concat(steps).to_numpy()) if steps else None
        if note:
            yield Batch(notes=(note,), sampled=True)


def _without_persons(params: pl.DataFrame) -> dict[str, pl.DataFrame]:
    settings = Settings()
    settings.add_all("", ((k, json.loads(v)) for k, v in params.iter_rows()))
    return settings.frames()


class WandbRunsTable(Loader):
    """Export of the W&B table of runs: one row a run, with its settings and final values, no curve."""

    format = "wandb-runs-table"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """The columns `Name` and `State` and another one of those that every such table has."""
        layout = peek(head)
        return (
            layout is not None
            and {"Name", "State"} <= set(layout.labels)
            and bool(_TABLE_COLUMNS & set(layout.labels))
        )

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters `RUN.COLUMN`. Raises as ``TableReader`` does."""
        reader = TableReader(source.path)
        settings, taken = Settings(), dict[str, int]()
        for block in reader.blocks():
            columns = [block.cells[str(i)].cast(pl.String).to_list() for i in range(len(block.names))]
            for cells in zip(*columns, strict=True):
                _add_run(dict(zip(block.names, cells, strict=True)), settings, taken)
        runs = sum(taken.values())
        notes = [
            f"a table of {runs} runs: settings and final values, no curves",
            *reader.losses.notes(),
            *settings.notes(),
        ]
        yield Batch(frames=settings.frames(), damaged=reader.losses.damaged, notes=tuple(notes))


def _add_run(row: Mapping[str, str | None], settings: Settings, taken: dict[str, int]) -> None:
    name = (row.get("Name") or "").strip() or "unnamed"
    taken[name] = taken.get(name, 0) + 1
    run = name if taken[name] == 1 else f"{name}~{taken[name]}"
    for column, cell in row.items():
        if column == "Name" or column in _TABLE_WITHHELD or is_personal(column) or is_nothing(cell or ""):
            continue
        settings.add(f"{run}.{column}", _value((cell or "").strip()))


def _value(cell: str) -> object:
    """What a cell of the table says; W&B writes numbers as digits and truth as words."""
    if cell.lower() in ("true", "false"):
        return cell.lower() == "true"
    read = number(cell)
    if read is None:
        return cell
    return int(read) if read.is_integer() and abs(read) < 2**53 and "." not in cell else read
