"""Reports of Lightning's profilers: time by action."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.samples import Samples, series_text
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import number
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_SIMPLE = re.compile(r"\|\s*Action\s*\|\s*Mean duration \(s\)", re.IGNORECASE)
_ADVANCED = re.compile(r"^Profile stats for: (.+?)(?: rank: (\d+))?\s*$")
_CALLS = re.compile(r"^\s+(\d+) function calls?(?: \(\d+ primitive calls\))? in (\d+(?:\.\d+)?) seconds")
_COLUMNS = ("action_mean_s", "action_calls", "action_total_s")


class LightningProfiler(Loader):
    """Lightning's SimpleProfiler and AdvancedProfiler: seconds and calls of each action; actions nest, so they do not add up."""

    format = "lightning-profiler"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """The header of the table, or the title above each block of statistics."""
        text = decode_head(head).replace("\t", "")
        return _SIMPLE.search(text) is not None or any(_ADVANCED.match(x) for x in split_lines(text)[:12])

    def load(self, source: Source) -> Iterator[Batch]:
        """Samples ``action_total_s``, ``action_calls`` and ``action_mean_s`` by action."""
        samples = Samples()
        action = ""
        for block in text_blocks(source.path):
            for line in split_lines(decode(block.data)[0]):
                if title := _ADVANCED.match(line):
                    action = title[1]
                elif (found := _CALLS.match(line)) and action:
                    samples.add("action_total_s", float(found[2]), series=series_text({"action": action}))
                    action = ""
                elif line.startswith("|"):
                    _row(line, samples)
        yield Batch(frames=samples.frames(), notes=("totals of the whole run; the file holds no times",))


def _row(line: str, samples: Samples) -> None:
    cells = [c.strip() for c in line.strip().strip("|").split("|")]
    if len(cells) < 4 or cells[0] in ("Action", "Total"):
        return
    for counter, cell in zip(_COLUMNS, cells[1:4], strict=True):
        value = number(cell)
        if value is not None:
            samples.add(counter, value, series=series_text({"action": cells[0]}))
