"""Slurm's ``sacct``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.sacct import read_sacct, sniff
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch


class Sacct(Loader):
    """Slurm accounting, `sacct -P` or `-p`: a mark for each job and step."""

    format = "sacct"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """A header of accounting fields, apart by ``|``."""
        return sniff(head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Marks of kind ``job`` and ``job_step``; how many jobs ended how as settings."""
        yield from read_sacct(source.path)
