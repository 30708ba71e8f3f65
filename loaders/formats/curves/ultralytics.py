"""``results.csv`` of Ultralytics YOLO and YOLOv5: one row an epoch.

Names and values are right-aligned with blanks. Epochs count from 1 (v8 and later) or 0 (v5). A second
training into the same folder appends to the file, sometimes with other columns and without a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisRule
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_RULE = AxisRule(step=(), soft_step=(), epoch=("epoch",))
_TELLING = re.compile(
    r"^(?:(?:train|val)/(?:box|cls|obj|dfl|seg|pose|kobj)_(?:loss|om|oo)|metrics/(?:mAP|accuracy_top).*)$"
)


class UltralyticsCsv(Loader):
    """``results.csv`` of a YOLO training."""

    format = "ultralytics-csv"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """``epoch`` first and a loss or a metric by the name Ultralytics gives it."""
        layout = peek(head)
        return layout is not None and layout.names[0] == "epoch" and any(map(_TELLING.match, layout.names))

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; the epoch is the step."""
        yield from load_wide(source.path, _RULE, source.wanted)
