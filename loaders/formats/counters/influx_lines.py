"""InfluxDB's line protocol: ``measurement,tag=value field=1i 1717163790675899148``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.monitoring.labels import Identities, Identity, SeriesRows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_WORD = r"(?:[^\s,=\\]|\\.)+"
_TAGS = rf"((?:,{_WORD}=(?:[^\s,=\\]|\\.)*)*)"
_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[^\s,"]+)'
_LINE = re.compile(rf"((?:[^\s,\\]|\\.)+){_TAGS}\s+({_WORD}={_VALUE}(?:,{_WORD}={_VALUE})*)(?:\s+(-?\d+))?")
_TAG = re.compile(rf",({_WORD})=((?:[^\s,=\\]|\\.)*)")
_FIELD = re.compile(rf"({_WORD})=({_VALUE})(?:,|$)")
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[iu]?")
_BOOL = {"t": 1.0, "true": 1.0, "f": 0.0, "false": 0.0}
_GPU = re.compile(r"gpu|nvidia|dcgm|rocm|smi", re.IGNORECASE)
_DIGITS_NS = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}
"""Digits of a time stamp of today -> ns in its unit; the default of the protocol is ns."""


class InfluxLines(Loader):
    """InfluxDB's line protocol, as Telegraf and `influx export` write it; numbers and switches, texts are left out."""

    format = "influx-lines"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """Lines of the protocol with a time stamp of this century."""
        lines = [x for x in split_lines(decode_head(head)) if x.strip() and not x.startswith("#")]
        whole = lines[:-1] if len(lines) > 1 and len(head) >= 4096 else lines
        found = [_LINE.fullmatch(x.strip()) for x in whole[:20]]
        return bool(found) and all(m and m[4] and len(m[4]) in _DIGITS_NS for m in found)

    def load(self, source: Source) -> Iterator[Batch]:
        """A sample for each numeric field."""
        maker, identities = Identities(), dict[tuple[str, str, str], Identity]()
        damaged = texts = 0
        for block in text_blocks(source.path):
            points: dict[Identity, tuple[list[int | None], list[float]]] = defaultdict(lambda: ([], []))
            for line in split_lines(decode(block.data)[0]):
                if not line.strip() or line.startswith("#"):
                    continue
                found = _LINE.fullmatch(line.strip())
                if found is None:
                    damaged += 1
                    continue
                t_ns = (
                    None if found[4] is None else int(found[4]) * _DIGITS_NS.get(len(found[4].lstrip("-")), 1)
                )
                for field, text in _FIELD.findall(found[3]):
                    value = _value(text)
                    if value is None:
                        texts += 1
                        continue
                    key = (found[1], found[2], field)
                    if key not in identities:
                        identities[key] = _identity(maker, *key)
                    times, values = points[identities[key]]
                    times.append(t_ns)
                    values.append(value)
            rows = SeriesRows()
            for identity, (times, values) in points.items():
                rows.add(identity, times, values)
            yield Batch(frames=rows.frames())
        notes = (f"{texts} fields that hold texts were left out",) if texts else ()
        yield Batch(damaged=damaged, notes=notes)


def _identity(maker: Identities, measurement: str, tags: str, field: str) -> Identity:
    labels = {_plain(k): _plain(v) for k, v in _TAG.findall(tags)}
    name, field = _plain(measurement), _plain(field)
    known = maker.of(field, labels)
    if _GPU.search(name) or known.counter in ("iowait_pct", "rss_bytes"):
        return known
    return maker.of(f"{name}.{field}", labels)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _value(text: str) -> float | None:
    found = _NUMBER.fullmatch(text)
    return float(found[1]) if found else _BOOL.get(text.lower())
