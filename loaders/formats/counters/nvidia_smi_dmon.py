"""``nvidia-smi dmon``: see ``afterrun.loaders.counters.smi.monitor``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.smi.monitor import is_process_header, read_monitor, sniff_header
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class NvidiaSmiDmon(Loader):
    """`nvidia-smi dmon`: one row a device and sampling, with or without dates in front."""

    format = "nvidia-smi-dmon"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # a name says nothing: other tools have a dmon, too
        """Its header line: a ``#`` before ``gpu`` and columns that only it has."""
        names = sniff_header(head)
        return bool(names) and not is_process_header(names)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the rows; each header says what the columns below it are."""
        yield from read_monitor(source.path, processes=False)
