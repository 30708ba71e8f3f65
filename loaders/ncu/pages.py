"""The CSV pages of Nsight Compute: *details* (one row a launch and metric) and *raw* (one row a launch, units below the header).

What the profiler and the program print around the table is passed over; columns go by name, for their number grew from
12 to 20.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from afterrun.loaders.limits import MAX_QUOTED_LINES
from afterrun.loaders.ncu.rows import KernelRows
from afterrun.loaders.ncu.units import decimal_comma, number
from afterrun.loaders.tables.textblocks import decode, split_lines, text_blocks

FIXED = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
"""Columns of the raw page that are no metrics."""

DETAILS = ("Kernel Name", "Metric Name", "Metric Value")


@dataclass
class Pages:
    """What a file held: rows, losses, what the profiler said."""

    rows: KernelRows = field(default_factory=KernelRows)
    damaged: int = 0
    tables: int = 0
    rules: int = 0
    words: int = 0
    """Metrics whose values are words or tuples, which the table of numbers cannot hold."""
    errors: list[str] = field(default_factory=list)


def is_header(line: str) -> bool:
    """Whether a line is the header of either page."""
    names = _cells(line)
    return bool(names) and names[0] == "ID" and "Kernel Name" in names


def read_pages(path: Path) -> Pages:
    """All tables of a file."""
    pages = Pages()
    header: list[str] = []
    launches: dict[tuple[str, ...], int] = {}
    units: list[str] | None = None
    parsed = list(_parsed(path, pages))
    comma = decimal_comma(text.strip() for _, cells in parsed for text in cells)
    for is_head, cells in parsed:
        if is_head:
            header, units = cells, None
            pages.tables += 1
        elif len(cells) > len(header) or ("Metric Name" not in header and len(cells) != len(header)):
            pages.damaged += 1
        elif "Metric Name" in header:
            if len(cells) <= header.index("Metric Value"):
                pages.damaged += 1
                continue
            # rows of metrics may leave the columns of rules out
            whole = cells + [""] * (len(header) - len(cells))
            _details(pages, dict(zip(header, whole, strict=True)), launches, comma=comma)
        elif not cells[0].strip():
            units = cells
        else:
            _raw(pages, header, units or [""] * len(header), cells, comma=comma, launch=len(launches))
            launches[(str(pages.tables), cells[0], str(len(launches)))] = len(launches)
    return pages


def _parsed(path: Path, pages: Pages) -> Iterator[tuple[bool, list[str]]]:
    """(is header, cells) of the lines that belong to a table."""
    inside, open_cell = False, ""
    for block in text_blocks(path):
        text, _ = decode(block.data)
        for part in split_lines(text):
            line = f"{open_cell}\n{part}" if open_cell else part
            open_cell = line if inside and line.count('"') % 2 and line.count("\n") < MAX_QUOTED_LINES else ""
            if open_cell:
                continue
            if line.startswith("==ERROR=="):
                pages.errors.append(line.removeprefix("==ERROR==").strip()[:300])
            if line.startswith("=="):
                continue
            if is_header(line):
                inside = True
                yield True, _cells(line)
            elif inside and line.strip():
                cells = _cells(line)
                if len(cells) > 3:
                    yield False, cells
        pages.damaged += block.too_long
    pages.damaged += bool(open_cell)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader(line.splitlines(keepends=True)), [])
    except csv.Error:
        return []


def _details(pages: Pages, row: dict[str, str], launches: dict[tuple[str, ...], int], *, comma: bool) -> None:
    name, metric, text = (row[c] for c in DETAILS)
    if not metric.strip():
        pages.rules += bool(row.get("Rule Name", "").strip())
        return
    key = (row.get("Process ID", ""), row["ID"], name)
    launch = launches.setdefault(key, len(launches))
    value = number(text, comma=comma)
    if value is None:
        pages.words += 1
        return
    device = row.get("Device", "")
    pages.rows.add(
        launch,
        name,
        metric.strip(),
        row.get("Metric Unit", ""),
        value,
        int(device) if device.isdecimal() and len(device) < 6 else None,
    )


def _raw(
    pages: Pages,
    header: Sequence[str],
    units: Sequence[str],
    cells: Sequence[str],
    *,
    comma: bool,
    launch: int,
) -> None:
    row = dict(zip(header, cells, strict=True))
    device = row.get("Device", "")
    for metric, unit, text in zip(header, units, cells, strict=True):
        if metric in FIXED or not text.strip():
            continue
        value = number(text, comma=comma)
        if value is None:
            pages.words += 1
            continue
        pages.rows.add(
            launch,
            row["Kernel Name"],
            metric,
            unit,
            value,
            int(device) if device.isdecimal() and len(device) < 6 else None,
        )
