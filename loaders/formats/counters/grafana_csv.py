"""CSV that Grafana saves of a panel: one row a point, or one column a series."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from afterrun.loaders.counters.clocks import LOCAL_NOTE, times_of
from afterrun.loaders.counters.readings import readings
from afterrun.loaders.counters.vocabulary import MIB
from afterrun.loaders.monitoring.labels import Identities, Identity
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_SEP = re.compile(r"^sep=(.)$")
_NAMED = re.compile(r"^(.*?)[({](.*)[)}]\s*$")
_LABEL = re.compile(r'([\w.]+)\s*[=:]\s*"?([^",]*)"?')
_SCALE = {
    "b": 1.0,
    "kib": 2.0**10,
    "mib": MIB,
    "gib": 2.0**30,
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "k": 1e3,
    "mil": 1e6,
}


class GrafanaCsv(Loader):
    """Grafana's panel CSV: `Series;Time;Value`, or `Time` and a column for each series with its labels."""

    format = "grafana-csv"
    family = "counters"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """The long header, or ``Time`` beside columns that carry labels, or the line ``sep=`` above either."""
        return _header(decode_head(head)) is not None

    def load(self, source: Source) -> Iterator[Batch]:
        """Points by series; blanks are not recorded."""
        identities: dict[str, Identity] = {}
        maker = Identities()
        notes: set[str] = set()
        head: tuple[str, list[str]] | None = None
        for block in text_blocks(source.path):
            lines = split_lines(decode(block.data)[0])
            if head is None:
                head = _header("\n".join(lines[:2]))
                if head is None:
                    return
                lines = lines[2 if _SEP.match(lines[0].strip()) else 1 :]
            yield _batch(lines, head, maker, identities, notes)
        yield Batch(notes=tuple(sorted(notes)))


def _header(text: str) -> tuple[str, list[str]] | None:
    """Divider and column names; None where it is no such table."""
    lines = [x for x in split_lines(text.lstrip("\ufeff")) if x.strip()][:2]
    if not lines:
        return None
    told = _SEP.match(lines[0].strip())
    if told and len(lines) < 2:
        return None
    line = lines[1] if told else lines[0]
    divider = told[1] if told else ";" if line.count(";") >= line.count(",") else ","
    names = [x.strip() for x in next(csv.reader([line], delimiter=divider), [])]
    lower = [x.lower() for x in names]
    if len(names) < 2 or "time" not in lower:
        return None
    long = lower == ["series", "time", "value"]
    wide = lower[0] == "time" and (bool(told) or any(_NAMED.match(x) and "=" in x for x in names[1:]))
    return (divider, names) if long or wide else None


def _batch(
    lines: list[str],
    head: tuple[str, list[str]],
    maker: Identities,
    identities: dict[str, Identity],
    notes: set[str],
) -> Batch:
    divider, names = head
    cells = [c for c in csv.reader(lines, delimiter=divider) if any(x.strip() for x in c)]
    whole = [c for c in cells if len(c) == len(names)]
    table = pl.DataFrame(
        whole,
        schema={f"c{i}": pl.String for i in range(len(names))},
        orient="row",
    )
    lower = [n.lower() for n in names]
    times = times_of(table[f"c{lower.index('time')}"])
    if times.clock == "local":
        notes.add(LOCAL_NOTE)
    if lower == ["series", "time", "value"]:
        parts = [(table["c0"], table["c2"])]
    else:
        parts = [
            (pl.Series([name] * len(table)), table[f"c{i}"])
            for i, name in enumerate(names)
            if lower[i] != "time"
        ]
    frames = [_points(series, values, times.t_ns, maker, identities) for series, values in parts]
    found = pl.concat(frames) if frames else pl.DataFrame()
    return Batch(frames={"samples": found} if len(found) else {}, damaged=len(cells) - len(whole))


def _points(
    series: pl.Series, values: pl.Series, t_ns: pl.Series, maker: Identities, identities: dict[str, Identity]
) -> pl.DataFrame:
    for name in series.unique(maintain_order=True).to_list():
        if name not in identities:
            identities[name] = maker.of(*_named(name))
    numbers, units = readings(values)
    told = units.str.to_lowercase().replace_strict(_SCALE, default=None, return_dtype=pl.Float64)
    keys = list(identities)
    at = series.replace_strict({k: i for i, k in enumerate(keys)}, return_dtype=pl.UInt32)
    of = pl.DataFrame(
        [identities[k] for k in keys], schema=["counter", "factor", "device", "host", "series"], orient="row"
    )
    rows = of[at].with_columns(t_ns.alias("t_ns"), numbers.alias("number"), told.alias("told"))
    # a unit in the cell is the unit; without one the counter's own is meant
    value = pl.col("number") * pl.coalesce("told", "factor")
    return (
        rows.with_columns(
            value.alias("value"), pl.col("device").cast(pl.Int32), pl.col("host").cast(pl.String)
        )
        .filter(pl.col("value").is_not_null())
        .drop("factor", "number", "told")
    )


def _named(text: str) -> tuple[str, dict[str, str]]:
    """Name and labels of ``DCGM_FI_DEV_GPU_UTIL{gpu="0"}`` or ``net.out.value(device=eth0,...)``."""
    found = _NAMED.match(text)
    if found is None:
        return text, {}
    return found[1] or text, dict(_LABEL.findall(found[2]))
