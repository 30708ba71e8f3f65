"""What W&B recorded of the machine: versions, devices and the name of the program; nothing about the person.

The same facts stand in ``wandb-metadata.json``, under ``_wandb`` in the ``config.yaml`` of newer clients, and as an
``EnvironmentRecord`` in their ``.wandb`` files. Source: wandb/proto/wandb_internal.proto.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from afterrun.loaders.protowire import BYTES, VARINT, Field, fields, text

_GPU_LISTS = ("gpu_nvidia", "gpu_devices", "gpu_amd")
_TEXTS = {1: "os", 2: "python", 6: "program", 18: "gpu", 25: "cuda"}
_COUNTS = {16: "cpu_count", 19: "gpu_count"}
_DEVICES = {24: ("gpu_nvidia", 1), 26: ("gpu_amd", 9)}
_MEMORY = 2
_MOST = 1 << 20
"""No machine has more devices or cores."""


def environment(values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """(key, value) of what is taken over, by our own names, below ``env.``; what is not recorded is left out."""
    listed: list[Any] = next((values[k] for k in _GPU_LISTS if isinstance(values.get(k), list)), [])
    devices = [d for d in listed if isinstance(d, Mapping)]
    names = [name for d in devices if (name := _text(d.get("name") or d.get("model")))]
    program = _text(values.get("program"))
    found = {
        "os": _text(values.get("os")),
        "python": _text(values.get("python")),
        "cuda": _text(values.get("cuda") or values.get("cudaVersion")),
        "gpu": _text(values.get("gpu")) or (", ".join(dict.fromkeys(names)) or None),
        "gpu_count": _count(values.get("gpu_count")) or (len(devices) or None),
        "gpu_memory_bytes": next(
            (_number(d.get("memory_total") or d.get("memoryTotal")) for d in devices), None
        ),
        "cpu_count": _count(values.get("cpu_count")),
        "program": re.split(r"[/\\]", program)[-1] if program else None,
    }
    yield from ((f"env.{key}", value) for key, value in found.items() if value is not None)


def environment_record(data: bytes, at: int, end: int) -> dict[str, Any]:
    """An ``EnvironmentRecord`` as ``wandb-metadata.json`` spells it, as far as ``environment`` looks at it.

    Raises ``WireError`` where it is none.
    """
    view = memoryview(data)
    found: dict[str, Any] = {}
    for field in fields(view, at, end):
        if field.number in _TEXTS and field.wire == BYTES:
            found[_TEXTS[field.number]] = text(view, field.at, field.end)
        elif field.number in _COUNTS and field.wire == VARINT:
            found[_COUNTS[field.number]] = field.value
        elif field.number in _DEVICES and field.wire == BYTES:
            name, title = _DEVICES[field.number]
            found.setdefault(name, []).append(_device(view, field, title))
    return found


def _device(view: memoryview, field: Field, title: int) -> dict[str, Any]:
    device: dict[str, Any] = {}
    for inner in fields(view, field.at, field.end):
        if inner.number == title and inner.wire == BYTES:
            device["name"] = text(view, inner.at, inner.end)
        elif inner.number == _MEMORY and inner.wire == VARINT:
            device["memory_total"] = inner.value
    return device


def environment_in_config(internal: object) -> Mapping[str, Any]:
    """What newer clients keep of the first machine that wrote to the run in its configuration, below ``_wandb``."""
    value = internal.get("value") if isinstance(internal, Mapping) else None
    writers = value.get("e") if isinstance(value, Mapping) else None
    machines = writers.values() if isinstance(writers, Mapping) else ()
    return next((m for m in machines if isinstance(m, Mapping)), {})


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _number(value: object) -> int | None:
    """A whole number above zero; newer clients spell big ones as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63 else None


def _count(value: object) -> int | None:
    number = _number(value)
    return number if number is not None and number <= _MOST else None
