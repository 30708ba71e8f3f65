"""InfluxDB's annotated CSV: ``#datatype`` above each table, one row a point."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.monitoring.labels import Identities, Identity, SeriesRows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import moment
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

COLUMNS = ("_time", "_value", "_field")
_FRACTION = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{1,9})(Z|[+-]\d\d:\d\d)")

NO_LABEL = frozenset({"", "result", "table", "_start", "_stop", "_time", "_value", "_field", "_measurement"})


class InfluxCsv(Loader):
    """InfluxDB's annotated CSV, as Flux queries return it; tables may follow each other with their own headers."""

    format = "influx-csv"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """Its annotations, or its columns."""
        text = decode_head(head).lstrip("\ufeff")
        first = split_lines(text)[:6]
        return any(x.startswith(("#datatype,", "#group,")) for x in first) or (
            bool(first) and all(f",{c}" in first[0] for c in COLUMNS)
        )

    def load(self, source: Source) -> Iterator[Batch]:
        """Points of every field."""
        header: list[str] = []
        maker, identities = Identities(), dict[tuple[tuple[str, str], ...], Identity]()
        for block in text_blocks(source.path):
            points: dict[Identity, tuple[list[int | None], list[float]]] = defaultdict(lambda: ([], []))
            damaged = 0
            for cells in csv.reader(split_lines(decode(block.data)[0])):
                if not any(cells) or cells[0].startswith("#"):
                    continue
                if set(COLUMNS) <= set(cells):
                    header = cells
                    continue
                row = dict(zip(header, cells, strict=False))
                value = _number(row.get("_value", ""))
                if len(cells) != len(header) or value is None:
                    damaged += 1
                    continue
                key = tuple(
                    (k, v) for k, v in row.items() if k not in NO_LABEL or k in ("_field", "_measurement")
                )
                if key not in identities:
                    labels = {k: v for k, v in row.items() if k not in NO_LABEL}
                    identities[key] = maker.of(row["_field"], labels)
                times, values = points[identities[key]]
                times.append(_time_ns(row["_time"]))
                values.append(value)
            rows = SeriesRows()
            for identity, (times, values) in points.items():
                rows.add(identity, times, values)
            yield Batch(frames=rows.frames(), damaged=damaged)


def _time_ns(text: str) -> int | None:
    """RFC 3339 with up to nine decimals, whole nanoseconds kept."""
    found = _FRACTION.fullmatch(text.strip())
    if found is None:
        return moment(text)
    whole = moment(found[1] + found[3])
    return None if whole is None else whole + int(found[2].ljust(9, "0"))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(text.strip().lower())
