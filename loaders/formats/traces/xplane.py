"""Profiles of JAX and TensorFlow: ``*.xplane.pb``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import GIB, check_size
from afterrun.loaders.protowire import WireError
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.traces.lanes import host_lane, kernel_lane, step_of
from afterrun.loaders.traces.repair import repair
from afterrun.loaders.traces.xspace import Line, Plane, planes

MAX_BYTES = 2 * GIB

_DEVICE = re.compile(r"/device:([A-Z]+):(\d{1,4})")
_STREAM = re.compile(r"Stream #(\d+)")
_COPY = re.compile(r"Memcpy([HD])(?:2|to)([HD])|Memcpy(P)2P", re.IGNORECASE)
_OPS = "XLA Ops"
"""The one line of a TPU that holds operators; the others repeat their time by module, step and name."""


class XPlane(Loader):
    """Profiles of JAX and TensorFlow (`.xplane.pb`): streams of GPUs, operators of TPUs, threads of the host."""

    format = "xplane"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Its name, or planes with the names of devices in a message."""
        if path.name.endswith(".xplane.pb"):
            return True
        return head[:1] == b"\n" and (b"/device:" in head or b"/host:" in head)

    def load(self, source: Source) -> Iterator[Batch]:
        """Spans by plane; derived lines, which repeat the time of the streams, are left out."""
        check_size(source.name, source.size_bytes, MAX_BYTES)
        data = source.path.read_bytes()
        if b"\xef\xbf\xbd\xef\xbf\xbd" in data[:4096] or data.count(b"\xef\xbf\xbd", 0, 65536) > 16:
            raise UnreadableError(
                f"{source.name}: its bytes were decoded as text on the way and are lost; copy the file again as binary"
            )
        try:
            found = list(planes(data))
        except WireError as error:
            raise UnreadableError(
                f"{source.name}: not a whole XSpace message ({error}); copy the profile again"
            ) from error
        left_out, damaged = 0, 0
        for plane in found:
            try:
                rows, skipped = _rows(plane)
            except WireError:
                damaged += 1
                continue
            left_out += skipped
            if rows is not None:
                fixed = repair(rows)
                yield Batch(frames={"spans": fixed.spans}, damaged=fixed.damaged, notes=fixed.notes)
        notes = (f"{left_out} derived lines repeat the time of others and were left out",) if left_out else ()
        yield Batch(damaged=damaged, notes=notes)


def _rows(plane: Plane) -> tuple[pl.DataFrame | None, int]:
    """Spans of one plane, and how many of its lines were left out."""
    device = _DEVICE.search(plane.name)
    host = plane.name.startswith("/host:") and "metadata" not in plane.name
    if device is None and not host:
        return None, 0
    frames, skipped = [], 0
    for line in plane.lines():
        if not line.events:
            continue
        stream = _STREAM.search(line.name)
        if device is not None and not stream and line.name != _OPS:
            skipped += 1
            continue
        frames.append(
            _line_rows(line, int(device[2]) if device else None, int(stream[1]) if stream else line.number)
        )
    return (pl.concat(frames) if frames else None), skipped


def _line_rows(line: Line, device: int | None, track: int) -> pl.DataFrame:
    kinds = {name: _kind(name, device) for name in {e.name for e in line.events}}
    steps = {name: step_of(name) for name in kinds}
    return pl.DataFrame(
        {
            "device": pl.Series([device] * len(line.events), dtype=pl.Int32),
            "lane": [kinds[e.name][0] for e in line.events],
            "track": pl.Series([track] * len(line.events), dtype=pl.Int64),
            "name": [kinds[e.name][1] for e in line.events],
            "start_ns": pl.Series([e.start_ns for e in line.events], dtype=pl.Int64),
            "dur_ns": pl.Series([e.dur_ns for e in line.events], dtype=pl.Int64),
            "corr": pl.Series([e.corr for e in line.events], dtype=pl.Int64),
            "step": pl.Series(
                [None if device is not None else steps[e.name] for e in line.events], dtype=pl.Int64
            ),
            "process": pl.Series([None] * len(line.events), dtype=pl.Int64),
        }
    )


def _kind(name: str, device: int | None) -> tuple[str, str]:
    """Lane and name of an event."""
    if device is None:
        runtime = re.match(r"(?:cu|cuda|hip)[A-Z]\w+$", name)
        return ("runtime", name) if runtime else (host_lane(name), name)
    copy = _COPY.search(name)
    if copy:
        kind = "PtoP" if copy[3] else f"{copy[1].upper()}to{copy[2].upper()}"
        ends = {"H": "Pageable", "D": "Device", "P": "Device"}
        return "memcpy", f"Memcpy {kind} ({ends[kind[0]]} -> {ends[kind[-1]]})"
    if name.lower().startswith("memset"):
        return "memset", "Memset (Device)"
    return kernel_lane(name), name
