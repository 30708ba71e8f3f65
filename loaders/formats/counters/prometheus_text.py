"""A scrape of Prometheus' text format: one instant of every series."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.monitoring.labels import Identities, SeriesRows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_TYPE = re.compile(
    r"^# TYPE [a-zA-Z_:][\w:]* (?:gauge|counter|summary|histogram|untyped|unknown|info|stateset)\b",
    re.MULTILINE,
)
_SAMPLE = re.compile(
    r"([a-zA-Z_:][\w:]*)(\{(?:[^\"{}]|\"(?:[^\"\\]|\\.)*\")*\})?\s+([-+]?(?:[0-9.eE+-]+|[Nn]a[Nn]|[Ii]nf))(?:\s+(-?\d+(?:\.\d+)?))?(?:\s+#.*)?"
)
_LABEL = re.compile(r'\s*([a-zA-Z_][\w.]*|"(?:[^"\\]|\\.)*")\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class PrometheusText(Loader):
    """Prometheus' text format as exporters serve it (DCGM, nvidia_gpu_exporter, node_exporter): one instant, no history."""

    format = "prometheus-text"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """A line that types a metric."""
        return _TYPE.search(decode_head(head)) is not None

    def load(self, source: Source) -> Iterator[Batch]:
        """Every sample; times only where the exporter wrote them."""
        rows, identities, damaged = SeriesRows(), Identities(), 0
        for block in text_blocks(source.path):
            for line in split_lines(decode(block.data)[0]):
                text = line.strip()
                if not text or text.startswith("#"):
                    continue
                found = _SAMPLE.fullmatch(text)
                value = _value(found[3]) if found else None
                if found is None or value is None:
                    damaged += 1
                    continue
                at = None if found[4] is None else int(float(found[4]) * 1e6)
                rows.add(identities.of(found[1], _labels(found[2] or "")), [at], [value])
        note = "one instant of each series; a scrape holds no history"
        yield Batch(frames=rows.frames(), damaged=damaged, notes=(note,) if len(rows) else ())


def _labels(text: str) -> dict[str, str]:
    return {
        key.strip('"'): re.sub(r"\\[\\\"n]", lambda m: _ESCAPES[m[0]], value)
        for key, value in _LABEL.findall(text.strip("{}"))
    }


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
