"""What the columns of a sampler's table are, by their labels.

Labels are those of ``nvidia-smi --query-gpu`` and ``--query-compute-apps``, and what people call the same in loggers
of their own (``gpu_util``, ``mem_used_gb``, ``gpu0_temp``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from afterrun.loaders.counters.readings import label
from afterrun.loaders.counters.reasons import BITS
from afterrun.loaders.counters.vocabulary import RAW, Counter, counter_of, normal
from afterrun.loaders.tables.axes import EPOCH_NAMES, STEP_NAMES

Kind = Literal[
    "time", "date", "index", "uuid", "bus", "name", "pid", "process", "driver", "counter", "mask", "state",
    "reason", "raw", "skip",
]  # fmt: skip

COUNTER_KINDS: frozenset[Kind] = frozenset({"counter", "mask", "state", "reason"})

_NAMED: dict[Kind, frozenset[str]] = {
    "time": frozenset(
        {"timestamp", "time", "datetime", "date_time", "ts", "t", "wall_time", "walltime", "unix_time", "unixtime",
         "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp_utc", "time_stamp", "elapsed", "elapsed_s",
         "elapsed_time", "elapsed_sec", "elapsed_seconds", "seconds", "sec", "time_s", "time_sec", "relative_time"}
    ),
    "date": frozenset({"date", "day"}),
    "index": frozenset(
        {"index", "idx", "gpu", "gpu_index", "gpu_idx", "gpu_id", "gpuid", "gpu_number", "device", "device_id",
         "device_index", "card"}
    ),
    "uuid": frozenset({"uuid", "gpu_uuid"}),
    "bus": frozenset({"pci_bus_id", "gpu_bus_id", "bus_id", "bus", "bdf"}),
    "name": frozenset({"name", "gpu_name", "product_name", "device_name", "card_series", "gpu_model", "model"}),
    "pid": frozenset({"pid", "process_id"}),
    "process": frozenset({"process_name", "process", "command"}),
    "driver": frozenset({"driver_version", "cuda_version"}),
    "skip": frozenset({"hostname", "host", "node", "user", "username", "serial", "gpu_serial", "count", "type"}),
}  # fmt: skip
_KINDS: dict[str, Kind] = {name: kind for kind, names in _NAMED.items() for name in names}

_STATIC = re.compile(
    r"^(?:vgpu|pci_(?!e)|driver|vbios|inforom|accounting|display|persistence|addressing|gom|ecc_mode|mig_mode|gsp|c2c|"
    r"fabric|platform|compute_(?:mode|cap)|serial|board|dramencryption|gpu_recovery|power_management|"
    r"power_smoothing|power_(?:default|min|max)|module_.*limit|clocks_(?:max|applications|default)(?!_sm$)|"
    r"pcie_link_(?:gen_(?:max|gpumax|hostmax|gpucurrent)|width_max)|remapped_rows_histogram)"
    r"|_(?:supported|pending)$"
)
"""Columns of a full query that say what the device is or may do, not what it did."""

_REASON = re.compile(r"clocks_(?:throttle|event)_reasons_(\w+)")
_OF_DEVICE = re.compile(r"(?:gpu|cuda|device|card)_?([0-9]{1,3})_(\w+)")
_HOST = re.compile(r"(?:^|_)(?:cpu|ram|swap|disk|net|host|sys|system|load_?avg|iowait|rss)(?:_|$)")
_QUERY = re.compile(
    r"(?:utilization|memory|power|temperature|clocks|pcie|fan|ecc|encoder|enforced|clocks_\w+_reasons)\.[\w.]+|pstate",
)
"""Names with a dot in them that only ``nvidia-smi`` gives."""

_CURVE = re.compile(
    r"(?:^|_)(?:loss|acc|accuracy|lr|learning_rate|perplexity|ppl|grad_norm|reward|val|train|bleu|f1|auc|map|iou|"
    r"tokens|samples|images?|imgs?|batch|throughput|score|epochs?|steps?|iters?|iteration|per_sec)(?:_|$)"
)
_SPEAKS = re.compile(r"gpu|vram|cuda|nvidia")
_BEFORE = ("power_draw", "power_draw_instant", "instant_power_draw")
"""Where several columns mean one counter the first of these is it, else the leftmost."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``counter`` is set for counters and what stays raw; ``unit`` is what its label says.

    ``device`` is told by labels such as ``gpu0_util``; ``on_host``: a counter of the machine, not of a device.
    """

    kind: Kind
    label: str
    name: str
    unit: str = ""
    counter: str = ""
    bit: int = 0
    device: int | None = None
    on_host: bool = False

    def scaled(self, unit: str) -> Counter | None:
        """The counter with the factor of values that came with this unit, the label's where they have none."""
        return counter_of(self.name, unit or self.unit)


