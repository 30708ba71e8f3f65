"""``amd-smi metric`` and ``amd-smi monitor``: JSON, CSV and the printed table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.amd.reader import read_amd, sniff_amd
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class AmdSmi(Loader):
    """`amd-smi metric` and `amd-smi monitor`: JSON, CSV (also of `--watch`) and the printed table."""

    format = "amd-smi"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """Names that only it has: ``gfx_activity``, ``socket_power``."""
        return sniff_amd(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples by device."""
        yield from read_amd(source.path)
