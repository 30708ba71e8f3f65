"""Writes TensorBoard event files: the records a framework would have written, byte for byte.

An independent writer for tests, samples and benchmarks: it shares no code with the reader. Payloads
are protobuf wire format written by hand; field numbers are those of TensorFlow's ``event.proto``,
``summary.proto`` and ``tensor.proto``. Framing is TFRecord: u64 length, masked CRC-32C of the length,
payload, masked CRC-32C of the payload.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import google_crc32c
import numpy as np

WALL = 1_700_000_000.0
"""Wall time of the first event in tests, seconds since 1970."""

Form = Literal["content", "packed", "unpacked"]
"""Where a tensor keeps its numbers: ``tensor_content``, or ``*_val`` packed or one field a number."""

DTYPES: Mapping[str, tuple[int, int, str]] = {
    "float": (1, 5, "<f4"),
    "double": (2, 6, "<f8"),
    "int32": (3, 7, "<i4"),
    "uint8": (4, 7, "u1"),
    "int16": (5, 7, "<i2"),
    "int8": (6, 7, "i1"),
    "int64": (9, 10, "<i8"),
    "bool": (10, 11, "?"),
    "bfloat16": (14, 13, ""),
    "uint16": (17, 7, "<u2"),
    "half": (19, 13, "<f2"),
    "uint32": (22, 16, "<u4"),
    "uint64": (23, 17, "<u8"),
}
"""Name -> (number in ``types.proto``, number of the ``*_val`` field in ``tensor.proto``, layout of one)."""


# -- wire format ---------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    """Base-128 varint; negative numbers as ten bytes of two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number)


