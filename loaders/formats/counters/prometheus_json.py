"""Answers of Prometheus' HTTP API: ``query_range`` (a matrix) and ``query`` (a vector)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import MAX_JSON_BYTES, check_size
from afterrun.loaders.monitoring.labels import Identities, SeriesRows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch

MAX_SECONDS = 9e9
"""Times beyond this do not fit into nanoseconds."""


class PrometheusJson(Loader):
    """Prometheus' JSON: the answer of `query_range` or `query`, whole or its inner list alone."""

    format = "prometheus-json"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """A list of series with ``metric`` and ``values``, with or without the envelope."""
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if start not in (b"{", b"["):
            return False
        plain = head.replace(b" ", b"").replace(b"\n", b"")
        enveloped = b'"resultType":' in plain and b'"result":' in plain
        return enveloped or (plain.lstrip(b"\xef\xbb\xbf").startswith(b'[{"metric":{') and b'"value' in plain)

    def load(self, source: Source) -> Iterator[Batch]:
        """Points of every series; values are texts there, NaN and infinities among them."""
        check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
        try:
            document = msgspec.json.decode(source.path.read_bytes())
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableError(
                f"{source.name}: not whole JSON ({error}); save the answer of the API again"
            ) from error
        rows, identities, damaged = SeriesRows(), Identities(), 0
        for series in _series(document):
            labels = (
                {str(k): str(v) for k, v in series.get("metric", {}).items()}
                if isinstance(series.get("metric"), dict)
                else {}
            )
            points = series.get("values", [series["value"]] if "value" in series else [])
            times, values = [], []
            for point in points if isinstance(points, list) else []:
                read = _point(point)
                if read is None:
                    damaged += 1
                    continue
                times.append(read[0])
                values.append(read[1])
            rows.add(identities.of(labels.get("__name__", "value"), labels), times, values)
        yield Batch(frames=rows.frames(), damaged=damaged)


def _series(document: Any) -> list[dict[str, Any]]:
    if isinstance(document, dict):
        data = document.get("data", document)
        document = data.get("result") if isinstance(data, dict) else None
    return [x for x in document if isinstance(x, dict)] if isinstance(document, list) else []


def _point(point: Any) -> tuple[int | None, float] | None:
    try:
        seconds, value = float(point[0]), float(point[1])
    except (TypeError, ValueError, IndexError, KeyError):
        return None
    return (round(seconds * 1000) * 1_000_000, value) if abs(seconds) < MAX_SECONDS else None
