"""Samples of NVIDIA DCGM: the table that ``dcgmi dmon`` prints, and the CSV files of programs on its C interface.

The CSV is long (``GPUId,TimeStampUs,Field,Values``) or has one column a field (``GPUId,TimeStampUs,Watts``); it is
grouped by device and field and so not in order of time. Fields keep the units of DCGM: shares are 0 to 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from afterrun.loaders.counters.readings import reading
from afterrun.loaders.counters.reasons import throttle_counters
from afterrun.loaders.counters.samples import Samples, series_text
from afterrun.loaders.counters.vocabulary import counter_of
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import clock_unit_ns, moments, numbers
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.reader import RowBlock, TableReader
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

FLUSH_SAMPLES = 1 << 18

_CSV_HEAD = re.compile(r"\s*\"?gpu_?id\"?\s*[,;\t]\s*\"?time_?stamp_?(?:us)?\"?\s*[,;\t]", re.IGNORECASE)
_TABLE_HEAD = re.compile(r"#\s*Entity\s+(\S.*)")
_ROW = re.compile(r"\s*(GPU-CI|GPU-I|GPU|Switch|Link|CPU|Core|vGPU)\s+([\d/]+)\s+(\S.*)")
_BLANK = frozenset({"N/A", "-"})
_BLANKS = (2.0**47, float(0x7FFFFFF0), float(0x7FFFFFFFFFFFFFF0))
"""DCGM's values for *no data* of doubles and integers; the next three tell the reason (``dcgm_structs.h``)."""

_WATTS = "watts"


def sniff(head: bytes) -> bool:
    """Whether a file begins like one of DCGM."""
    text = decode_head(head).lstrip("\0 \r\n\t")
    return _CSV_HEAD.match(text) is not None or any(_TABLE_HEAD.match(x) for x in split_lines(text)[:40])


def read_dcgm(path: Path) -> Iterator[Batch]:
    """All samples of a file. Raises ``OSError`` or ``UnreadableError`` where it cannot be read."""
    with path.open("rb") as file:
        text = decode_head(file.read(4096)).lstrip("\0 \r\n\t")
    yield from _read_csv(path) if _CSV_HEAD.match(text) else _read_table(path)


def _read_csv(path: Path) -> Iterator[Batch]:
    table = TableReader(path)
    lost = Places()
    for block in table.blocks():
        frame = _long(block, lost)
        if len(frame):
            yield Batch(frames={"samples": frame})
    notes = list(table.losses.notes())
    if lost.count:
        notes.append(f"rows without a readable device or time left out: {lost}")
    yield Batch(damaged=table.losses.damaged + lost.count, notes=tuple(notes))


def _long(block: RowBlock, lost: Places) -> pl.DataFrame:
    """Samples of one block of rows."""
    names = [re.sub(r"[^a-z]", "", n.lower()) for n in block.names]
    cells = {name: block.cells[str(i)] for i, name in enumerate(names)}
    stamp = next((n for n in names if n.startswith("timestamp")), None)
    if stamp is None or "gpuid" not in cells:  # a second header that has lost them
        for line in block.lines.tolist():
            lost.add(line)
        return pl.DataFrame()
    device = numbers(cells["gpuid"])[0].cast(pl.Int64, strict=False)
    stamps = numbers(cells[stamp])[0]
    middle = stamps.drop_nans().median()
    unit_ns = clock_unit_ns(pl.Series([middle])) if isinstance(middle, float) else None
    t_ns = moments(stamps, unit_ns) if unit_ns else pl.Series([None] * len(stamps), dtype=pl.Int64)
    good = device.is_between(0, 1023).fill_null(False) & (t_ns.is_not_null() if unit_ns else True)
    for line in block.lines[~good.to_numpy()].tolist():
        lost.add(line)
    base = pl.DataFrame({"device": device, "t_ns": t_ns})
    if "field" in cells and "values" in cells:
        field = cells["field"].cast(pl.String).str.strip_chars()
        rows = base.with_columns(field=field, value=numbers(cells["values"])[0]).filter(good)
    else:
        others = [i for i, n in enumerate(names) if n != "gpuid" and not n.startswith("timestamp")]
        parts = [
            base.with_columns(field=pl.lit(block.names[i]), value=numbers(block.cells[str(i)])[0]).filter(
                good
            )
            for i in others
        ]
        rows = pl.concat(parts) if parts else base.with_columns(field=pl.lit(""), value=pl.lit(0.0)).clear()
    return _counters(rows.filter(pl.col("value").is_not_null() & ~_is_blank(pl.col("value"))))


