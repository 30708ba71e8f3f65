"""TensorBoard event files: scalars of TF1, TF2 and PyTorch, histograms, hyper-parameters, texts.

Scalars are decoded many at a time (``tfscalars``), the rest one by one (``tfevent``); images, audio and
graphs are counted and passed over. A file is read without payload checksums as long as nothing is wrong
with it, and from its beginning with them once something is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import TEXT, Batch
from afterrun.loaders.tfcollect import Collector, tag_name
from afterrun.loaders.tfrecord import HEADER_BYTES, LARGEST_BYTES, NOTHING, Anomaly, RecordFile, Tally
from afterrun.loaders.tfrecord import checking, claimed, trusting

if TYPE_CHECKING:
    import pandas as pd

FLUSH_ROWS = 1 << 20
FLUSH_BUCKETS = 1 << 22
"""How many scalars and histogram buckets are held before they are handed on."""

_NAME = re.compile(r"tfevents\.\d+")
_OTHER = (".csv", ".json", ".txt", ".png", ".gz", ".zip", ".tar")
_FIRST_KEYS = frozenset(number << 3 | wire for number, wire in {1: 1, 2: 0, **dict.fromkeys(range(3, 11), 2)}.items())
"""First bytes an event can have: the keys of its fields."""

_LFS = b"version https://git-lfs"


class TensorBoard(Loader):
    """``events.out.tfevents.*``."""

    format = "tensorboard"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A sound record header before the first byte of an event, or the name of an event file."""
        if claimed(head[:HEADER_BYTES]) is not None and head[HEADER_BYTES : HEADER_BYTES + 1] != b"":
            return head[HEADER_BYTES] in _FIRST_KEYS
        return _NAME.search(path.name) is not None and not path.name.endswith(_OTHER)

    def load(self, source: Source) -> Iterator[Batch]:
        """All values in write order; ``seq`` counts them. Raises ``UnreadableError`` if no record is intact."""
        with source.path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                yield Batch(status="empty", notes=("0 bytes: nothing was written",))
                return
            yield from _Reading(RecordFile(file, size)).batches(careful=source.verify)


@dataclass(slots=True)
class _Reading:
    """One pass over a file: what is collected, and how many scalars were handed on."""

    file: RecordFile
    collector: Collector = field(default_factory=Collector)
    tally: Tally = NOTHING
    given: int = 0
    at: int = 0

    def batches(self, *, careful: bool) -> Iterator[Batch]:
        try:
            for window in iter(()) if careful else trusting(self.file):
                ...
        except Anomaly:
            pass
