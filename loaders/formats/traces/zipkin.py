"""Zipkin's JSON: an array of spans, or of traces that are arrays of spans (API versions 1 and 2).

``timestamp`` and ``duration`` are microseconds since 1970 and optional. Client and server of one call share an
identifier and are two spans. Tags, annotations and addresses are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.traces.inflating import opening
from afterrun.loaders.traces.services import ServiceSpans, document, mappings

_NAMES = (b'"localEndpoint"', b'"parentId"', b'"timestamp"', b'"binaryAnnotations"', b'"kind"')


class Zipkin(Loader):
    """Zipkin traces (JSON, version 1 and 2): spans of services, as annotations of the host."""

    format = "zipkin"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """An array with ``traceId``, ``id`` and another name of Zipkin's spans."""
        text = opening(head).lstrip(b"\xef\xbb\xbf \t\r\n")
        return (
            text.startswith(b"[")
            and b'"traceId"' in text
            and b'"id"' in text
            and any(n in text for n in _NAMES)
        )

    def load(self, source: Source) -> Iterator[Batch]:
        """All spans in one batch. Raises ``UnreadableError`` where there is neither JSON nor a whole span."""
        read = document(source, _is_span)
        entries = read.value if isinstance(read.value, list) else []
        found = ServiceSpans()
        for entry in entries:
            for span in mappings(entry if isinstance(entry, list) else [entry]):
                found.add(_service(span), span.get("name"), span.get("timestamp"), span.get("duration"))
        yield found.batch(self.format, read)


def _is_span(value: dict[str, Any]) -> bool:
    return "traceId" in value and "id" in value


def _service(span: dict[str, Any]) -> object:
    """The service that recorded a span; version 1 says it with each annotation."""
    endpoint = span.get("localEndpoint")
    if not isinstance(endpoint, dict):
        noted = [*mappings(span.get("annotations")), *mappings(span.get("binaryAnnotations"))]
        endpoint = next((x["endpoint"] for x in noted if isinstance(x.get("endpoint"), dict)), {})
    return endpoint.get("serviceName")
