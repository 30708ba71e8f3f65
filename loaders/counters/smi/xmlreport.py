"""``nvidia-smi -q -x``: XML, once or many documents one after the other.

Nothing outside the file is read and no entity is expanded: a document that declares one is given up. Depth and the
length of texts are bounded, and what is held is one device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.parsers import expat

from afterrun.loaders.counters.clocks import LOCAL_NOTE, ctime_ns
from afterrun.loaders.counters.samples import Samples, device_settings
from afterrun.loaders.counters.smi.report import DeviceReport
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import text_blocks

MAX_DEPTH = 32
MAX_TEXT = 4096
MAX_DEVICES = 1024
MAX_DOCUMENT_BYTES = 64 << 20
"""A report of one device is about 50 KB; of the largest machine well below 2 MB."""
FLUSH_SAMPLES = 1 << 16

_END = b"</nvidia_smi_log>"
_STARTS = (re.compile(rb"(?=<\?xml)"), re.compile(rb"(?=<!DOCTYPE)"), re.compile(rb"(?=<nvidia_smi_log\b)"))
_FACTS = ("driver_version", "cuda_version")


class _RefusedError(Exception):
    """A document that asks for more than a report needs."""


class XmlReports:
    """Reads the documents of one file; ``samples`` is what has come in since the last flush."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.names: dict[int, str] = {}
        self.facts: dict[str, str] = {}
        self.damaged = 0
        self.dated = False
        self.problems: list[str] = []
        self._reset()

    def _reset(self) -> None:
        self._path: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._t_ns: int | None = None
        self._devices = 0
        self._report = DeviceReport()
        self._process: dict[str, str] = {}

    def read(self, document: bytes) -> None:
        """One document; what came before its damage is kept."""
        self._reset()
        parser = expat.ParserCreate()
        parser.EntityDeclHandler = _refuse
        parser.UnparsedEntityDeclHandler = _refuse
        parser.ExternalEntityRefHandler = _refuse
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(document, True)
        except (expat.ExpatError, _RefusedError, ValueError) as error:
            self.damaged += 1
            if "gpu" in self._path[1:2]:
                self._device()
            if len(self.problems) < 5:
                self.problems.append(f"an XML document is damaged and was read up to there ({error})")

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._path.append(name.lower())
        if len(self._path) > MAX_DEPTH:
            raise _RefusedError("nested too deep")
        self._text, self._length = [], 0
        match self._path[1:]:
            case ["gpu"]:
                self._report = DeviceReport()
            case ["gpu", *_, "mig_device"]:
                self._report.start_mig()
            case ["gpu", *_, "process_info"]:
                self._process = {}
            case _:
                pass

    def _characters(self, text: str) -> None:
        self._length += len(text)
        if self._length <= MAX_TEXT:
            self._text.append(text)

    def _end(self, _: str) -> None:
        text = "".join(self._text).strip()
        self._text, self._length = [], 0
        match self._path[1:]:
            case ["timestamp"]:
                self._t_ns = ctime_ns(text)
                self.dated |= self._t_ns is not None
            case [fact] if fact in _FACTS and text:
                self.facts.setdefault(fact, text)
            case ["gpu"]:
                self._device()
            case ["gpu", *_, "process_info"]:
                self._report.processes.append(self._process)
            case ["gpu", *_, "process_info", key]:
                self._process[key] = text
            case ["gpu", *above, "mig_device", key] if above:
                self._report.take_mig("", key, text)
            case ["gpu", *above, "mig_device", section, key] if above:
                self._report.take_mig(section, key, text)
            case ["gpu", key]:
                self._report.take("", key, text)
            case ["gpu", *above, section, key] if "mig_device" not in above:
                self._report.take(section, key, text)
            case _:
                pass
        self._path.pop()

    def _device(self) -> None:
        if self._devices < MAX_DEVICES:
            self._report.finish(self.samples, self._devices, self._t_ns)
            if self._report.name:
                self.names.setdefault(self._devices, self._report.name)
        self._devices += 1


def _refuse(*_: object) -> int:
    raise _RefusedError("it declares an entity, which no report does")


def read_xml(path: Path) -> Iterator[Batch]:
    """All samples of a file. Raises ``OSError`` where it cannot be read."""
    reports = XmlReports()
    too_long = 0
    for document in _documents(block.data for block in text_blocks(path)):
        if document is None:
            too_long += 1
            continue
        reports.read(document)
        if len(reports.samples) >= FLUSH_SAMPLES:
            yield Batch(frames=reports.samples.frames())
            reports.samples = Samples()
    notes = [*reports.problems, *([LOCAL_NOTE] if reports.dated else [])]
    if too_long:
        notes.append(f"{too_long} XML documents too long to be reports left out")
    frames = reports.samples.frames() | device_settings(reports.names, reports.facts).frames()
    yield Batch(frames=frames, damaged=reports.damaged + too_long, notes=tuple(notes))


def _documents(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """The documents of a file, the last one maybe without its end; None for one over ``MAX_DOCUMENT_BYTES``."""
    rest, skipping = b"", False
    for chunk in chunks:
        rest += chunk
        while (end := rest.find(_END)) >= 0:
            document, rest = rest[: end + len(_END)], rest[end + len(_END) :]
            yield from [None] if skipping else _apart(document)
            skipping = False
        if len(rest) > MAX_DOCUMENT_BYTES:
            rest, skipping = rest[-len(_END) :], True
    yield from [None] if skipping else _apart(rest)


def _apart(text: bytes) -> list[bytes]:
    """Documents in a stretch that holds one end at most: those before it were cut short by a killed writer."""
    start = next((s for s in _STARTS if s.search(text)), None)
    return [part for part in start.split(text) if start.match(part)] if start else []
