"""JSON of ``rocm-smi --json`` and ``amd-smi metric|monitor --json``: one document, or several one after the other.

``rocm-smi`` has an object ``cardN`` a device whose values are all texts under keys that change with the version;
``amd-smi`` nests values as ``{"value": 72, "unit": "%"}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from afterrun.loaders.counters.clocks import LOCAL_NOTE
from afterrun.loaders.counters.readings import reading
from afterrun.loaders.counters.samples import Samples, device_settings
from afterrun.loaders.counters.smi.columns import Column, columns_of
from afterrun.loaders.counters.vocabulary import counter_of
from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import LENIENT_JSON, MAX_JSON_BYTES, MAX_JSON_DEPTH, check_size
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import SECOND_NS, moment
from afterrun.loaders.tables.textblocks import decode, encoding_of

_CARD = re.compile(r"card(\d{1,3})", re.IGNORECASE)
_NAMES = ("card series", "card model", "market_name", "device name")
_DRIVER = "driver version"
_RENAMED = {
    ("temperature", "mem"): "temperature_mem",
    ("temperature", "edge"): "edge",
    ("temperature", "hotspot"): "hotspot",
    ("gfx_0", "clk"): "gfx_0_clk",
    ("mem_0", "clk"): "mem_0_clk",
    ("energy", "total_energy_consumption"): "total_energy",
}
"""Section and name of ``amd-smi`` -> a name of the vocabulary, where the name alone says too little."""
_PLAIN_SECTIONS = frozenset({"usage", "power", "mem_usage", ""})
MAX_DAMAGED = 1000
"""After so many damaged documents the rest of a file is given up."""
_START = re.compile(r"[{\[]")
_FIRST_S, _LAST_S = 946_684_800, 4_102_444_800


class Documents:
    """Takes decoded documents; ``samples`` and ``names`` hold what they said."""

    def __init__(self) -> None:
        self.samples = Samples()
        self.names: dict[int, str] = {}
        self.facts: dict[str, str] = {}
        self.local = False
        self.read = 0

    def add(self, document: object) -> None:
        """One document; what is none of a device is passed over."""
        if isinstance(document, Mapping) and "gpu_data" in document:
            document = document["gpu_data"]
        if isinstance(document, Mapping) and any(_CARD.fullmatch(str(k)) for k in document):
            self._cards(document)
        else:
            entries = document if isinstance(document, list) else [document]
            for entry in entries:
                self._entry(entry)

    def _cards(self, document: Mapping[object, object]) -> None:
        for key, values in document.items():
            found = _CARD.fullmatch(str(key))
            if not isinstance(values, Mapping):
                continue
            if found is None:
                driver = next((v for k, v in values.items() if str(k).lower() == _DRIVER), None)
                if isinstance(driver, str):
                    self.facts.setdefault("driver_version", driver)
                continue
            self.read += 1
            device = int(found[1])
            pairs = {str(k): str(v) for k, v in values.items() if not isinstance(v, (Mapping, list))}
            name = next(
                (v for n in _NAMES for k, v in pairs.items() if k.lower() == n and v[:2] != "0x"), None
            )
            if name and name != "N/A":
                self.names.setdefault(device, name)
            for column, text in zip(columns_of([*pairs]), pairs.values(), strict=True):
                self._card_value(column, text, device)

    def _card_value(self, column: Column, text: str, device: int) -> None:
        value = reading(text) if column.kind == "counter" else None
        known = column.scaled(value.unit) if value else None
        if value is not None and known is not None and known.name == column.counter:
            self.samples.add(known.name, value.value * known.factor, device=device)

    def _entry(self, entry: object) -> None:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("gpu"), int):
            return
        self.read += 1
        device, t_ns = int(entry["gpu"]), self._time(entry.get("timestamp"))
        seen: set[str] = set()
        for section, name, value, unit in _leaves(entry, "", 0):
            raw = _RENAMED.get((section, name)) or (name if section in _PLAIN_SECTIONS else "")
            known = counter_of(raw, unit) if raw else None
            if known is not None and known.name not in seen:
                seen.add(known.name)
                self.samples.add(known.name, value * known.factor, device=device, t_ns=t_ns)

    def _time(self, value: object) -> int | None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return int(value * SECOND_NS) if _FIRST_S <= value < _LAST_S else None
        found = moment(value) if isinstance(value, str) else None
        self.local |= found is not None
        return found


def _leaves(
    value: Mapping[object, object], section: str, depth: int
) -> Iterator[tuple[str, str, float, str]]:
    """(section, name, number, unit) of every number in a tree."""
    for key, inner in value.items():
        name = str(key)
        if isinstance(inner, Mapping) and isinstance(inner.get("value"), (int, float)):
            yield section, name, float(inner["value"]), str(inner.get("unit", ""))
        elif isinstance(inner, Mapping) and depth < MAX_JSON_DEPTH:
            yield from _leaves(inner, name, depth + 1)
        elif isinstance(inner, str) and (found := reading(inner)):
            yield section, name, found.value, found.unit
        elif isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield section, name, float(inner), ""


def read_documents(path: Path) -> Iterator[Batch]:
    """All samples of a file. Raises ``UnreadableError`` where no document of a device is whole, and ``OSError``."""
    check_size(path.name, path.stat().st_size, MAX_JSON_BYTES)
    data = path.read_bytes()
    encoding = encoding_of(data[:256])
    text = data.decode(encoding, "replace") if encoding != "utf-8" else decode(data)[0]
    documents, damaged, at = Documents(), 0, 0
    while (start := _START.search(text, at)) is not None:
        try:
            document, at = LENIENT_JSON.raw_decode(text, start.start())
            documents.add(document)
        except (json.JSONDecodeError, RecursionError):
            damaged += 1
            if damaged == MAX_DAMAGED:
                break
            following = re.compile(r"\n[{\[]").search(
                text, start.end()
            )  # documents begin at the begin of a line
            at = following.start() if following else len(text)
    if not documents.read:
        raise UnreadableError(f"{path.name}: no whole JSON document of a device")
    notes = [LOCAL_NOTE] if documents.local else []
    if damaged:
        notes.append(f"{damaged} JSON documents are cut short or damaged and were left out")
    frames = documents.samples.frames() | device_settings(documents.names, documents.facts).frames()
    yield Batch(frames=frames, damaged=damaged, notes=tuple(notes))
