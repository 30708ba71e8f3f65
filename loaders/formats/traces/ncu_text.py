"""Nsight Compute's printed report: sections of metrics below each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from afterrun.loaders.ncu.rows import KernelRows
from afterrun.loaders.ncu.units import decimal_comma, number
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_PROF = re.compile(r"^==PROF== (?:Connected to process|Profiling )", re.MULTILINE)
_SECTION = re.compile(r"^\s+Section: \S", re.MULTILINE)
_KERNEL = re.compile(
    r"^ {2,4}(\S.*?) (?:\([\d, ]+\)x\([\d, ]+\), )?Context \d+, Stream \d+(?:, Device (\d+))?"
)
_KERNEL_OLD = re.compile(r"^ {2,4}(\S.*?), \d{4}-\w{3}-\d\d \d\d:\d\d:\d\d, Context \d+, Stream \d+()")
_KERNEL_SUMMARY = re.compile(
    r"^ {2,4}(\S.*?)(?: \([\d, ]+\)x\([\d, ]+\))?, (?:Block Size|Invocations?) .*()$"
)
MIN_COLUMNS = 3
"""Name, unit and value; more where several invocations are summed up."""

_RULER = re.compile(r"^\s+-{5,}(?: -{5,})+\s*$")


class NcuText(Loader):
    """Nsight Compute as text: what `ncu` prints; the average where it sums up several invocations."""

    format = "ncu-text"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # content says it
        """Lines of the profiler, or a section of a kernel."""
        text = decode_head(head)
        return _PROF.search(text) is not None or ("Metric Name" in text and _SECTION.search(text) is not None)

    def load(self, source: Source) -> Iterator[Batch]:
        """Metrics of every kernel, in base units."""
        found = _Report()
        for block in text_blocks(source.path):
            for line in split_lines(decode(block.data)[0]):
                found.take(line)
        rows = KernelRows()
        comma = decimal_comma(cell.text for cell in found.cells)
        for cell in found.cells:
            value = number(cell.text, comma=comma)
            if value is not None:
                rows.add(cell.launch, cell.kernel, cell.metric, cell.unit, value, cell.device)
        notes = [f"ncu reported: {text}" for text in found.errors[:3]]
        if len(rows):
            notes.append("durations are of replayed, serialised kernels and no wall-clock time")
        elif not found.errors:
            notes.append("ncu profiled kernels but printed no metric")
        yield Batch(frames=rows.frames(), notes=tuple(notes))


class _Cell(NamedTuple):
    """One metric as printed."""

    launch: int
    kernel: str
    metric: str
    unit: str
    text: str
    device: int | None


class _Report:
    """Reads line by line: which kernel, inside which table."""

    def __init__(self) -> None:
        self.cells: list[_Cell] = []
        self.errors: list[str] = []
        self._launch, self._kernel, self._device = -1, "", None
        self._columns = 0

    _device: int | None

    def take(self, line: str) -> None:
        """One line of the report."""
        if line.startswith("==ERROR=="):
            self.errors.append(line.removeprefix("==ERROR==").strip()[:300])
        elif kernel := _kernel(line):
            self._launch += 1
            (self._kernel, self._device), self._columns = kernel, 0
        elif _RULER.match(line):
            self._columns = len(line.split()) if self._launch >= 0 else 0
        elif not line.strip():
            self._columns = 0
        elif self._columns >= MIN_COLUMNS and (metric := _metric(line, self._columns)):
            self.cells.append(_Cell(self._launch, self._kernel, *metric, self._device))


def _kernel(line: str) -> tuple[str, int | None] | None:
    """Name and device of the line that begins the sections of a kernel."""
    if not line.startswith("  ") or line.lstrip().startswith(("Section:", "Metric Name", "-")):
        return None
    found = _KERNEL_OLD.match(line) or _KERNEL.match(line) or _KERNEL_SUMMARY.match(line)
    if found is None:
        return None
    name = re.sub(r" \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\),?$", "", found[1])
    return name, int(found[2]) if found[2] else None


def _metric(line: str, widths: int) -> tuple[str, str, str] | None:
    """Name, unit and value of a row; the last of three values, the average, where the report sums up."""
    values = 1 if widths == 3 else widths - 2
    parts = line.split()
    if len(parts) < 1 + values or parts[0] == "Metric":
        return None
    head = re.split(r"\s{2,}", line.strip())
    name = head[0]
    rest = line.strip()[len(name) :].split()
    if len(rest) <= values:
        # a long name leaves one blank before its unit
        return (name, "", rest[-1]) if rest else None
    return name, rest[0], rest[-1]