def double(field: int, number: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", number)


def single(field: int, number: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", number)


def nested(field: int, payload: bytes | str) -> bytes:
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(field << 3 | 2) + varint(len(payload)) + payload


# -- framing -------------------------------------------------------------------------------------


def masked_crc(payload: bytes) -> bytes:
    crc = google_crc32c.value(payload)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def header(length: int) -> bytes:
    """The 12 bytes before a payload; valid for any claim of length, true or not."""
    claim = struct.pack("<Q", length)
    return claim + masked_crc(claim)


def record(payload: bytes) -> bytes:
    return header(len(payload)) + payload + masked_crc(payload)


# -- events --------------------------------------------------------------------------------------


def event(wall: float | None, step: int | None, body: bytes = b"") -> bytes:
    """One event; a wall time or step of None is left out, as writers do with 0."""
    parts = [
        b"" if wall is None else double(1, wall),
        b"" if step is None or step == 0 else integer(2, step),
        body,
    ]
    return b"".join(parts)


def version(wall: float = WALL) -> bytes:
    """The first record of every event file."""
    return event(wall, None, nested(3, "brain.Event:2"))


def summary(*values: bytes) -> bytes:
    return nested(5, b"".join(nested(1, value) for value in values))


def scalars(wall: float | None, step: int | None, **values: float) -> bytes:
    """One event with a ``simple_value`` for each keyword."""
    return event(wall, step, summary(*(simple(tag, value) for tag, value in values.items())))


def metadata(plugin: str, content: bytes = b"", description: str = "") -> bytes:
    data = nested(1, plugin) + (nested(2, content) if content else b"")
    return nested(9, nested(1, data) + (nested(3, description) if description else b""))


def simple(tag: str | bytes, value: float, extra: bytes = b"") -> bytes:
    """A value of TF1, PyTorch, tensorboardX: a float32 in ``simple_value``."""
    return nested(1, tag if isinstance(tag, bytes) else tag.encode()) + single(2, value) + extra


def shape(dims: Sequence[int]) -> bytes:
    return nested(2, b"".join(nested(2, integer(1, dim)) for dim in dims))


def tensor_proto(
    numbers: Sequence[float], dtype: str = "float", form: Form = "content", dims: Sequence[int] = ()
) -> bytes:
    """A ``TensorProto`` of any numeric type."""
    number, field, _ = DTYPES[dtype]
    head = integer(1, number) + shape(dims)
    if form == "content":
        return head + nested(4, _content(numbers, dtype))
    parts = [_one(x, dtype) for x in numbers]
    if form == "packed":
        return head + nested(field, b"".join(parts))
    wire = {"float": 5, "double": 1}.get(dtype, 0)
    return head + b"".join(varint(field << 3 | wire) + part for part in parts)


def tensor(tag: str, proto: bytes, plugin: str | None = "scalars", description: str = "") -> bytes:
    """A value of TF2: a tensor, with the plugin that shows it (None: no metadata, as after the first)."""
    return nested(1, tag) + nested(8, proto) + (metadata(plugin, description=description) if plugin else b"")


def _content(numbers: Sequence[float], dtype: str) -> bytes:
    if dtype == "bfloat16":
        return np.asarray(numbers, "<f4").view("<u2")[1::2].tobytes()
    return np.asarray(numbers).astype(DTYPES[dtype][2]).tobytes()


def _one(number: float, dtype: str) -> bytes:
    if dtype == "float":
        return struct.pack("<f", number)
    if dtype == "double":
        return struct.pack("<d", number)
    if dtype in ("half", "bfloat16"):
        return varint(int(np.frombuffer(_content([number], dtype), "<u2")[0]))
    return varint(int(number))


# -- other payloads ------------------------------------------------------------------------------


def histo(tag: str, limits: Sequence[float], counts: Sequence[float], low: float, high: float) -> bytes:
    """An old histogram (``HistogramProto``): right limits of the buckets, and the extremes."""
    total = float(sum(counts))
    proto = double(1, low) + double(2, high) + double(3, total) + double(4, 0.0) + double(5, 0.0)
    proto += nested(6, np.asarray(limits, "<f8").tobytes()) + nested(7, np.asarray(counts, "<f8").tobytes())
    return nested(1, tag) + nested(5, proto)


def histogram_tensor(tag: str, buckets: Sequence[tuple[float, float, float]]) -> bytes:
    """A histogram of TF2: a [k, 3] double tensor of left, right, count."""
    flat = [number for bucket in buckets for number in bucket]
    return tensor(tag, tensor_proto(flat, "double", dims=(len(buckets), 3)), plugin="histograms")


def text(tag: str, *strings: str, plugin: str = "text") -> bytes:
    """Text as PyTorch and Hugging Face write it: a string tensor of plugin ``text``."""
    proto = integer(1, 7) + shape((len(strings),)) + b"".join(nested(8, s) for s in strings)
    return nested(1, tag) + nested(8, proto) + metadata(plugin)


def hparams(values: Mapping[str, float | str | bool], group: str = "") -> bytes:
    """The ``session_start_info`` that PyTorch and Lightning write for a set of hyper-parameters."""
    entries = b"".join(nested(1, nested(1, key) + nested(2, _json(value))) for key, value in values.items())
    start = entries + (nested(4, group) if group else b"")
    content = integer(1, 0) + nested(3, start)
    return nested(1, "_hparams_/session_start_info") + metadata("hparams", content)


def _json(value: float | str | bool) -> bytes:
    """``google.protobuf.Value``."""
    if isinstance(value, bool):
        return integer(4, int(value))
    return nested(3, value) if isinstance(value, str) else double(2, value)


def image(tag: str, blob: bytes) -> bytes:
    return nested(1, tag) + nested(4, integer(1, 8) + integer(2, 8) + integer(3, 3) + nested(4, blob))


def audio(tag: str, blob: bytes) -> bytes:
    return nested(1, tag) + nested(6, nested(4, blob))


def graph(wall: float, blob: bytes) -> bytes:
    return event(wall, None, nested(4, blob))


def session(wall: float, step: int, status: int, path: str = "") -> bytes:
    """A ``SessionLog``: 1 start, 2 stop, 3 checkpoint."""
    return event(wall, step, nested(7, integer(1, status) + (nested(2, path) if path else b"")))


# -- files ---------------------------------------------------------------------------------------


def event_file(events: Iterable[bytes], *, with_version: bool = True) -> bytes:
    """The bytes of a whole file, version record first."""
    head = record(version()) if with_version else b""
    return head + b"".join(record(payload) for payload in events)


def write(path: Path, events: Iterable[bytes], *, with_version: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(event_file(events, with_version=with_version))
    return path


def curve(
    tag: str, values: Iterable[float], *, start: int = 0, wall: float = WALL, gap_s: float = 1.0
) -> list[bytes]:
    """One event a value, steps counted up from ``start``."""
    return [event(wall + i * gap_s, start + i, summary(simple(tag, v))) for i, v in enumerate(values)]
