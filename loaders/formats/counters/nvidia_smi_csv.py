"""``nvidia-smi --query-gpu`` and ``--query-compute-apps`` with ``--format=csv``, and what loggers write like it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.amd.reader import sniff_rocm
from afterrun.loaders.counters.smi.reader import read_smi, sniff_rows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class NvidiaSmiCsv(Loader):
    """`nvidia-smi --query-gpu ... --format=csv` (also without header or units, as UTF-16, appended by several hosts), compute apps, GPU-Z and loggers of one's own with such columns."""

    format = "nvidia-smi-csv"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # names of such files say nothing
        """A header of sampler columns, or rows without one that have dates, devices and units of a sampler."""
        return sniff_rows(head) and not sniff_rocm(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples by device; names and driver as ``trace.*`` settings, messages of ``nvidia-smi`` as marks."""
        yield from read_smi(source.path)
