"""What the values of an event file mean that are no scalars: histograms, hyper-parameters, sessions.

Sources: tensorflow/core/framework/summary.proto (HistogramProto), tensorboard/plugins/hparams/
{plugin_data,api}.proto, google/protobuf/struct.proto, tensorflow/core/util/event.proto (SessionLog).
"""

from __future__ import annotations

import json
import math

import numpy as np

from afterrun.loaders import tftensor
from afterrun.loaders.protowire import BYTES, FIXED64, VARINT, Field, WireError, fields, float64, text
from afterrun.loaders.tftensor import Numbers, Tensor

BUCKET_LIMIT = 100_000
"""A histogram of more buckets is taken for damage."""

JSON_DEPTH = 20
"""Hyper-parameters nested deeper are taken for damage."""

_SESSION = {1: "start", 2: "finish", 3: "checkpoint"}


def old_histogram(view: memoryview, at: int, end: int) -> tuple[Numbers, Numbers]:
    """Edges and counts of a ``HistogramProto``: it lists the right limit and the count of each bucket.

    Empty buckets at both ends are left out, and the outermost edges are the recorded minimum and maximum
    where those lie inside their buckets (the limits go to plus and minus 1.8e308). Raises ``WireError``.
    """
    low, high = -math.inf, math.inf
    packed: dict[int, list[Field]] = {6: [], 7: []}
    for part in fields(view, at, end):
        if part.number in (1, 2) and part.wire == FIXED64:
            low, high = (float64(view, part.at), high) if part.number == 1 else (low, float64(view, part.at))
        elif part.number in packed and part.wire in (BYTES, FIXED64):
            packed[part.number].append(part)
    limits, counts = (_doubles(view, packed[number]) for number in (6, 7))
    if limits.size != counts.size or limits.size > BUCKET_LIMIT:
        raise WireError(f"{limits.size} limits for {counts.size} counts")
    filled = np.flatnonzero(counts)
    if not filled.size:
        return np.empty(0), np.empty(0)
    first, last = int(filled[0]), int(filled[-1])
    left = limits[first - 1] if first else -math.inf
    edges = np.concatenate([[max(left, min(low, limits[first]))], limits[first : last + 1]])
    edges[-1] = max(min(edges[-1], high), edges[-2])
    return edges, counts[first : last + 1]


def _doubles(view: memoryview, parts: list[Field]) -> Numbers:
    if any((part.end - part.at) % 8 for part in parts):
        raise WireError("not a whole number of doubles")
    return np.frombuffer(b"".join(view[part.at : part.end] for part in parts), "<f8").astype(np.float64)


def tensor_histogram(view: memoryview, tensor: Tensor) -> tuple[Numbers, Numbers]:
    """Edges and counts of a tensor of plugin ``histograms``: ``[k, 3]`` rows of left, right and count.

    Buckets that do not touch get an empty one between them. Raises ``WireError``.
    """
    known = tensor.numeric and len(tensor.dims) == 2 and tensor.dims[1] == 3
    if not known or tensor.dims[0] > BUCKET_LIMIT:
        raise WireError(f"a histogram of shape {tensor.dims}")
    if tensor.size == 0:
        return np.empty(0), np.empty(0)
    left, right, count = tftensor.numbers(view, tensor).reshape(-1, 3).T
    gaps = np.flatnonzero(left[1:] != right[:-1]) + 1
    edges = np.insert(np.append(left, right[-1]), gaps, right[gaps - 1])
    return edges, np.insert(count, gaps, 0.0)


def hparams(view: memoryview, content: tuple[int, int]) -> dict[str, str]:
    """Name -> JSON text of each hyper-parameter in the ``session_start_info`` of plugin ``hparams``.

    Other records of that plugin (the experiment's ranges, the end of a session) hold none.
    """
    found = {}
    for part in fields(view, *content):
        if part.number != 3 or part.wire != BYTES:
            continue
        for entry in fields(view, part.at, part.end):
            if entry.number == 1 and entry.wire == BYTES:
                name, value = _entry(view, entry, 0)
                found[name] = json.dumps(value, ensure_ascii=False)
    return found


def _entry(view: memoryview, entry: Field, depth: int) -> tuple[str, object]:
    """One pair of a map from names to ``google.protobuf.Value``."""
    name, value = "", None
    for part in fields(view, entry.at, entry.end):
        if part.number == 1:
            name = text(view, part.at, part.end)
        elif part.number == 2 and part.wire == BYTES:
            value = _json(view, part, depth)
    return name, value


def _json(view: memoryview, item: Field, depth: int) -> object:
    """A ``google.protobuf.Value``. Non-finite numbers are named, whole ones written without a point."""
    if depth > JSON_DEPTH:
        raise WireError("nested too deep")
    value: object = None
    for part in fields(view, item.at, item.end):
        if part.number == 2 and part.wire == FIXED64:
            value = _number(float64(view, part.at))
        elif part.number == 3 and part.wire == BYTES:
            value = text(view, part.at, part.end)
        elif part.number == 4 and part.wire == VARINT:
            value = bool(part.value)
        elif part.number == 5 and part.wire == BYTES:
            entries = [x for x in fields(view, part.at, part.end) if x.number == 1 and x.wire == BYTES]
            value = dict(_entry(view, entry, depth + 1) for entry in entries)
        elif part.number == 6 and part.wire == BYTES:
            items = [x for x in fields(view, part.at, part.end) if x.number == 1 and x.wire == BYTES]
            value = [_json(view, x, depth + 1) for x in items]
    return value


def _number(number: float) -> float | int | str:
    if math.isfinite(number):
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def session(view: memoryview, part: Field) -> tuple[str, str] | None:
    """Kind of mark and text of a ``SessionLog``: the path of a checkpoint, or a message."""
    kind, words = None, ""
    for item in fields(view, part.at, part.end):
        if item.number == 1 and item.wire == VARINT:
            kind = _SESSION.get(item.value)
        elif item.number in (2, 3) and item.wire == BYTES:
            words = text(view, item.at, item.end)
    return None if kind is None else (kind, words)
