"""What ``nsys stats`` prints: tables in columns on a console or as CSV, one report after the other in one file.

The header of a table tells what it is; its units stand in it (``Start (ns)``, ``Total Time (ms)``) or, in 2020, in the
title above. Reports were renamed twice (``gpukernsum``, ``cuda_gpu_kern_sum``), columns too.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

PART_ROWS = 50_000
"""A longer table comes in parts."""

Kind = Literal["kernels", "activity", "calls", "ranges", "other"]

_SCRIPT = re.compile(r"(?:Processing|Running) \[.*?[\\/](?P<name>\w+)\.py")
_TITLE = re.compile(r"\*\*\s.*\((?P<name>\w+)(?::[\w,:=]+)?\):?$")
_OLD_TITLE = re.compile(
    r"(?:CUDA|NVTX|Operating System|OpenGL|CUDA Memory)\b[\w /-]* Statistics \((?P<unit>\w+)\)$"
)
_SKIPPED = re.compile(r"SKIPPED: ")
_RULER = re.compile(r"\s*-{3,}(?:\s+-+)+\s*")
_HEADING = re.compile(r"(?P<label>.*?)\s*\((?P<unit>[\w%/μµ]+)\)")
_SYNONYMS = {"average": "avg", "minimum": "min", "maximum": "max", "median": "med", "stddev": "std"}

TIME_UNITS = {
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), 1),
    **dict.fromkeys(("us", "usec", "μs", "µs", "microseconds"), 1_000),
    **dict.fromkeys(("ms", "msec", "milliseconds"), 1_000_000),
    **dict.fromkeys(("s", "sec", "seconds"), 1_000_000_000),
}
SIZE_UNITS = {
    "b": 1,
    "bytes": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


@dataclass(frozen=True)
class Column:
    """A label in lower case without its unit, and the unit, empty where the header says none."""

    label: str
    unit: str


@dataclass
class Report:
    """One table: its name where it is printed, its columns and its rows as text, in written order.

    ``cut`` counts rows that do not fill the columns.
    """

    name: str
    columns: tuple[Column, ...]
    rows: list[Sequence[str]] = field(default_factory=list)
    cut: int = 0

    @property
    def kind(self) -> Kind | None:
        """What the rows are."""
        return kind_of({c.label for c in self.columns})

    def place(self, *labels: str) -> int | None:
        """The number of the first column of these that there is."""
        return next((i for label in labels for i, c in enumerate(self.columns) if c.label == label), None)


def kind_of(labels: set[str]) -> Kind | None:
    """What a table with these columns holds; None where no report has such columns."""
    if {"start", "duration", "name"} <= labels:
        if "corrid" in labels and labels & {"strm", "device"}:
            return "activity"
        if "corrid" in labels and "result" in labels:
            return "calls"
        return "ranges" if labels & {"durchild", "rangeid", "lvl"} else None
    if "total time" in labels and labels & {"instances", "num calls", "calls", "count", "operations"}:
        summed = {"instances", "name"} <= labels and not labels & {"range", "style", "source", "nvtx range"}
        return "kernels" if summed else "other"
    return "other" if {"total", "count", "operation"} <= labels or "time(%)" in labels else None


def heading(cells: Iterable[str], unit: str = "") -> tuple[Column, ...]:
    """Columns of a header; ``unit`` is that of the title."""
    columns = []
    for cell in cells:
        told = _HEADING.fullmatch(cell.strip())
        if told and told["unit"] == "%":
            told = None
        label = (told["label"] if told else cell).strip().lower().replace(" (%)", "(%)")
        columns.append(Column(_SYNONYMS.get(label, label), told["unit"].lower() if told else unit))
    return tuple(columns)


def table_header(line: str) -> tuple[str, tuple[Column, ...]] | None:
    """The delimiter and the columns where a line is the header of a report as CSV or TSV."""
    delimiter = "\t" if "\t" in line else ","
    if line.count(delimiter) < 3:
        return None
    columns = heading(next(csv.reader([line], delimiter=delimiter), []))
    return (delimiter, columns) if kind_of({c.label for c in columns}) else None


def reports(lines: Iterable[str]) -> Iterator[Report | None]:
    """The tables of a file as they end, long ones in parts; None for each report for which there was no data."""
    reader = _Reader()
    for line in lines:
        yield from reader.take(line.rstrip("\r\n"))
    yield from reader.end()


class _Reader:
    def __init__(self) -> None:
        self._name = ""
        self._unit = ""
        self._before = ""
        self._report: Report | None = None
        self._cuts: tuple[tuple[int, int | None], ...] = ()
        self._delimiter = ""

    def take(self, line: str) -> Iterator[Report | None]:
        """What ends with this line."""
        text = line.strip()
        if not text:
            yield from self.end()
        elif _SKIPPED.match(text):
            yield from self.end()
            yield None
        elif self._titled(text):
            yield from self.end()
        elif _RULER.fullmatch(line):
            self._ruled(line)
        elif self._report is None and (found := table_header(text)):
            self._delimiter, columns = found
            self._report = Report(self._name, columns)
        elif self._report is not None:
            self._row(line)
            if len(self._report.rows) >= PART_ROWS:
                yield self._report
                self._report = Report(self._report.name, self._report.columns)
        self._before = line

    def end(self) -> Iterator[Report]:
        """The table that is open, if any."""
        if self._report is not None:
            yield self._report
        self._report = None

    def _titled(self, text: str) -> bool:
        for rule in (_SCRIPT, _TITLE, _OLD_TITLE):
            found = rule.search(text) if rule is not _OLD_TITLE else rule.fullmatch(text)
            if found:
                parts = found.groupdict()
                self._name, self._unit = (
                    parts.get("name") or text.partition(" Stat")[0],
                    parts.get("unit") or "",
                )
                return True
        return False

    def _ruled(self, ruler: str) -> None:
        """A line of dashes: the one above holds the labels."""
        starts = [m.span() for m in re.finditer(r"-+", ruler)]
        self._cuts = (*starts[:-1], (starts[-1][0], None))
        columns = heading((self._before[a:b] for a, b in self._cuts), self._unit)
        if kind_of({c.label for c in columns}):
            self._delimiter = ""
            self._report = Report(self._name, columns)

    def _row(self, line: str) -> None:
        report = self._report
        assert report is not None
        if self._delimiter:
            cells = next(csv.reader([line], delimiter=self._delimiter), [])
        else:
            cells = [line[a:b].strip() for a, b in self._cuts]
        width = len(report.columns)
        if len(cells) > width:  # a name with commas that was not quoted
            cells = [*cells[: width - 1], self._delimiter.join(cells[width - 1 :])]
        if len(cells) < width or not cells[-1]:
            report.cut += 1
        else:
            report.rows.append(cells)
