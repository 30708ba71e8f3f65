"""``metrics.json`` of detectron2: one object a line in spite of its name.

``iteration`` is the axis. Evaluation results stand in some rows only, and a class without objects has the
value NaN, which is recorded and no divergence.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.jsonlog.lines import JsonLines
from afterrun.loaders.jsonlog.peek import peek_rows
from afterrun.loaders.jsonlog.table import JsonTable
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisRule

_RULE = AxisRule(step=("iteration",), soft_step=(), epoch=())
_TELLING = frozenset({"eta_seconds", "data_time", "total_loss", "rank_data_time"})


class Detectron2Json(Loader):
    """`metrics.json` of detectron2: an object a line, evaluation results in some of them."""

    format = "detectron2-json"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """Lines of objects with ``iteration`` and a name that detectron2 gives (``total_loss``, ``eta_seconds``)."""
        peek = peek_rows(head)
        return peek is not None and "iteration" in peek.numbers and bool(_TELLING & peek.names)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; ``iteration`` is the step."""
        lines = JsonLines(source.path)
        yield from JsonTable(lines.blocks(), lines.losses, _RULE).batches()
