"""W&B history as parquet: the history artifact, or ``run.history()`` saved by a data frame.

One row a call of ``wandb.log``, one column a metric, ``_step`` among them; null means that nothing was logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import MIB, check_columns, check_inflation
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisPlan, AxisRule, axis_columns, plan_axes
from afterrun.loaders.tables.cells import numbers
from afterrun.loaders.tables.wide import melt
from afterrun.loaders.wandb.axes import HistoryAxes
from afterrun.loaders.wandb.sampling import sampled_note

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

MAX_FOOTER_BYTES = 4 * MIB
BATCH_VALUES = 1 << 20

_MAGIC = b"PAR1"
_STEP = "_step"
_STEP_IN_FOOTER = b"\x05_step"  # a thrift string: its length, then its bytes
_RULE = AxisRule(step=(_STEP,), soft_step=(), wall=("_timestamp",))
_NAMED = 8


class WandbParquet(Loader):
    """Parquet of a W&B history: one column a metric, and `_step`."""

    format = "wandb-parquet"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """The magic `PAR1`, and a column `_step` in the footer."""
        return head.startswith(_MAGIC) and _STEP_IN_FOOTER in _footer(path)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the row groups. Raises ``UnreadableError`` or ``LimitError`` before anything is decoded."""
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # this path only

        try:
            file = ParquetFile(source.path, page_checksum_verification=True)
        except (ValueError, OSError) as error:  # pyarrow's own errors are one or the other
            raise UnreadableError(f"{source.name}: damaged parquet ({_first_line(error)})") from error
        with file:
            yield from _batches(source, file)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _footer(path: Path) -> bytes:
    """The schema and what else stands at the end of a parquet file; nothing if that is not sound."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - 8, 0))
            tail = file.read(8)
            length = int.from_bytes(tail[:4], "little")
            if tail[4:] != _MAGIC or length > size - 8:
                return b""
            file.seek(size - 8 - length)
            return file.read(min(length, MAX_FOOTER_BYTES))
    except OSError:
        return b""


def _batches(source: Source, file: ParquetFile) -> Iterator[Batch]:
    meta = file.metadata
    check_columns(source.name, meta.num_columns)
    unpacked = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    check_inflation(source.name, source.size_bytes, unpacked)
    names = file.schema_arrow.names
    names = [name for name in names if names.count(name) == 1]
    rows = max(BATCH_VALUES // max(len(names), 1), 1)
    table, bad = _Table(), list[int]()
    for group in range(meta.num_row_groups):
        left = meta.row_group(group).num_rows
        try:
            for part in file.iter_batches(batch_size=rows, row_groups=[group], columns=names):
                frame = table.long(pl.DataFrame(pl.from_arrow(part)))
                left -= len(part)
                if len(frame):
                    yield Batch(frames={"metrics": frame})
        except (ValueError, OSError):
            bad.append(left)
    if bad:
        groups = f"{len(bad)} of {meta.num_row_groups} row groups"
        yield Batch(damaged=sum(bad), notes=(f"{groups} are damaged: {sum(bad):,} rows left out",))
    sampled = sampled_note(np.concatenate(table.steps)) if table.steps else None
    notes = (*table.notes(), *([sampled] if sampled else []))
    yield Batch(notes=notes, sampled=sampled is not None)


class _Table:
    """Turns the row groups of one file into long form."""

    def __init__(self) -> None:
        self.steps: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
        self._plan: AxisPlan | None = None
        self._others: dict[str, None] = {}
        self._seq = 0
        self._axes = HistoryAxes()

    def long(self, wide: pl.DataFrame) -> pl.DataFrame:
        """Rows of ``metrics``, row-major; columns without numbers are remembered for the notes."""
        values: dict[int, pl.Series] = {}
        for i, column in enumerate(wide.get_columns()):
            read = _numeric(column)
            if read is None:
                self._others[column.name] = None
            else:
                values[i] = read
        if self._plan is None:
            self._plan = plan_axes(wide.columns, values, [], _RULE)
        axes = axis_columns(self._plan, values, None)
        tagged = {wide.columns[i]: s for i, s in values.items() if i != self._plan.index}
        if _STEP in tagged:
            self.steps.append(tagged[_STEP].drop_nulls().to_numpy())
        frame = melt(tagged, axes, np.ones(len(wide), np.bool_), self._seq)
        self._seq += len(frame)
        return self._axes.place_long(frame)

    def notes(self) -> Iterator[str]:
        """What was left out."""
        if self._others:
            names = list(self._others)
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"columns without numbers left out: {', '.join(names[:_NAMED])}{more}"
        if self._plan is not None:
            yield from self._plan.notes


def _numeric(column: pl.Series) -> pl.Series | None:
    """Float64 values of a column of numbers, truths, or texts that spell numbers; else None."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64)
    if column.dtype == pl.String:
        values, words = numbers(column)
        if values.count() and (words is None or int(words.sum()) <= values.count()):
            return values
    return None
