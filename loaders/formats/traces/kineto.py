"""Traces of PyTorch's profiler: Chrome trace JSON as Kineto writes it since 2021, plain or gzip.

Times are microseconds with up to three decimals and are read as exact integers. Since 2024 they count from
``baseTimeNanoseconds``, before from 1970; a file that was cut before its base time stays on its own clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Rank, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.traces.inflating import opening
from afterrun.loaders.traces.kineto.capture import Capture

_HEADER = re.compile(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|record_shapes|traceEvents)"\s*:'
)
_SURE = re.compile(rb'"(?:deviceProperties|distributedInfo|baseTimeNanoseconds|record_shapes)"\s*:')
_TRACE = re.compile(rb'"(?:schemaVersion|traceEvents)"\s*:')
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:operator|cpu_op|kernel|runtime|memcpy|memset|cuda_(?:runtime|driver|sync)|python_function'
    rb'|gpu_(?:memcpy|memset|user_annotation)|user_annotation|cpu_instant_event)"',
    re.IGNORECASE,
)
_JOB_BYTES = 2**18
_JOB = re.compile(rb'"distributedInfo"\s*:\s*\{')
_JOB_CHARS = 4000
_RANK, _OF = (re.compile(rb'"%s"\s*:\s*(\d{1,9})\b' % key) for key in (b"rank", b"world_size"))


class Kineto(Loader):
    """Traces of PyTorch's profiler (`*.pt.trace.json`, `.json.gz`): spans of devices and host, memory, facts of the capture."""

    format = "kineto"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """An object with Kineto's header, or events with one of its categories."""
        text = opening(head).lstrip(b"\xef\xbb\xbf \t\r\n")
        if text[:1] not in (b"{", b"["):
            return False
        if b'"ph"' in text and _CATEGORY.search(text):
            return True
        return bool(_SURE.search(text) and _TRACE.search(text)) or b'"schemaVersion"' in text[:64]

    def rank(self, source: Source) -> Rank | None:
        """From ``distributedInfo``, which stands before the events."""
        try:
            with source.path.open("rb") as file:
                text = opening(file.read(_JOB_BYTES))
        except OSError:
            return None
        job = _JOB.search(text)
        told = (
            []
            if job is None
            else [key.search(text, job.end(), job.end() + _JOB_CHARS) for key in (_RANK, _OF)]
        )
        rank, of = (int(found[1]) if found else None for found in told or (None, None))
        return None if rank is None or of is None or rank >= of else Rank(rank, of)

    def load(self, source: Source) -> Iterator[Batch]:
        """Read the events in one pass. Raises ``UnreadableError`` where the file holds none."""
        yield from Capture(source).batches()
