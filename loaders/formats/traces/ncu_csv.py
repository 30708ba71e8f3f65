"""Nsight Compute's CSV pages: ``ncu --csv`` and ``ncu --csv --page raw``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.ncu.pages import is_header, read_pages
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode_head, split_lines


class NcuCsv(Loader):
    """Nsight Compute as CSV: the details page and the raw page, also with output of the program around them."""

    format = "ncu-csv"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """A header that begins with ``ID`` and names the kernel."""
        text = decode_head(head)
        return "Kernel Name" in text and any(is_header(line) for line in split_lines(text))

    def load(self, source: Source) -> Iterator[Batch]:
        """Metrics of every launch, in base units."""
        found = read_pages(source.path)
        notes = [f"ncu reported: {text}" for text in found.errors[:3]]
        if found.rules:
            notes.append(f"{found.rules} rows of rules hold advice and no metric")
        if found.words:
            notes.append(f"{found.words} metrics whose values are no numbers were left out")
        if len(found.rows):
            notes.append("durations are of replayed, serialised kernels and no wall-clock time")
        yield Batch(frames=found.rows.frames(), damaged=found.damaged, notes=tuple(notes))
