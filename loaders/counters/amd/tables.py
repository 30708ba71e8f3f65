"""The tables that ``rocm-smi`` and ``amd-smi monitor`` print, once or in a loop with dates between.

Columns are apart by two blanks or more. Cells in the middle of some versions hold such blanks, too; the columns
right of the temperature are counted from the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from afterrun.loaders.counters.clocks import LOCAL_NOTE, ctime_ns, is_ctime
from afterrun.loaders.counters.readings import LONGEST_LINE, reading
from afterrun.loaders.counters.samples import Samples
from afterrun.loaders.counters.vocabulary import Counter, counter_of
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.textblocks import decode, split_lines, text_blocks

ROCM_TITLE = re.compile(r"=+\s*ROCm System Management Interface\s*=+", re.IGNORECASE)
_ROCM_HEAD = re.compile(r"(?:GPU|Device)\s+(?:.*\s)?(?:Temp|SCLK)\b.*\b(?:SCLK|GPU%)")
_AMD_HEAD = re.compile(r"GPU\s+(?:\S+\s+)*(?:POWER|GFX_CLK|GFX_UTIL|VRAM_USED|GFX%)\b")
_APART = re.compile(r"\s{2,}")
_DEVICE = re.compile(r"\s*(\d{1,3})\s")
_FIRST = ("temp", "power", "avgpwr", "sclk")


def is_head(line: str) -> bool:
    """Whether a line heads a printed table."""
    text = line.strip()
    return _ROCM_HEAD.match(text) is not None or _AMD_HEAD.match(text) is not None


def _columns(line: str) -> list[str]:
    return [c.strip() for c in _APART.split(line.strip())]


def _counter(name: str, unit: str) -> Counter | None:
    """A column by its name and the unit of its cell: ``Fan`` and ``GPU%`` tell shares."""
    bare = name.split("(", maxsplit=1)[0].strip() if name.lower().startswith(("temp", "power")) else name
    return counter_of(bare, "C" if unit.lower() in ("c", "°c") else unit)


class PrintedTables:
    """Reads the lines of one file; ``samples`` is what has come in since the last flush."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.torn = Places()
        self.dated = False
        self._names: list[str] = []
        self._t_ns: int | None = None

    def add(self, line: str, number: int) -> None:
        """One line."""
        line = line.strip("\0\r")
        if len(line) > LONGEST_LINE:
            self.torn.add(number)
            return
        if is_ctime(line):
            self._t_ns = ctime_ns(line)
            self.dated = True
        elif is_head(line):
            self._names = _columns(line)
        elif self._names and (device := _DEVICE.match(line)):
            if not self._row(_columns(line), int(device[1])):
                self.torn.add(number)
        elif line.startswith("==") and "End of" in line:
            self._names = []

    def _row(self, cells: Sequence[str], device: int) -> bool:
        names = self._names
        tail = next((i for i, n in enumerate(names) if n.lower().startswith(_FIRST)), 1)
        width = len(names) - tail
        if len(cells) <= width:
            return False
        for name, cell in zip(names[tail:], cells[-width:], strict=True):
            value = reading(cell)
            known = _counter(name, value.unit) if value else None
            if value is not None and known is not None:
                self.samples.add(known.name, value.value * known.factor, device=device, t_ns=self._t_ns)
        return True


def read_tables(path: Path) -> Iterator[Batch]:
    """All samples of a file. Raises ``OSError`` where it cannot be read."""
    tables = PrintedTables()
    too_long = 0
    for block in text_blocks(path):
        too_long += block.too_long
        for number, line in enumerate(split_lines(decode(block.data)[0]), block.first_line):
            tables.add(line, number)
    notes = [LOCAL_NOTE if tables.dated else "no time is recorded: samples are in written order"]
    if tables.torn.count:
        notes.insert(0, f"torn rows left out: {tables.torn}")
    yield Batch(frames=tables.samples.frames(), damaged=tables.torn.count + too_long, notes=tuple(notes))
