"""The table that ``nvidia-smi`` draws, once or in a loop, with or without dates between.

Two lines hold one device; the second one is recognised by its cells, ``35%  45C  P2  97W / 250W``. Names that the
table cuts off (``Tesla V100-PCIE...``) stay cut off.
"""

from __future__ import annotations

import re

from afterrun.loaders.counters.clocks import ctime_ns, is_ctime
from afterrun.loaders.counters.readings import reading
from afterrun.loaders.counters.samples import Samples, series_text
from afterrun.loaders.counters.vocabulary import MIB

HEAD = re.compile(r"\|\s*NVIDIA-SMI\s+([\w.]+)\s+Driver Version:\s*([\w.]+)")
_CUDA = re.compile(r"CUDA Version:\s*([\d.]+)")
_NAME = re.compile(
    r"\|\s*(\d{1,3})\s+(\S.*?)\s{2,}(?:On|Off|WDDM|TCC|MCDM|N/A|\S+)\s*\|\s*([0-9A-Fa-f:.]{7,})\s"
)
_STATE = re.compile(
    r"\|\s*(?P<fan>\d+%|N/A|ERR!|\[.*?\])\s+(?P<temp>\d+C|N/A|ERR!)\s+(?P<state>P\d{1,2}|N/A|ERR!)\s+"
    r"(?P<power>[\d.]+W|N/A|ERR!|\S+)\s*/\s*(?P<limit>[\d.]+W|N/A|ERR!|\S+)\s*\|\s*"
    r"(?P<used>\d+MiB|N/A|\S+)\s*/\s*(?P<total>\d+MiB|N/A|\S+)\s*\|\s*(?P<util>\d+%|N/A|ERR!|\S*)"
)
_MIG = re.compile(r"\|\s*(\d+)\s+(\d+|N/A)\s+(\d+|N/A)\s+(\d+)\s*\|\s*(\d+)MiB\s*/\s*(\d+)MiB\s*\|")
_PROCESS = re.compile(
    r"\|\s*(\d+)\s+(?:(?:\d+|N/A)\s+(?:\d+|N/A)\s+)?(\d+)\s+(M?\+?C(?:\+G)?|G|C\+G|\S{1,4})\s+(.*?)\s+(\d+MiB|N/A)\s*\|"
)
_COUNTERS = (
    ("fan", "fan_pct", 1.0),
    ("temp", "temp_c", 1.0),
    ("power", "power_w", 1.0),
    ("limit", "power_limit_w", 1.0),
    ("used", "mem_used_bytes", MIB),
    ("total", "mem_total_bytes", MIB),
    ("util", "gpu_util_pct", 1.0),
)


def basename(path: str) -> str:
    """The executable without its folders and arguments: ``/opt/tools/memhog --gb 2`` -> ``memhog``."""
    name = re.split(r"[/\\]", path.strip())[-1] if not path.startswith("[") else ""
    return name if name.lower().endswith(".exe") or " " not in name else name.split()[0]


class DrawnTables:
    """Takes the lines of drawn tables one by one; ``samples`` and ``names`` hold what they said."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.names: dict[int, str] = {}
        self.facts: dict[str, str] = {}
        self.tables = 0
        self.dated = 0
        self.torn = 0
        self._t_ns: int | None = None
        self._device: int | None = None

    def add(self, line: str) -> None:
        """One line of a table, or a date before one."""
        if is_ctime(line):
            self._t_ns = ctime_ns(line)
            self._ends_torn()
        elif head := HEAD.match(line):
            self.tables += 1
            self.dated += self._t_ns is not None
            self.facts.setdefault("driver_version", head[2])
            if cuda := _CUDA.search(line):
                self.facts.setdefault("cuda_version", cuda[1])
        elif found := _NAME.match(line):
            self._ends_torn()
            self._device = int(found[1])
            self.names.setdefault(self._device, found[2].strip())
        elif found := _STATE.match(line):
            self._state(found)
        elif mig := _MIG.match(line):
            series = series_text({"mig": mig[4]})
            for counter, text in (("mem_used_bytes", mig[5]), ("mem_total_bytes", mig[6])):
                self._sample(counter, float(text) * MIB, int(mig[1]), series)
        elif process := _PROCESS.match(line):
            memory = reading(process[5])
            if memory is not None:
                series = series_text({"pid": process[2], "process": basename(process[4])})
                self._sample("process_mem_used_bytes", memory.value * MIB, int(process[1]), series)

    def end(self) -> None:
        """The end of the file."""
        self._ends_torn()

    def _ends_torn(self) -> None:
        """A device whose second line never came."""
        self.torn += self._device is not None
        self._device = None

    def _state(self, found: re.Match[str]) -> None:
        if self._device is None:
            self.torn += 1
            return
        for group, counter, factor in _COUNTERS:
            value = reading(found[group] or "")
            if value is not None:
                self._sample(counter, value.value * factor, self._device)
        if found["state"].startswith("P"):
            self._sample("pstate", float(found["state"][1:]), self._device)
        self._device = None

    def _sample(self, counter: str, value: float, device: int, series: str = "") -> None:
        self.samples.add(counter, value, device=device, series=series, t_ns=self._t_ns)
