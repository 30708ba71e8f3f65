"""Writes ``.wandb`` files: the records a W&B client would have written, byte for byte.

An independent writer for tests: it shares no code with the reader. Payloads are protobuf wire format written
by hand with the field numbers of ``wandb_internal.proto``; framing is the block log of the client's data store.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from afterrun.loaders.registry import Loader
from afterrun.loaders.schema import LOADER_COLUMNS, conform
from tests.support.events import integer, nested
from tests.support.loading import source

BLOCK = 32768
HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
WALL_S = 1_700_000_000
"""Start of the run in tests, seconds since 1970."""


# -- framing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Where one piece of a record lies in the file, header included, and which record it belongs to."""

    record: int
    start: int
    stop: int


def piece(kind: int, payload: bytes) -> bytes:
    checksum = zlib.crc32(bytes([kind]) + payload)
    return struct.pack("<IHB", checksum, len(payload), kind) + payload


def framed(payloads: Iterable[bytes]) -> tuple[bytes, list[Piece]]:
    """The bytes of a whole file, and the places of all pieces."""
    out = bytearray(HEADER)
    pieces = []
    for number, payload in enumerate(payloads):
        rest, first = payload, True
        while first or rest:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                room = BLOCK
            part, rest = rest[: room - 7], rest[room - 7 :]
            kind = (1 if not rest else 2) if first else (4 if not rest else 3)
            start = len(out)
            out += piece(kind, part)
            pieces.append(Piece(number, start, len(out)))
            first = False
    return bytes(out), pieces


def wandb_file(payloads: Iterable[bytes]) -> bytes:
    return framed(payloads)[0]


def write(path: Path, payloads: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(wandb_file(payloads))
    return path


# -- records -------------------------------------------------------------------------------------

Key = str | tuple[str, ...]
"""A flat name (field ``key``), or the levels of a nested one (field ``nested_key``)."""


def raw_item(key: Key, value_json: str) -> bytes:
    names = nested(1, key) if isinstance(key, str) else b"".join(nested(2, part) for part in key)
    return names + nested(16, value_json)


def item(key: Key, value: Any) -> bytes:
    return raw_item(key, json.dumps(value))


def record(number: int | None, kind: int, message: bytes) -> bytes:
    """A ``Record``; ``number`` None leaves it out, as old clients do."""
    return (integer(1, number) if number is not None else b"") + nested(kind, message)


def history(values: Mapping[Key, Any], number: int | None = None, step: int | None = None) -> bytes:
    """One history row; ``step`` also fills ``HistoryRecord.step``, as newer clients do."""
    body = b"".join(nested(1, item(key, value)) for key, value in values.items())
    told = b"" if step is None else nested(2, integer(1, step) if step else b"")
    return record(number, 2, body + told)


def summary(values: Mapping[Key, Any], removed: Sequence[str] = (), number: int | None = None) -> bytes:
    body = b"".join(nested(1, item(key, value)) for key, value in values.items())
    return record(number, 3, body + b"".join(nested(2, nested(1, key)) for key in removed))


def config_body(values: Mapping[Key, Any]) -> bytes:
    return b"".join(nested(1, item(key, value)) for key, value in values.items())


def config(values: Mapping[Key, Any], number: int | None = None) -> bytes:
    return record(number, 5, config_body(values))


def stamp(wall_s: float) -> bytes:
    nanos = round(wall_s % 1 * 1e9)
    return integer(1, int(wall_s)) + (integer(2, nanos) if nanos else b"")


def stats(values: Mapping[str, Any], wall_s: float = WALL_S, number: int | None = None) -> bytes:
    body = nested(2, stamp(wall_s)) + b"".join(nested(3, item(key, value)) for key, value in values.items())
    return record(number, 7, body)


def output(line: str, wall_s: float = WALL_S, number: int | None = None) -> bytes:
    return record(number, 13, integer(1, 1) + nested(2, stamp(wall_s)) + nested(3, line))


def run(
    settings: Mapping[Key, Any] = {},
    *,
    number: int | None = None,
    resumed_at: int | None = None,
    **names: str,
) -> bytes:
    """The run's own record: ``names`` are ``run_id``, ``entity``, ``project``, ``name``, ``host``."""
    fields = {"run_id": 1, "entity": 2, "project": 3, "name": 8, "host": 13}
    body = b"".join(nested(fields[key], text) for key, text in {"run_id": "abc123", **names}.items())
    body += nested(4, config_body(settings)) + nested(17, stamp(WALL_S))
    if resumed_at is not None:
        body += integer(14, resumed_at) + integer(18, 1)
    return record(number, 17, body)


def metric(
    name: str = "", *, glob: str = "", step: str = "", sync: bool = False, number: int | None = None
) -> bytes:
    """What ``define_metric`` writes: a metric or the metrics of a glob, and the axis they are counted on."""
    body = b"".join(nested(n, text) for n, text in ((1, name), (2, glob), (4, step)) if text)
    return record(number, 12, body + nested(6, (integer(1, 1) if sync else b"") + integer(3, 1)))


def environment(
    gpus: Sequence[tuple[str, int]] = (), *, number: int | None = None, **texts: str | int
) -> bytes:
    """The machine, as newer clients record it: ``gpus`` are names and bytes of memory."""
    fields = {
        "os": 1, "python": 2, "program": 6, "code_path": 7, "email": 10, "root": 11, "host": 12, "username": 13,
        "executable": 14, "cpu_count": 16, "gpu": 18, "gpu_count": 19, "cuda": 25,
    }  # fmt: skip
    body = nested(3, stamp(WALL_S)) + nested(5, "--data=secret")
    for name, value in texts.items():
        body += integer(fields[name], value) if isinstance(value, int) else nested(fields[name], value)
    for name, size in gpus:
        body += nested(24, nested(1, name) + integer(2, size) + nested(4, "Hopper"))
    return record(number, 26, body)


def exit_record(code: int = 0, runtime_s: int = 60, number: int | None = None) -> bytes:
    return record(number, 18, (integer(1, code) if code else b"") + integer(2, runtime_s))


# -- reading back ----------------------------------------------------------------------------------


def table(loader: Loader, path: Path, name: str) -> pl.DataFrame:
    """All rows of one table, dictionary columns as text."""
    frames = [conform(name, b.frames[name]) for b in loader.load(source(path)) if name in b.frames]
    whole = pl.concat(frames) if frames else pl.DataFrame(schema=LOADER_COLUMNS[name])
    return whole.with_columns(pl.col(pl.Categorical).cast(pl.String))
