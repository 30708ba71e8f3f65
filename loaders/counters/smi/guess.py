"""The columns of a table without a header, told by their units and what stands in them.

Only what is sure by shape gets a name: dates, names, UUIDs, bus ids, masks, states, and numbers with units. Where
two columns of a unit leave a choice the usual order of a query decides; plain numbers keep the number of their column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from afterrun.loaders.counters.readings import reading
from afterrun.loaders.counters.smi.columns import Column, column

GUESSED_NOTE = "the table has no header: columns are told by their units and what stands in them"

_SHAPES = (
    ("time", re.compile(r"\d{4}[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d.*|1[0-9]{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?")),
    ("uuid", re.compile(r"GPU-[0-9a-fA-F-]{8,}|GPU-\S+")),
    ("bus", re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d")),
    ("mask", re.compile(r"0x[0-9a-fA-F]{16}")),
    ("state", re.compile(r"P(?:1[0-5]|\d)")),
)
_DEVICE = re.compile(r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|RTX|GTX|AMD|Radeon|[AHBLVTP]\d{1,3})\b.*")
_SMI_TIME = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")
_LABELS = {
    "time": "timestamp",
    "uuid": "uuid",
    "bus": "pci.bus_id",
    "name": "name",
    "state": "pstate",
    "mask": "clocks_throttle_reasons.active",
}
_UNITS = frozenset({"%", "MiB", "W", "MHz"})
_MOST = 0.8
_MIN_ROWS = 2
_MAX_INDEX = 15
_SAMPLE = 200


def guess(rows: Sequence[Sequence[str]]) -> tuple[Column, ...] | None:
    """The columns of stripped rows without header; None where they are no samples of devices beyond doubt."""
    widths = Counter(len(r) for r in rows)
    width, often = widths.most_common(1)[0] if widths else (0, 0)
    fitting = [r for r in rows[:_SAMPLE] if len(r) == width]
    if often < _MIN_ROWS or often < _MOST * len(rows) or width > 64:
        return None
    cells = [[r[i] for r in fitting] for i in range(width)]
    kinds = [_kind(c) for c in cells]
    units = [k for k in kinds if k in _UNITS]
    times = any(_SMI_TIME.fullmatch(c[0]) for c in cells)
    placed = times or "name" in kinds or "uuid" in kinds
    sure = (
        (placed and bool(units))
        or (len(units) > 1 and "MiB" in units)
        or (times and width > 1 and "name" in kinds)
    )
    if not sure:
        return None
    return _named(kinds, cells)


def _kind(cells: Sequence[str]) -> str:
    """Shape or unit of a column; ``number`` for plain ones, ``text`` for others, empty where nothing stands in it."""
    told = [c for c in cells if c and not c.startswith("[") and c not in ("N/A", "ERR!", "-")]
    if not told:
        return ""
    for name, shape in _SHAPES:
        if sum(1 for c in told if shape.fullmatch(c)) >= _MOST * len(told):
            return name
    read = [r for c in told if (r := reading(c))]
    if len(read) < _MOST * len(told):
        return "name" if sum(1 for c in told if _DEVICE.match(c)) >= _MOST * len(told) else "text"
    unit, often = Counter(r.unit for r in read).most_common(1)[0]
    if not unit:
        return "number"
    return unit if unit in _UNITS and often >= _MOST * len(read) else "number"


def _named(kinds: Sequence[str], cells: Sequence[Sequence[str]]) -> tuple[Column, ...]:
    labels = {i: _LABELS[k] for i, k in enumerate(kinds) if k in _LABELS}
    values = {
        i: [r.value for c in cells[i] if (r := reading(c))]
        for i, k in enumerate(kinds)
        if k in _UNITS or k == "number"
    }
    shares = [i for i, k in enumerate(kinds) if k == "%"]
    labels.update(zip(shares[:2], ("utilization.gpu [%]", "utilization.memory [%]"), strict=False))
    labels.update(_memory([i for i, k in enumerate(kinds) if k == "MiB"], values))
    labels.update(_power([i for i, k in enumerate(kinds) if k == "W"], values))
    clocks = [i for i, k in enumerate(kinds) if k == "MHz"]
    if len(clocks) == 1:
        labels[clocks[0]] = "clocks.sm [MHz]"
    labels.update(_index([i for i, k in enumerate(kinds) if k == "number"], values))
    unnamed = {i: f"column {i + 1}" + (f" [{k}]" if k in _UNITS else "") for i, k in enumerate(kinds)}
    return tuple(column(labels.get(i, unnamed[i])) for i in range(len(kinds)))


def _memory(at: Sequence[int], values: dict[int, list[float]]) -> dict[int, str]:
    """Used; total, which is constant and the largest; free, which is larger than used when the log begins."""
    if len(at) < 2:
        return dict.fromkeys(at, "memory.used [MiB]")
    largest = max(at, key=lambda i: fmean(values[i]))
    total = largest if len(set(values[largest])) == 1 else None
    rest = sorted((i for i in at if i != total), key=lambda i: values[i][0])
    if total is not None and len(rest) == 2:
        names = ("memory.used [MiB]", "memory.free [MiB]")
        return {total: "memory.total [MiB]", **dict(zip(rest, names, strict=True))}
    if total is not None and len(rest) == 1:
        return {total: "memory.total [MiB]", rest[0]: "memory.used [MiB]"}
    return {}


def _power(at: Sequence[int], values: dict[int, list[float]]) -> dict[int, str]:
    """Draw; the limit is constant and larger."""
    if len(at) == 2:
        low, high = sorted(at, key=lambda i: fmean(values[i]))
        return {low: "power.draw [W]", high: "power.limit [W]"} if len(set(values[high])) == 1 else {}
    return dict.fromkeys(at, "power.draw [W]") if len(at) == 1 else {}


def _index(at: Sequence[int], values: dict[int, list[float]]) -> dict[int, str]:
    """The leftmost plain numbers that count few devices from 0."""
    for i in at:
        seen = set(values[i])
        if seen == set(range(len(seen))) and len(seen) <= _MAX_INDEX + 1 and (len(seen) > 1 or i < 2):
            return {i: "index"}
    return {}
