"""``nvidia-smi pmon``: see ``afterrun.loaders.counters.smi.monitor``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.smi.monitor import is_process_header, read_monitor, sniff_header
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class NvidiaSmiPmon(Loader):
    """`nvidia-smi pmon`: one row a process and sampling; also how many processes each device had."""

    format = "nvidia-smi-pmon"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # a name says nothing: other tools have a pmon, too
        """Its header line: a ``#`` before ``gpu`` and columns that only it has."""
        names = sniff_header(head)
        return bool(names) and is_process_header(names)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the rows; each header says what the columns below it are."""
        yield from read_monitor(source.path, processes=True)
