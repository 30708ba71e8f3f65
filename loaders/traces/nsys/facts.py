"""What an export says of the capture: version, clock, length, devices, complaints of the profiler.

The table of the profiled environment (``META_DATA_CAPTURE``) and those of the target system are never read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from afterrun.loaders.settings.personal import impersonal
from afterrun.loaders.traces.lanes import EPOCH_FLOOR_NS
from afterrun.loaders.traces.nsys.store import Store
from afterrun.loaders.traces.nsys.timing import MAX_DEVICE, TIME_LIMIT_NS

SESSION = "TARGET_INFO_SESSION_START_TIME"
DETAILS = "ANALYSIS_DETAILS"
DIAGNOSTICS = "DIAGNOSTIC_EVENT"

EXPORT = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_GPU, _CUDA_DEVICE, _CUDA_GPU = "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_CUDA_GPU"
DEVICES = (_GPU, _CUDA_DEVICE, _CUDA_GPU)

_KNOWN = {"EXPORT_SCHEMA_VERSION": "trace.schema", "EXPORT_PRODUCT_VERSION": "trace.profiler_version"}
_SEVERITIES = {2: "warning", 3: "error"}
_TARGET_CLOCK = 1
_MAX_DIAGNOSTICS = 200
_MAX_TEXT = 500
_MIB = 1 << 20
_LEAST_MEMORY_BYTES = 10**7
"""No GPU has less memory; schemas of 2021 give some sizes in MiB."""

Row = Mapping[str, int | str | None]


def clock_ns(store: Store) -> int | None:
    """UTC time at which the clock of the session began; None where the file does not say it, or not credibly."""
    for row in store.few(SESSION, ["utcEpochNs"]):
        began = row["utcEpochNs"]
        if isinstance(began, int) and EPOCH_FLOOR_NS <= began <= TIME_LIMIT_NS:
            return began
    return None


def params(store: Store, devices: Iterable[int]) -> pl.DataFrame:
    """Facts as rows of ``params``: of the capture, and of those devices that did anything (of all where none did)."""
    values: dict[str, Any] = {"trace.profiler": "nsys", **dict(_versions(store))}
    lengths = [row["duration"] for row in store.few(DETAILS, ["duration"])]
    if found := [x for x in lengths if isinstance(x, int) and 0 <= x <= TIME_LIMIT_NS]:
        values["trace.duration_ns"] = max(found)
    known = dict(_devices(store))
    wanted = set(devices) or set(known)
    for number in sorted(wanted & set(known)):
        values |= {f"trace.device.{number}.{key}": value for key, value in known[number].items() if value}
    return pl.DataFrame(
        {"key": list(values), "value": [json.dumps(v) for v in values.values()]},
        schema={"key": pl.String, "value": pl.String},
    )


def diagnostics(store: Store, began_ns: int | None) -> pl.DataFrame:
    """Complaints of the profiler as rows of ``marks``, each text once. Only times of the target's clock are kept."""
    found: dict[str, int | None] = {}
    for row in store.few(DIAGNOSTICS, ["timestamp", "timestampType", "severity"], ["text"]):
        severity, text, at = _SEVERITIES.get(_int(row["severity"]) or 0), row["text"], _int(row["timestamp"])
        if severity and text and len(found) < _MAX_DIAGNOSTICS:
            own = row["timestampType"] == _TARGET_CLOCK and at is not None and abs(at) <= TIME_LIMIT_NS
            said = f"{severity}: {impersonal(str(text))[:_MAX_TEXT]}"
            found.setdefault(said, at + (began_ns or 0) if own and at is not None else None)
    return pl.DataFrame(
        {"t_ns": list(found.values()), "kind": ["diagnostic"] * len(found), "text": list(found)},
        schema={"t_ns": pl.Int64, "kind": pl.String, "text": pl.String},
    )


def _versions(store: Store) -> Iterator[tuple[str, str]]:
    for table in EXPORT:
        for row in store.few(table, [], ["name", "value"]):
            if row["name"] in _KNOWN and row["value"]:
                yield _KNOWN[str(row["name"])], str(row["value"])


def _devices(store: Store) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number of a device, as rows of activity have it, and what is known of it."""
    integers = ["id", "deviceId", "cuDevice", "totalMemory", "smCount", "computeMajor", "computeMinor"]
    listed = store.few(_GPU, integers, ["name"])
    mapping = {
        _int(row["gpuId"]): _int(row["cudaId"]) for row in store.few(_CUDA_DEVICE, ["gpuId", "cudaId"])
    }
    for row in listed:
        own = _first(row, "cuDevice", "deviceId", "id")
        yield from _device(mapping.get(_int(row["id"]), own), row, "totalMemory", "smCount", "compute")
    older = [
        "deviceId",
        "globalMemorySize",
        "numMultiprocessors",
        "computeCapabilityMajor",
        "computeCapabilityMinor",
    ]
    for row in store.few(_CUDA_GPU, older, ["name"]):
        yield from _device(
            _int(row["deviceId"]), row, "globalMemorySize", "numMultiprocessors", "computeCapability"
        )


def _device(
    number: int | None, row: Row, memory: str, processors: str, capability: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    if number is None or not 0 <= number <= MAX_DEVICE:
        return
    size, (major, minor) = _int(row[memory]), (_int(row[capability + part]) for part in ("Major", "Minor"))
    if size is not None and 0 < size < _LEAST_MEMORY_BYTES:
        size *= _MIB
    yield (
        number,
        {
            "name": row["name"],
            "total_memory_bytes": size,
            "sm_count": _int(row[processors]),
            "compute_capability": None if major is None or minor is None else f"{major}.{minor}",
        },
    )


def _first(row: Row, *columns: str) -> int | None:
    return next((x for c in columns if (x := _int(row[c])) is not None), None)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None
