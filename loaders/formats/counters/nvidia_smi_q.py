"""``nvidia-smi -q``: full reports as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.smi.textreport import HEAD, read_text
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode_head


class NvidiaSmiQ(Loader):
    """`nvidia-smi -q`, one report or several one after the other (`-l`)."""

    format = "nvidia-smi-q"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """Its title line among the first lines."""
        return HEAD.search(decode_head(head)[:1024]) is not None

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples of each device in each report."""
        yield from read_text(source.path)
