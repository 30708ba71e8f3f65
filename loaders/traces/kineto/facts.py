"""What a Kineto file says about the machine, the job and the capture. People and hosts are not read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from afterrun.loaders.settings.personal import impersonal

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_VERSIONS = ("cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version")
_JOB = ("backend", "world_size", "nccl_version")
_DEVICE = {"name": "name", "totalGlobalMem": "total_memory_bytes", "numSms": "sm_count"}
_ADVICE = {"WARNING": "warning", "ERROR": "error"}
_PREFIX = re.compile(r"^[A-Z]+:\d{4}-\d\d-\d\d \S+ \d+:\d+ [^\]]*\]\s*")
"""Level, date, process, place in the profiler's source."""
_STOPPED_EARLY = re.compile(r"CUPTI stopped early\? = [1-9]")
_MAX_DEVICES = 1024
_MAX_RANK = 2**31 - 1
_MAX_DIAGNOSTICS = 200
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class Facts:
    """``rank`` of the process, ``base_ns`` to be added to its times, rows of ``params`` and texts of diagnostics."""

    rank: int | None
    base_ns: int | None
    params: Mapping[str, Any]
    diagnostics: tuple[str, ...]

    def params_frame(self, more: Mapping[str, Any]) -> pl.DataFrame:
        """The ``params`` table, values as JSON."""
        values = {**self.params, **more}
        return pl.DataFrame(
            {"key": list(values), "value": [json.dumps(v) for v in values.values()]},
            schema={"key": pl.String, "value": pl.String},
        )


def facts_of(top: Mapping[str, Any]) -> Facts:
    """From the values beside the events."""
    job = _mapping(top.get("distributedInfo"))
    params: dict[str, Any] = {"trace.profiler": "kineto"}
    params |= {f"trace.{key}": bool(top[key]) for key in _FLAGS if top.get(key) in (0, 1)}
    params |= {f"trace.{key}": top[key] for key in _VERSIONS if _scalar(top.get(key))}
    params |= {f"trace.{key}": job[key] for key in _JOB if _scalar(job.get(key))}
    params |= dict(_devices(top.get("deviceProperties")))
    rank = _whole(job.get("rank"))
    if rank is not None and rank > _MAX_RANK:
        rank = None
    return Facts(rank, _whole(top.get("baseTimeNanoseconds")), params, _diagnostics(top))


def groups_of(top: Mapping[str, Any]) -> dict[str, str]:
    """Name of a process group -> its ranks as ``ranks 0,1``, where they are listed."""
    listed = _mapping(top.get("distributedInfo")).get("pg_config")
    found: dict[str, str] = {}
    for entry in listed if isinstance(listed, list) else []:
        name, ranks = (entry.get("pg_name"), entry.get("ranks")) if isinstance(entry, dict) else (None, None)
        if isinstance(name, str) and isinstance(ranks, list) and ranks and all(map(_is_rank, ranks)):
            found[name] = "ranks " + ",".join(map(str, ranks))
    return found


def _devices(listed: Any) -> Iterator[tuple[str, Any]]:
    devices = [x for x in listed if isinstance(x, dict)] if isinstance(listed, list) else []
    if devices:
        yield "trace.devices", len(devices)
    for i, device in enumerate(devices[:_MAX_DEVICES]):
        number = _whole(device.get("id"))
        prefix = f"trace.device.{i if number is None else number}"
        yield from (
            (f"{prefix}.{ours}", device[key]) for key, ours in _DEVICE.items() if _scalar(device.get(key))
        )
        major, minor = _whole(device.get("computeMajor")), _whole(device.get("computeMinor"))
        if major is not None and minor is not None:
            yield f"{prefix}.compute_capability", f"{major}.{minor}"


def _diagnostics(top: Mapping[str, Any]) -> tuple[str, ...]:
    """What the profiler itself warned of, and that it ran out of room for records."""
    found: dict[str, None] = {}
    for key in (*_ADVICE, "INFO"):
        lines = top.get(key)
        for line in lines if isinstance(lines, list) else []:
            if isinstance(line, str) and (key in _ADVICE or _STOPPED_EARLY.search(line)):
                text = impersonal(_PREFIX.sub("", line))[:_MAX_TEXT]
                found[f"{_ADVICE.get(key, 'warning')}: {text}"] = None
    return tuple(found)[:_MAX_DIAGNOSTICS]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _scalar(value: Any) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def _is_rank(value: Any) -> bool:
    return _whole(value) is not None


_MOST = 4 * 10**18


def _whole(value: Any) -> int | None:
    """A count or identifier; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None
