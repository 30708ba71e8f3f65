"""NVIDIA DCGM: ``dcgmi dmon`` and CSV files of programs on its C interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.dcgm import read_dcgm, sniff
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class Dcgm(Loader):
    """NVIDIA DCGM: the table of `dcgmi dmon`, and CSV with `GPUId,TimeStampUs` in front."""

    format = "dcgm"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """A header that begins with ``#Entity`` or with ``GPUId`` and ``TimeStampUs``."""
        return sniff(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples by device in the order of the file, which is not that of time."""
        yield from read_dcgm(source.path)
