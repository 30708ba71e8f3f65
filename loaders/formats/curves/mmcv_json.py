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

from afterrun.loaders.axes import AxisRule
from afterrun.loaders.jsonlines import JsonBlock, JsonLines
from afterrun.loaders.jsonpeek import peek_rows
from afterrun.loaders.jsontable import JsonTable
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch

_RULE = AxisRule(step=("iter",), soft_step=(), epoch=("epoch",))
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
        yield from JsonTable(_placed(lines.blocks()), lines.losses, _RULE).batches()


def _placed(blocks: Iterable[JsonBlock]) -> Iterator[JsonBlock]:
    """Validation rows at the training iteration before them; without what is said about the machine."""
    last: float | None = None
    for block in blocks:
        numbers = {n: c for n, c in block.numbers.items() if not _MACHINE.match(n)}
        words = {n: c for n, c in block.words.items() if not _MACHINE.match(n)}
        mode, steps = words.get("mode"), numbers.get("iter")
        if mode is not None and steps is not None:
            steps = pl.select(pl.when(mode != "val").then(steps)).to_series()
            steps = steps.fill_null(strategy="forward").fill_null(last)
            last = steps[-1]
            if steps.null_count() < len(steps):
                numbers["iter"] = steps
            else:
                del numbers["iter"]
        yield JsonBlock(block.rows, numbers, words)
