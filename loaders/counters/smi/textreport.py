"""``nvidia-smi -q``: an indented list of names and values, once or again and again (``-l``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.clocks import LOCAL_NOTE, ctime_ns
from afterrun.loaders.counters.readings import LONGEST_LINE
from afterrun.loaders.counters.samples import Samples, device_settings
from afterrun.loaders.counters.smi.report import DeviceReport, key_of
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode, split_lines, text_blocks

FLUSH_SAMPLES = 1 << 16

HEAD = re.compile(r"=+NVSMI LOG=+")
_DEVICE = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")
_PAIR = re.compile(r"( *)(\S.*?)\s*:\s(.*)")
_SECTION = re.compile(r"( *)(\S.*?)\s*")
_FACTS = {"driver_version", "cuda_version"}


class TextReports:
    """Reads the lines of one file; ``samples`` is what has come in since the last flush."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.names: dict[int, str] = {}
        self.facts: dict[str, str] = {}
        self.dated = False
        self.odd = 0
        self._t_ns: int | None = None
        self._devices = 0
        self._report: DeviceReport | None = None
        self._sections: list[tuple[int, str]] = []

    def add(self, line: str) -> None:
        """One line."""
        line = line.strip("\0\r").expandtabs()
        if not line.strip() or len(line) > LONGEST_LINE:
            return
        if HEAD.search(line):
            self.end()
            self._devices, self._t_ns = 0, None
        elif _DEVICE.match(line):
            self.end()
            self._report, self._sections = DeviceReport(), []
        elif pair := _PAIR.fullmatch(line):
            self._pair(len(pair[1]), key_of(pair[2]), pair[3].strip())
        elif section := _SECTION.fullmatch(line):
            self._open(len(section[1]), key_of(section[2].rstrip(":")))
        else:
            self.odd += 1

    def end(self) -> None:
        """The end of a device."""
        if self._report is not None:
            self._report.finish(self.samples, self._devices, self._t_ns)
            if self._report.name:
                self.names.setdefault(self._devices, self._report.name)
            self._devices += 1
        self._report = None

    def _open(self, indent: int, name: str) -> None:
        while self._sections and self._sections[-1][0] >= indent:
            self._sections.pop()
        self._sections.append((indent, name))
        if name == "mig_device" and self._report is not None:
            self._report.start_mig()

    def _pair(self, indent: int, key: str, text: str) -> None:
        while self._sections and self._sections[-1][0] >= indent:
            self._sections.pop()
        names = [name for _, name in self._sections]
        if self._report is None:
            if key == "timestamp":
                self._t_ns = ctime_ns(text)
                self.dated |= self._t_ns is not None
            elif key in _FACTS:
                self.facts.setdefault(key, text)
        elif "processes" in names:
            self._process(key, text)
        elif "mig_device" in names:
            self._report.take_mig(names[-1], key, text)
        else:
            self._report.take(names[-1] if names else "", key, text)
            if key == "hw_slowdown":  # the reasons below it are indented, but stand in the same list
                self._sections.append((indent, names[-1] if names else ""))

    def _process(self, key: str, text: str) -> None:
        assert self._report is not None
        if key == "process_id":
            self._report.processes.append({})
        if self._report.processes:
            self._report.processes[-1][key] = text


def read_text(path: Path) -> Iterator[Batch]:
    """All samples of a file. Raises ``OSError`` where it cannot be read."""
    reports = TextReports()
    too_long = 0
    for block in text_blocks(path):
        too_long += block.too_long
        for line in split_lines(decode(block.data)[0]):
            reports.add(line)
        if len(reports.samples) >= FLUSH_SAMPLES:
            yield Batch(frames=reports.samples.frames())
            reports.samples = Samples()
    reports.end()
    notes = (LOCAL_NOTE,) if reports.dated else ()
    frames = reports.samples.frames() | device_settings(reports.names, reports.facts).frames()
    yield Batch(frames=frames, damaged=too_long, notes=notes)
