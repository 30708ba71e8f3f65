"""Chainer's ``LogReport`` exported as CSV: a single blank stands for *not recorded*.

(Chainer's own ``log`` file is a JSON array and another format.)
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisRule
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_RULE = AxisRule(step=("iteration",), soft_step=(), epoch=("epoch",))


class ChainerCsv(Loader):
    """A table with the columns of Chainer's log report."""

    format = "chainer-csv"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """``epoch``, ``iteration`` and a name of the reporter's (``main/loss``, ``elapsed_time``)."""
        layout = peek(head)
        if layout is None or not {"epoch", "iteration"} <= set(layout.names):
            return False
        return "elapsed_time" in layout.names or any(
            n.startswith(("main/", "validation/main/")) for n in layout.names
        )

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; the iteration is the step. ``elapsed_time`` is relative: a metric, no clock."""
        yield from load_wide(source.path, _RULE, source.wanted)
