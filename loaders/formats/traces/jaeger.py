"""Jaeger's JSON: ``{"data": [trace, ...]}`` of its API and UI, one trace alone, or the spans of one.

``startTime`` and ``duration`` are microseconds since 1970. Tags, logs and hosts are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.traces.inflating import opening
from afterrun.loaders.traces.services import ServiceSpans, document, mappings


class Jaeger(Loader):
    """Jaeger traces (JSON of its API or UI): spans of services, as annotations of the host."""

    format = "jaeger"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """JSON with ``traceID`` and names of Jaeger's spans."""
        text = opening(head).lstrip(b"\xef\xbb\xbf \t\r\n")
        names = (b'"spanID"', b'"operationName"', b'"spans"')
        return text[:1] in (b"{", b"[") and b'"traceID"' in text and any(name in text for name in names)

    def load(self, source: Source) -> Iterator[Batch]:
        """All spans in one batch. Raises ``UnreadableError`` where there is neither JSON nor a whole span."""
        read = document(source, _is_span)
        found = ServiceSpans()
        for trace in _traces(read.value):
            processes = trace.get("processes")
            for span in mappings(trace.get("spans")):
                found.add(
                    _service(span, processes if isinstance(processes, dict) else {}),
                    span.get("operationName"),
                    span.get("startTime"),
                    span.get("duration"),
                )
        yield found.batch(self.format, read)


def _is_span(value: dict[str, Any]) -> bool:
    return "startTime" in value and "operationName" in value


def _traces(value: object) -> Iterable[dict[str, Any]]:
    """The traces of a document: a list of them, one, or a list of spans."""
    inner = value.get("data", value) if isinstance(value, dict) else value
    if isinstance(inner, dict):
        return [inner]
    entries = list(mappings(inner))
    spans = [entry for entry in entries if _is_span(entry)]
    return [*(entry for entry in entries if "spans" in entry), {"spans": spans}]


def _service(span: dict[str, Any], processes: dict[str, Any]) -> object:
    process = processes.get(str(span.get("processID")), span.get("process"))
    return process.get("serviceName") if isinstance(process, dict) else None
