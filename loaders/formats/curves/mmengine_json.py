"""``vis_data/scalars.json`` of MMEngine, and ``vis_data/<time>.json`` beside it with the same rows.

Training rows hold ``iter`` and ``epoch``, and their ``step`` is the iteration. Validation rows hold ``step``
only, which is the *epoch* where the loop counts epochs. The two axes are kept apart: the step of a validation
row is the last training iteration written before it, null where there is none, and its ``step`` becomes the
epoch. Names that both kinds of rows use (``time``, ``data_time``, ``step``) get ``val/`` in front in
validation rows, for they are other quantities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLines
from afterrun.loaders.jsonlog.peek import Peek, peek_rows
from afterrun.loaders.jsonlog.table import JsonTable, moved
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisColumns
from afterrun.loaders.tables.cells import whole

Floats = NDArray[np.float64]

_FOLDER = "vis_data"
_SHARED = ("time", "data_time", "step")


class MmengineJson(Loader):
    """Scalars of MMEngine (MMDetection 3, MMPretrain, MMPose, ...): training and validation rows."""

    format = "mmengine-json"
    family = "curves"
    snapshot = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """Lines of objects with ``step`` and ``iter`` or ``data_time``, or with ``step`` in ``vis_data``."""
        peek = peek_rows(head)
        if peek is None or "step" not in peek.numbers:
            return False
        return path.parent.name == _FOLDER or path.name == "scalars.json" or _is_mmengine(peek)

    def home(self, source: Source) -> str | None:
        """The folder above ``vis_data``, where the text log of the same run lies."""
        folder = source.name.rpartition("/")[0]
        parent, _, base = folder.rpartition("/")
        return parent if base == _FOLDER else None

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; validation rows stand at the last iteration before them."""
        lines = JsonLines(source.path)
        yield from JsonTable(_apart(lines.blocks()), lines.losses, make_axes=_Steps()).batches()


def _is_mmengine(peek: Peek) -> bool:
    """Training rows as the logger hook writes them: ``step`` repeats ``iter``."""
    numbers = peek.numbers
    return "iter" in numbers and numbers["step"] == numbers["iter"] and "time" in numbers


def _apart(blocks: Iterable[JsonBlock]) -> Iterator[JsonBlock]:
    """Values of validation rows under names of their own, where training rows use the same."""
    trained: dict[str, None] = dict.fromkeys(_SHARED)
    for block in blocks:
        training = block.numbers.get("iter")
        if training is None:
            yield moved(block, pl.repeat(True, block.rows, dtype=pl.Boolean, eager=True), "val/", trained)
            continue
        rows = training.is_not_null()
        trained |= {n: None for n, c in block.numbers.items() if c.filter(rows).is_not_null().any()}
        yield moved(block, ~rows, "val/", trained)


class _Steps:
    """Step and epoch of each row, carried from block to block."""

    def __init__(self) -> None:
        self._iter = self._epoch = np.nan

    def __call__(self, block: JsonBlock) -> AxisColumns:
        here, epoch = _floats(block, "iter"), _floats(block, "epoch")
        told = _floats(block, "val/step")
        last, at = _carried(here, self._iter), _carried(epoch, self._epoch)
        if block.rows:
            self._iter, self._epoch = last[-1], at[-1]
        val = np.isnan(here)
        # a loop without epochs writes the iteration; nothing else lies at or beyond the last one
        iterations = val & (np.isnan(at) & ~np.isnan(last) | (told >= last) & (told != at))
        step = np.where(iterations, told, last)
        epochs = np.where(val & ~iterations, told, np.where(val, at, epoch))
        return AxisColumns(step=whole(pl.Series(step).fill_nan(None)), epoch=pl.Series(epochs).fill_nan(None))


def _floats(block: JsonBlock, name: str) -> Floats:
    column = block.numbers.get(name)
    values: Floats = np.full(block.rows, np.nan) if column is None else column.fill_null(np.nan).to_numpy()
    return values


def _carried(values: Floats, before: float) -> Floats:
    """Each value or, where there is none, the last one before it."""
    known = np.concatenate([[before], values])
    places = np.maximum.accumulate(np.where(np.isnan(known), 0, np.arange(len(known))))
    carried: Floats = known[places][1:]
    return carried
