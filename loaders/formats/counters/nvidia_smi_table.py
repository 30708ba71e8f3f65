"""The table that ``nvidia-smi`` draws, as loops in job scripts append it to a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.smi.reader import read_smi, sniff_drawn, sniff_rows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class NvidiaSmiTable(Loader):
    """The table drawn by `nvidia-smi`, once or again and again, with the dates between."""

    format = "nvidia-smi-table"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # names of such files say nothing
        """The line with the versions, and no rows of samples beside it."""
        return sniff_drawn(head) and not sniff_rows(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples by device, and memory by process and by MIG device."""
        yield from read_smi(source.path)
