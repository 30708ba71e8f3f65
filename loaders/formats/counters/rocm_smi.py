"""``rocm-smi``: JSON, CSV and the printed table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.amd.reader import read_amd, sniff_rocm
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class RocmSmi(Loader):
    """`rocm-smi` of AMD: `--json`, `--csv` and the printed table."""

    format = "rocm-smi"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """An object ``card0``, a CSV header with its long names, or its title over a table."""
        return sniff_rocm(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples by card; its files hold no times."""
        yield from read_amd(source.path)
