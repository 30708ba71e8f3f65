"""``*.log.json`` of MMCV (MMDetection 2, MMSegmentation 0, MMAction, ...): ``mode``, ``epoch``, ``iter`` in each row.

A first line may describe the machine; only the name of the experiment and the seed are kept of it. ``iter``
of a training row counts within the epoch (or over the run, where the loop has no epochs); that of a
validation row counts validation batches and orders nothing, so such a row stands at the last training
iteration before it. Tags begin with the mode: ``train/loss``, ``val/bbox_mAP``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLines
from afterrun.loaders.jsonlog.peek import peek_rows
from afterrun.loaders.jsonlog.table import JsonTable
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisColumns
from afterrun.loaders.tables.cells import whole

_MODES = frozenset({"train", "val"})
_MACHINE = re.compile(r"^(?:env_info|config|mmdet_version|mmcv_version|CLASSES|PALETTE|hook_msgs)\b")


class MmcvJson(Loader):
    """`*.log.json` of MMCV 1 (MMDetection 2, MMSegmentation 0): rows with ``mode``."""

    format = "mmcv-json"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Lines of objects with ``mode`` train or val, ``epoch`` and ``iter``; or the name and a line about the machine."""
        peek = peek_rows(head)
        if peek is None:
            return False
        if peek.words.get("mode") in _MODES:
            return {"epoch", "iter"} <= peek.numbers.keys()
        return path.name.endswith(".log.json") and bool({"env_info", "exp_name", "seed"} & peek.names)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; ``iter`` is the step where it counts over the run."""
        lines = JsonLines(source.path)
        yield from JsonTable(_known(lines.blocks()), lines.losses, make_axes=_Steps()).batches()


def _known(blocks: Iterable[JsonBlock]) -> Iterator[JsonBlock]:
    """The rows without what is said about the machine."""
    for block in blocks:
        numbers = {n: c for n, c in block.numbers.items() if not _MACHINE.match(n)}
        words = {n: c for n, c in block.words.items() if not _MACHINE.match(n)}
        seed = numbers.pop("seed", None)
        if seed is not None:
            words["seed"] = seed.cast(pl.Int64, strict=False).cast(pl.String)
        yield JsonBlock(block.rows, numbers, words)


class _Steps:
    """Step and epoch of each row, carried from block to block; no step once ``iter`` has begun again."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._within_epochs = False

    def __call__(self, block: JsonBlock) -> AxisColumns:
        epoch = block.numbers.get("epoch")
        steps, mode = block.numbers.get("iter"), block.words.get("mode")
        if epoch is not None:
            epoch = epoch.fill_nan(None)
        if steps is None or mode is None:
            return AxisColumns(epoch=epoch)
        steps = pl.select(pl.when(mode != "val").then(steps)).to_series()
        steps = pl.Series([self._last], dtype=pl.Float64).append(steps).fill_null(strategy="forward")
        self._last = steps[-1]
        if epoch is not None:
            again = (steps.diff().slice(1) < 0) & (epoch.diff() > 0)
            self._within_epochs = self._within_epochs or bool(again.any())
        return AxisColumns(step=None if self._within_epochs else whole(steps.slice(1)), epoch=epoch)