def _is_blank(value: pl.Expr) -> pl.Expr:
    return pl.any_horizontal(value.is_between(blank, blank + 3) for blank in _BLANKS)


def _counters(rows: pl.DataFrame) -> pl.DataFrame:
    """Fields by the names and units of the vocabulary; masks of reasons as three counters."""
    parts = []
    for (field,), part in rows.partition_by("field", as_dict=True, maintain_order=True).items():
        name, factor = _known(str(field))
        if name == "throttle_reasons":
            masks = part["value"].unique().to_list()
            for i, (counter, _) in enumerate(throttle_counters(0)):
                of = {m: throttle_counters(m)[i][1] for m in masks}
                values = part["value"].replace_strict(of, return_dtype=pl.Float64)
                parts.append(part.with_columns(counter=pl.lit(counter), value=values))
        else:
            parts.append(part.with_columns(counter=pl.lit(name), value=pl.col("value") * factor))
    if not parts:
        return pl.DataFrame()
    return pl.concat(parts).select(
        pl.col("device").cast(pl.Int32), pl.lit("").alias("series"), "counter", "t_ns", "value"
    )


def _known(field: str) -> tuple[str, float]:
    known = counter_of("power" if field.lower() == _WATTS else field)
    return (known.name, known.factor) if known else (field, 1.0)


class _Table:
    """The lines of ``dcgmi dmon``: two header lines, then one row an entity."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.torn = Places()
        self._fields: list[tuple[str, float]] = []

    def add(self, line: str, number: int) -> None:
        text = line.strip("\0 \t\r")
        if head := _TABLE_HEAD.match(text):
            self._fields = [_known(name) for name in head[1].split()]
        elif (row := _ROW.fullmatch(text)) and self._fields:
            self._row(row, number)
        elif text and not text.isalpha() and not text.startswith("#"):
            self.torn.add(number)

    def _row(self, row: re.Match[str], number: int) -> None:
        values = row[3].split()
        if len(values) != len(self._fields) or not row[2].isdigit():
            self.torn.add(number)
            return
        whole = row[1] == "GPU"
        device = int(row[2]) if whole and len(row[2]) < 4 else None
        series = "" if whole else series_text({row[1].lower().replace("-", "_"): row[2]})
        for (name, factor), cell in zip(self._fields, values, strict=True):
            found = reading(cell) if cell not in _BLANK else None
            if found is None or any(b <= found.value <= b + 3 for b in _BLANKS):
                continue
            counters = (
                throttle_counters(found.value)
                if name == "throttle_reasons"
                else ((name, found.value * factor),)
            )
            for counter, value in counters:
                self.samples.add(counter, value, device=device, series=series)


def _read_table(path: Path) -> Iterator[Batch]:
    table = _Table()
    too_long = 0
    for block in text_blocks(path):
        too_long += block.too_long
        for number, line in enumerate(split_lines(decode(block.data)[0]), block.first_line):
            table.add(line, number)
        if len(table.samples) >= FLUSH_SAMPLES:
            yield Batch(frames=table.samples.frames())
            table.samples = Samples()
    notes = ["no time is recorded: samples are in written order"]
    if table.torn.count:
        notes.insert(0, f"torn rows left out: {table.torn}")
    yield Batch(frames=table.samples.frames(), damaged=table.torn.count + too_long, notes=tuple(notes))
