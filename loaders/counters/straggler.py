"""Lines of Megatron-LM's straggler detector, in a log of their own or among the lines of a training log.

``[2024-03-14 23:07:56] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 | MnPwr/Rnk: 601796W/8 | ...`` tells the least
and the largest value of each quantity and the rank it was measured on; below it may stand the ranks with the lowest
and the highest throughput. Every value becomes a sample of its rank, with ``extreme="min"`` or ``"max"`` as series: the
other ranks are not recorded. Power is what ``torch.cuda.power_draw`` returns, milliwatts, printed as ``W``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from afterrun.loaders.counters.samples import Samples, series_text
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import moment
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines

MARK = b"/Rnk: "

COUNTERS: Mapping[str, tuple[str, Mapping[str, float]]] = MappingProxyType(
    {
        "Rtt": ("round_trip_s", {"s": 1.0, "ms": 1e-3, "us": 1e-6}),
        "DRtt": ("get_batch_s", {"s": 1.0, "ms": 1e-3, "us": 1e-6}),
        "Pwr": ("power_w", {"W": 1.0, "mW": 1e-3}),
        "Tmp": ("temp_c", {"C": 1.0}),
        "Utl": ("gpu_util_pct", {"%": 1.0}),
        "Clk": ("sm_clock_hz", {"MHz": 1e6}),
        "Etpt": ("tflops", {"TF": 1.0}),
    }
)
"""Name in the line -> counter, and the factor of each unit. ``tflops`` is the estimated throughput of the rank, TFLOP/s."""

MOST_WATTS = 10_000.0
"""No device draws so much: above it the number is milliwatts."""

MAX_RANK = 2**31 - 1

_PAIR = re.compile(r"\b(Mn|Mx)(\w+)/Rnk: *([-+\d.eE]+) *([A-Za-z%]+)/(\d+)")
_REST = re.compile(r"\| *M[^|]*$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_LIST = re.compile(r"\b(Bottom|Top)\s+\d+ Ranks with (?:lowest|highest)\s+Etpt\s*\(TF\): *(.*)")
_ITEM = re.compile(r"([\d.eE+-]+)/(\d+)")
_EXTREMES = {"Mn": "min", "Mx": "max", "Bottom": "min", "Top": "max"}


class _HasData(Protocol):
    @property
    def data(self) -> bytes: ...


Block = TypeVar("Block", bound=_HasData)


class Stragglers:
    """Collects the samples of the lines it is shown."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.lines = 0
        self.torn = 0
        self._milliwatts = False
        self._timed = False
        self._t_ns: int | None = None
        self._last: set[tuple[str, int]] = set()

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks as they are; lines of the detector in them are read on the way."""
        for block in blocks:
            if MARK in block.data or b"Ranks with" in block.data:
                for line in split_lines(decode(block.data)[0]):
                    self.add(line)
            yield block

    def add(self, line: str) -> None:
        """One line of a log."""
        if "/Rnk: " in line:
            self._values(line)
        elif "Ranks with" in line and (found := _LIST.search(line)):
            for value, rank in _ITEM.findall(found[2]):
                self._sample("Etpt", value, "TF", rank, _EXTREMES[found[1]])

    def _values(self, line: str) -> None:
        found = list(_PAIR.finditer(line))
        if not found:
            return
        date = _DATE.search(line)
        self._t_ns = moment(date[0]) if date else None
        self._timed |= self._t_ns is not None
        self._last = set()
        self.lines += 1
        self.torn += line.count("/Rnk") > len(found) or _REST.search(line, found[-1].end()) is not None
        for pair in found:
            self._sample(pair[2], pair[3], pair[4], pair[5], _EXTREMES[pair[1]])

    def _sample(self, name: str, text: str, unit: str, rank: str, extreme: str) -> None:
        counter, units = COUNTERS.get(name, (name, {}))
        try:
            value = float(text) * units.get(unit, 1.0)
        except ValueError:
            return
        if counter == "power_w" and value > MOST_WATTS:
            value *= 1e-3
            self._milliwatts = True
        key = (f"{name}{text}{extreme}", int(rank[:10]))
        if key in self._last or key[1] > MAX_RANK:  # the lists repeat the extremes of the line above
            return
        self._last.add(key)
        series = series_text({"extreme": extreme})
        self.samples.add(counter, value, series=series, t_ns=self._t_ns, rank=key[1])

    def batch(self, *, alone: bool = False) -> Batch:
        """The samples of the file. ``alone``: there is nothing else in it, so its notes and losses are told, too."""
        notes = []
        if self.lines:
            notes.append("lines of Megatron's straggler detector: the extreme ranks of each quantity only")
        if self._milliwatts:
            notes.append(
                f"power above {MOST_WATTS:,.0f} W a rank can only be milliwatts and was read as such"
            )
        if alone and self._timed:
            notes.append("local times without a zone are taken for UTC")
        return Batch(frames=self.samples.frames(), damaged=self.torn if alone else 0, notes=tuple(notes))


def sniff(head: bytes) -> bool:
    """Whether lines of the detector stand among the first of a file."""
    return MARK in head and any(
        _PAIR.search(line) for line in split_lines(decode_head(head)) if "/Rnk: " in line
    )
