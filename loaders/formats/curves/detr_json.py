"""``log.txt`` of DETR and of the many trainings written after it (DeiT, MAE, ConvNeXt): an object an epoch.

Names begin with ``train_`` or ``test_``, values of lists are ``test_coco_eval_bbox[0]``, ``[1]``, ... Where
no ``epoch`` is written, the rows count the epochs from 0. A resumed training goes on in the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLines
from afterrun.loaders.jsonlog.peek import peek_rows
from afterrun.loaders.jsonlog.table import JsonTable
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisColumns
from afterrun.loaders.tables.cells import whole

_TELLING = frozenset({"train_lr", "test_loss", "n_parameters"})
_OTHER_AXES = frozenset({"step", "iter", "iteration", "global_step", "_step"})


class DetrJson(Loader):
    """`log.txt` of DETR, DeiT, MAE and their like: an object an epoch."""

    format = "detr-json"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """Lines of objects with ``train_loss``, one of ``train_lr``, ``test_loss``, ``n_parameters``, and no step."""
        peek = peek_rows(head)
        if peek is None or "train_loss" not in peek.numbers:
            return False
        return bool(_TELLING & peek.numbers.keys()) and not _OTHER_AXES & peek.names

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; the epoch is the step."""
        lines = JsonLines(source.path)
        yield from JsonTable(lines.blocks(), lines.losses, make_axes=_Epochs()).batches()


class _Epochs:
    """The epoch as written, or else the number of the row, counted from block to block."""

    def __init__(self) -> None:
        self._rows = 0

    def __call__(self, block: JsonBlock) -> AxisColumns:
        first = self._rows
        self._rows += block.rows
        epoch = block.numbers.get("epoch")
        if epoch is None:
            epoch = pl.Series(np.arange(first, self._rows, dtype=np.float64))
        epoch = epoch.fill_nan(None)
        return AxisColumns(step=whole(epoch), epoch=epoch)
