"""``nvidia-smi dmon`` and ``pmon``: columns under two header lines, the names and their units.

Headers are repeated and change with ``-s``. Dates stand in front with ``-o DT``, the time of day alone with ``-o T``;
without either no time is recorded. ``-`` is *not recorded*. Rows of ``pmon`` are one process each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from afterrun.loaders.counters.clocks import LOCAL_NOTE
from afterrun.loaders.counters.readings import LONGEST_LINE, reading
from afterrun.loaders.counters.samples import Samples, diagnostics_frame, series_text
from afterrun.loaders.counters.smi.drawn import basename
from afterrun.loaders.counters.smi.lines import DIAGNOSTIC
from afterrun.loaders.counters.vocabulary import counter_of
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import SECOND_NS, moment
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

FLUSH_SAMPLES = 1 << 18

_DEVICE_NAMES = frozenset(
    {"pwr", "gtemp", "mtemp", "sm", "mem", "enc", "dec", "jpg", "ofa", "mclk", "pclk", "fb", "bar1", "pviol", "tviol",
     "sbecc", "dbecc", "pci", "rxpci", "txpci", "ccpm"}
)  # fmt: skip
_OWN = {
    ("mem", "%"): "mem_util_pct",
    ("pci", "errs"): "pcie_errors",
    ("pviol", "%"): "power_violation_pct",
    ("tviol", "%"): "thermal_violation_pct",
    ("tviol", "bool"): "throttle_thermal",
    ("pviol", "bool"): "throttle_power",
}
"""Names that mean something of their own here, by name and unit."""

_SPLIT = re.compile(r"\s*,\s*|\s+")
_reading = lru_cache(maxsize=4096)(reading)
_moment = lru_cache(maxsize=64)(moment)
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)")
_DAY_NS = 86_400 * SECOND_NS
_TEXT_COLUMNS = ("command", "type", "gpu", "pid", "date", "time")


@dataclass(frozen=True, slots=True)
class Header:
    """Names of the columns, lower case, and their units; ``counters`` maps positions to counter and factor."""

    names: tuple[str, ...]
    units: tuple[str, ...] = ()
    counters: dict[int, tuple[str, float]] = field(default_factory=dict)

    def at(self, name: str) -> int | None:
        """Position of a column."""
        return self.names.index(name) if name in self.names else None


def header_names(line: str) -> tuple[str, ...]:
    """Names of the columns in the first header line of dmon or pmon; empty where it is none."""
    if not line.lstrip().startswith("#"):
        return ()
    names = tuple(x.lower() for x in _words(line.lstrip()[1:]))
    known = _DEVICE_NAMES.intersection(names)
    return names if "gpu" in names and known else ()


def is_process_header(names: Sequence[str]) -> bool:
    """Whether the columns are those of pmon."""
    return "pid" in names and "type" in names


def sniff_header(head: bytes) -> tuple[str, ...]:
    """The first header among the first lines of a file; empty where there is none."""
    text = decode_head(head).replace("\0", "")
    lines = [x for x in split_lines(text) if x.strip()][:40] if "#" in text and "gpu" in text else []
    return next((names for x in lines if (names := header_names(x))), ())


def _words(text: str) -> list[str]:
    return [w for w in _SPLIT.split(text.strip()) if w]


def _headed(names: tuple[str, ...], units: Sequence[str]) -> Header:
    counters: dict[int, tuple[str, float]] = {}
    told = tuple(units) if len(units) == len(names) else ("",) * len(names)
    for i, (name, unit) in enumerate(zip(names, told, strict=True)):
        if name in _TEXT_COLUMNS:
            continue
        own = next((c for (n, u), c in _OWN.items() if n == name and u == (unit or u)), None)
        known = counter_of(name, unit) if own is None else None
        counters[i] = (own, 1.0) if own else (known.name, known.factor) if known else (name, 1.0)
    return Header(names, told, counters)


class Monitor:
    """Reads the lines of one file. ``processes``: rows are of processes."""

    def __init__(self, *, processes: bool) -> None:
        self.samples = Samples()
        self.torn = Places()
        self.headers = 0
        self.dated = False
        self.diagnostics: list[tuple[int, str]] = []
        self._processes = processes
        self._header: Header | None = None
        self._days = 0
        self._last_ns = -1
        self._counts: dict[int, int] = {}
        self._listed: set[tuple[int, str]] = set()
        self._t_ns: int | None = None

    def add(self, line: str, number: int) -> None:
        """One line."""
        line = line.strip("\0 \t\r")
        if not line:
            return
        if len(line) > LONGEST_LINE:
            self.torn.add(number)
            return
        if line.startswith("#"):
            self._take_header(line)
        elif self._header is None or not self._row(self._header, line):
            if DIAGNOSTIC.search(line):
                self.diagnostics.append((number, line))
            else:
                self.torn.add(number)

    @property
    def has_time(self) -> bool:
        """Whether the last header has a column of times."""
        return self._header is not None and self._header.at("time") is not None

    def _take_header(self, line: str) -> None:
        names = header_names(line)
        if names:
            self.headers += 1
            whole = is_process_header(names) or not self._processes
            self._header = _headed(names, ()) if whole else None
        elif self._header is not None:
            self._header = _headed(self._header.names, _words(line[1:]))

    def _row(self, header: Header, line: str) -> bool:
        words = _words(line)
        width = len(header.names)
        if header.names[-1] == "command" and len(words) > width:
            words = [*words[: width - 1], " ".join(words[width - 1 :])]
        device = header.at("gpu")
        if len(words) != width or device is None or not words[device].isdigit() or len(words[device]) > 3:
            return False
        t_ns = self._time(header, words)
        if t_ns is None and header.at("time") is not None:
            return False
        if self._processes:
            self._process(header, words, int(words[device]), t_ns)
        else:
            for i, (counter, factor) in header.counters.items():
                self._sample(counter, words[i], factor, device=int(words[device]), t_ns=t_ns)
        return True

    def _sample(
        self, counter: str, text: str, factor: float, *, device: int, t_ns: int | None, series: str = ""
    ) -> None:
        value = _reading(text)
        if value is not None:
            self.samples.add(counter, value.value * factor, device=device, series=series, t_ns=t_ns)

    def _process(self, header: Header, words: Sequence[str], device: int, t_ns: int | None) -> None:
        pid = words[header.names.index("pid")]
        if (device, pid) in self._listed or t_ns != self._t_ns:
            self.end()
        self._t_ns = t_ns
        self._listed.add((device, pid))
        self._counts.setdefault(device, 0)
        if not pid.isdigit():
            return
        self._counts[device] += 1
        command = header.at("command")
        name = basename(words[command]) if command is not None and words[command] != "-" else ""
        labels = {"pid": pid, **({"process": name} if name else {})}
        for i, (counter, factor) in header.counters.items():
            series = series_text(labels)
            self._sample(f"process_{counter}", words[i], factor, device=device, t_ns=t_ns, series=series)

    def end(self) -> None:
        """The end of one sampling of processes: how many there were on each device."""
        for device, count in self._counts.items():
            self.samples.add("processes", float(count), device=device, t_ns=self._t_ns)
        self._counts, self._listed = {}, set()

    def _time(self, header: Header, words: Sequence[str]) -> int | None:
        """UTC, with the time of day alone nanoseconds since the midnight before the first row."""
        at, day = header.at("time"), header.at("date")
        clock = _TIME.fullmatch(words[at]) if at is not None else None
        if clock is None:
            return None
        if day is not None:
            date = _DATE.fullmatch(words[day])
            found = _moment(f"{date[1]}-{date[2]}-{date[3]} {clock[0]}") if date else None
            self.dated |= found is not None
            return found
        t_ns = (int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])) * SECOND_NS + self._days * _DAY_NS
        if t_ns < self._last_ns - _DAY_NS // 2:
            self._days += 1
            t_ns += _DAY_NS
        self._last_ns = t_ns
        return t_ns


def read_monitor(path: Path, *, processes: bool) -> Iterator[Batch]:
    """All samples of a file. Raises ``OSError`` where it cannot be read."""
    monitor = Monitor(processes=processes)
    latin1, too_long = False, 0
    for block in text_blocks(path):
        too_long += block.too_long
        text, odd = decode(block.data)
        latin1 |= odd
        for number, line in enumerate(split_lines(text), block.first_line):
            monitor.add(line, number)
            if len(monitor.samples) >= FLUSH_SAMPLES:
                yield Batch(frames=monitor.samples.frames())
                monitor.samples = Samples()
    monitor.end()
    frames = monitor.samples.frames() | diagnostics_frame(monitor.diagnostics)
    notes = list(_notes(monitor, latin1=latin1))
    yield Batch(frames=frames, damaged=monitor.torn.count + too_long, notes=tuple(notes))


def _notes(monitor: Monitor, *, latin1: bool) -> Iterable[str]:
    if monitor.torn.count:
        yield f"torn rows left out: {monitor.torn}"
    if monitor.dated:
        yield LOCAL_NOTE
    elif monitor.headers and not monitor.has_time:
        yield "no time is recorded (-o DT writes it): samples are in written order"
    elif monitor.headers:
        yield "only the time of day is recorded: times count from a midnight"
    if latin1:
        yield "bytes that are not UTF-8 were read as Latin-1"
