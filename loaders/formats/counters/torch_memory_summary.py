"""The table that ``torch.cuda.memory_summary()`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.samples import Samples
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_TITLE = re.compile(r"PyTorch CUDA memory summary(?:, device ID (\d{1,4}))?")
_HEAD = re.compile(r"CUDA OOMs:\s*(\d+)\s*\|\s*cudaMalloc retries:\s*(\d+)")
_CELL = re.compile(r"(-?\d+(?:\.\d+)?)\s*([KMGTP]?i?B?)?")
_SCALE = {
    "": 1.0,
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "KB": 2.0**10,
    "MB": 2.0**20,
    "GB": 2.0**30,
}
_ROWS = {
    "Allocated memory": "mem_alloc_bytes",
    "Active memory": "mem_active_bytes",
    "Requested memory": "mem_requested_bytes",
    "GPU reserved memory": "mem_reserved_bytes",
    "Non-releasable memory": "mem_non_releasable_bytes",
    "Allocations": "allocations",
    "GPU reserved segments": "segments",
}
_COLUMNS = ("", "_peak", "_total", "_freed")


class TorchMemorySummary(Loader):
    """PyTorch's `memory_summary()`: current and peak memory of the allocator, retries and failures."""

    format = "torch-memory-summary"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """The title of the table in the first lines."""
        return _TITLE.search(decode_head(head)[:1500]) is not None

    def load(self, source: Source) -> Iterator[Batch]:
        """A sample for each total; peaks and sums as counters of their own."""
        samples, device = Samples(), 0
        for block in text_blocks(source.path):
            text = decode(block.data)[0].replace("\\n", "\n")
            for line in split_lines(text):
                if title := _TITLE.search(line):
                    device = int(title[1] or 0)
                elif head := _HEAD.search(line):
                    samples.add("ooms", float(head[1]), device=device)
                    samples.add("alloc_retries", float(head[2]), device=device)
                else:
                    _row(line, device, samples)
        yield Batch(frames=samples.frames(), notes=("one moment; the file holds no times",))


def _row(line: str, device: int, samples: Samples) -> None:
    cells = [c.strip() for c in line.split("|") if c.strip()]
    at = next((i for i, c in enumerate(cells) if c in _ROWS), None)
    if at is None:
        return
    for column, cell in zip(_COLUMNS, cells[at + 1 :], strict=False):
        found = _CELL.fullmatch(cell)
        if found and (found[2] or "") in _SCALE:
            samples.add(
                _named(_ROWS[cells[at]], column), float(found[1]) * _SCALE[found[2] or ""], device=device
            )


def _named(counter: str, column: str) -> str:
    """``mem_alloc_bytes`` and ``_peak`` to ``mem_alloc_peak_bytes``: the unit stays last."""
    stem, bytes_, _ = counter.rpartition("_bytes")
    return f"{stem}{column}_bytes" if bytes_ else f"{counter}{column}"
