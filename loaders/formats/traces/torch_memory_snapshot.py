"""PyTorch's memory snapshot: a pickle of segments and of what the allocator did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import GIB, check_size
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.traces.memory_categories import by_category
from afterrun.loaders.traces.plainpickle import load_plain

MAX_BYTES = 1 * GIB
ALLOCATED: Mapping[str, int] = {"alloc": 1, "free_completed": -1, "free": -1}
RESERVED: Mapping[str, int] = {"segment_alloc": 1, "segment_free": -1, "segment_map": 1, "segment_unmap": -1}
KEYS = (b"segments", b"device_traces")


class TorchMemorySnapshot(Loader):
    """PyTorch's memory snapshot (`torch.cuda.memory._dump_snapshot`), unpickled with every global forbidden."""

    format = "torch-memory-snapshot"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A pickle whose first keys are those of a snapshot, or one that is named like one."""
        if len(head) < 2 or head[0] != 0x80 or not 2 <= head[1] <= 5:
            return False
        named = path.suffix.lower() in (".pickle", ".pkl") and any(
            w in path.name.lower() for w in ("snapshot", "memory", "mem_")
        )
        return named or any(key in head for key in KEYS)

    def load(self, source: Source) -> Iterator[Batch]:
        """Allocated and reserved bytes after each action, by device; the end of the record is what the segments hold."""
        check_size(source.name, source.size_bytes, MAX_BYTES)
        snapshot = load_plain(source.path.read_bytes(), source.name)
        if isinstance(snapshot, list):  # before PyTorch 2.1 the segments alone
            snapshot = {"segments": snapshot}
        if not isinstance(snapshot, dict) or not set(snapshot) & {"segments", "device_traces"}:
            raise UnreadableError(f"{source.name}: a pickle, but no memory snapshot of PyTorch")
        held = _held(snapshot.get("segments"))
        traces = snapshot.get("device_traces")
        traces = traces if isinstance(traces, list) else []
        frames, ooms, damaged = [], [], 0
        for device in sorted({*held, *(i for i, t in enumerate(traces) if isinstance(t, list) and t)}):
            events = [e for e in traces[device] if isinstance(e, dict)] if device < len(traces) else []
            frame, lost = _series(device, events, held.get(device, (0, 0)))
            frames.append(frame)
            parts = by_category(device, events, held.get(device, (0, 0))[0])
            frames += [] if parts is None else [parts]
            damaged += lost
            ooms += [
                (_time_ns(e), f"out of memory on device {device}: {_size(e)} bytes asked")
                for e in events
                if e.get("action") == "oom"
            ]
        settings = Settings()
        settings.add(
            "trace.allocator", {str(k): v for k, v in dict(snapshot.get("allocator_settings") or {}).items()}
        )
        tables = {"samples": pl.concat(frames)} if frames else {}
        if ooms:
            tables["marks"] = pl.DataFrame(
                {"t_ns": [t for t, _ in ooms], "kind": ["oom"] * len(ooms), "text": [x for _, x in ooms]},
                schema_overrides={"t_ns": pl.Int64},
            )
        actions = Counter(
            str(e.get("action")) for t in traces if isinstance(t, list) for e in t if isinstance(e, dict)
        )
        notes = (
            f"{sum(actions.values())} actions of the allocator"
            if actions
            else "no history of actions, only what was held at the end",
        )
        yield Batch(frames={**tables, **settings.frames()}, damaged=damaged, notes=notes)


def _held(segments: Any) -> dict[int, tuple[int, int]]:
    """Allocated and reserved bytes of each device at the end, from its segments."""
    out: dict[int, tuple[int, int]] = {}
    for segment in segments if isinstance(segments, list) else []:
        if not isinstance(segment, dict):
            continue
        device = _int(segment.get("device")) or 0
        allocated, reserved = out.get(device, (0, 0))
        out[device] = (
            allocated + (_int(segment.get("allocated_size")) or 0),
            reserved + (_int(segment.get("total_size")) or 0),
        )
    return out


def _series(device: int, events: list[dict[str, Any]], end: tuple[int, int]) -> tuple[pl.DataFrame, int]:
    """Samples after each action that moves a total, counted back from the end; and how many actions hold no size.

    The ring buffer of actions may have lost its beginning, the end is certain.
    """
    parts, damaged = [], 0
    for counter, signs, last in (
        ("mem_alloc_bytes", ALLOCATED, end[0]),
        ("mem_reserved_bytes", RESERVED, end[1]),
    ):
        moved = [(e, signs[str(e.get("action"))]) for e in events if str(e.get("action")) in signs]
        sized = [(e, sign, _int(e.get("size"))) for e, sign in moved]
        damaged += sum(size is None or size < 0 for _, _, size in sized)
        known = [(_time_ns(e), sign * size) for e, sign, size in sized if size is not None and size >= 0]
        delta = np.array([d for _, d in known], np.int64)
        value = last - (delta.sum() - np.cumsum(delta)) if len(delta) else np.array([last], np.int64)
        times = [t for t, _ in known] or [None]
        timed = all(t is not None for t in times)
        parts.append(
            pl.DataFrame(
                {
                    "device": pl.Series([device] * len(value), dtype=pl.Int32),
                    "series": [""] * len(value),
                    "counter": [counter] * len(value),
                    "t_ns": pl.Series(times if timed else [None] * len(value), dtype=pl.Int64),
                    "value": value.astype(np.float64),
                }
            )
        )
    return pl.concat(parts), damaged


def _time_ns(event: Mapping[str, Any]) -> int | None:
    at = _int(event.get("time_us"))
    return at * 1000 if at is not None and 0 <= at < 2**53 else None


def _size(event: Mapping[str, Any]) -> str:
    size = _int(event.get("size"))
    return "unknown" if size is None else f"{size:,}"


def _int(x: Any) -> int | None:
    return x if isinstance(x, int) and not isinstance(x, bool) and abs(x) < 2**62 else None
