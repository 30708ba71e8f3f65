"""What ``nsys stats`` prints, on a console or as CSV: kernel summaries, and traces of activity, calls and ranges.

Shares in a summary are of the report's own total. Gaps can be told from traces only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks
from afterrun.loaders.traces.nsys.printed import reports, table_header
from afterrun.loaders.traces.nsys.printedrows import Tables

_HEAD_LINES = 60
_CONSOLE = re.compile(
    r"^(?:\s*\*\* .*\(\w+(?::[\w,:=]+)?\):\s*$"
    r"|(?:Processing|Running) \[.*[\\/]reports?[\\/]\w+\.py"
    r"|(?:CUDA (?:API|Kernel)|Operating System Runtime API) Statistics \(\w+\)\s*$)",
    re.MULTILINE,
)
_TRACE_NAME = re.compile(
    r"(?P<report>.+?)_(?:cuda_gpu_trace|gputrace|cuda_api_trace|cudaapitrace|nvtx_\w*trace)"
)


class NsysStats(Loader):
    """`nsys stats` output: console text, CSV or TSV of kernel summaries (`cuda_gpu_kern_sum`) and traces (`cuda_gpu_trace`, ...)."""

    format = "nsys-stats"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content tells
        """A title or a header line that only these reports have."""
        text = decode_head(head)
        if _CONSOLE.search(text):
            return True
        return any(table_header(line) is not None for line in text.splitlines()[:_HEAD_LINES])

    def load(self, source: Source) -> Iterator[Batch]:
        """All tables of the file."""
        twin = _export_beside(source.path)
        if twin is not None:
            yield Batch(status="skipped", notes=(f"the same events are read from {twin.name}",))
            return
        tables = Tables()
        for report in reports(_lines(source.path)):
            if report is None:
                tables.without_data += 1
            else:
                tables.add(report)
        yield from tables.batches()


def _lines(path: Path) -> Iterator[str]:
    for block in text_blocks(path):
        lines = split_lines(decode(block.data)[0])
        yield from lines if lines[-1] else lines[:-1]


def _export_beside(path: Path) -> Path | None:
    """The export of the same report, whose events a trace repeats."""
    found = _TRACE_NAME.match(path.name)
    twin = path.with_name(f"{found['report']}.sqlite") if found else None
    return twin if twin is not None and twin.is_file() else None