@lru_cache(maxsize=4096)
def column(text: str) -> Column:
    """What one label says."""
    name, unit = label(text.strip().lstrip("#"))
    key = normal(name)
    kind = _KINDS.get(key)
    if kind is not None:
        return Column(kind, text, name, unit)
    if reason := _REASON.fullmatch(key):
        if reason[1] in BITS:
            return Column("reason", text, name, bit=BITS[reason[1]])
        if reason[1] == "supported":
            return Column("skip", text, name)
    if known := counter_of(name, unit):
        special: dict[str, Kind] = {"throttle_reasons": "mask", "pstate": "state"}
        on_host = bool(_HOST.search(known.name))
        return Column(special.get(known.name, "counter"), text, name, unit, known.name, on_host=on_host)
    return _of_device(text, key, unit) or _unknown(text, name, unit, key)


def _of_device(text: str, key: str, unit: str) -> Column | None:
    """``gpu0_util``, ``cuda_1_mem_used``: the label tells the device."""
    numbered = _OF_DEVICE.fullmatch(key)
    for rest in (numbered[2], f"gpu_{numbered[2]}") if numbered else ():
        if numbered and (known := counter_of(rest, unit)):
            return Column("counter", text, rest, unit, known.name, device=int(numbered[1]))
    return None


def _unknown(text: str, name: str, unit: str, key: str) -> Column:
    if _STATIC.search(key) or not key:
        return Column("skip", text, name)
    return Column("raw", text, name, unit, text.strip(), on_host=bool(_HOST.search(key)))


def columns_of(labels: Sequence[str]) -> tuple[Column, ...]:
    """The columns of a header, no counter twice: a second column of the same one keeps its raw name."""
    found = [column(text) for text in labels]
    chosen: dict[tuple[str, int | None], int] = {}
    for i, c in enumerate(found):
        if c.kind in ("counter", "mask", "state"):
            key = (c.counter, c.device)
            if key not in chosen or _priority(c) < _priority(found[chosen[key]]):
                chosen[key] = i
    for i, c in enumerate(found):
        if c.kind in ("counter", "mask", "state") and chosen[(c.counter, c.device)] != i:
            found[i] = replace(c, kind="raw", counter=c.label.strip())
    names = {c.kind for c in found}
    if "date" in names and "time" not in names:
        found = [replace(c, kind="time") if c.kind == "date" else c for c in found]
    return tuple(found)


def _priority(c: Column) -> int:
    key = normal(c.name)
    return _BEFORE.index(key) if key in _BEFORE else len(_BEFORE)


def is_header(labels: Sequence[str]) -> bool:
    """Whether these labels head the table of a sampler of devices, and none of a training curve.

    Sure are names that only ``nvidia-smi`` gives (``memory.used``, ``... [MiB]``); others must be known for the
    most part and one of them must speak of a GPU.
    """
    if not labels or len(labels) != len({x.strip() for x in labels}):
        return False
    found = [column(text) for text in labels]
    keys = [normal(c.name) for c in found]
    plain = [k for k, c in zip(keys, found, strict=True) if "." not in c.name and k not in RAW]
    if any(k in STEP_NAMES or k in EPOCH_NAMES or _CURVE.search(k) for k in plain):
        return False
    counters = [c for c in found if c.kind in COUNTER_KINDS]
    of_device = [c for c in counters if not c.on_host]
    process = {"pid", "process"} & {c.kind for c in found}
    if not of_device or any(c in text for text in labels for c in '{}"<>'):
        return False
    if process or any(_QUERY.fullmatch(c.name.strip()) or c.unit == "MiB" for c in of_device):
        return True
    speaks = any(_SPEAKS.search(k) for k in keys) or any(c.device is not None for c in found)
    unknown = sum(1 for c in found if c.kind == "raw" and not c.unit)
    return speaks and len(found) > 1 and unknown <= len(counters)
