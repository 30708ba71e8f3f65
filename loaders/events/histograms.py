"""Histograms of event files: two encodings, one meaning.

``HistogramProto`` (TF1, PyTorch, tensorboardX) lists the right limit and the count of each bucket;
TF2 writes a ``[k, 3]`` tensor of left, right and count. Field numbers: tensorflow/core/framework/summary.proto.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.events import tensor as tftensor
from afterrun.loaders.events.record import Window
from afterrun.loaders.events.scalars import Heads
from afterrun.loaders.events.tensor import Numbers, Tensor
from afterrun.loaders.events.wide import Bytes, Places, load, ranges, varints, words
from afterrun.loaders.protowire import BYTES, FIXED64, Field, WireError, fields, float64

BUCKET_LIMIT = 100_000
"""A histogram of more buckets is taken for damage."""

_EXTREMES_BYTES = 45
"""min, max, num, sum and sum of squares: five doubles with their keys, as all writers begin."""

_SMALLEST_BYTES = 80
"""No histogram is smaller with what surrounds it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Histograms as ``HistogramProto`` has them: ``sizes`` buckets each, limits and counts end to end."""

    record: Places
    tags: list[bytes]
    sizes: Places
    limits: Numbers
    counts: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True, slots=True)
class Buckets:
    """Counts between neighbouring edges, end to end: one edge more than ``sizes`` each, none where that is 0."""

    record: Places
    tags: list[bytes]
    sizes: Places
    edges: Numbers
    counts: Numbers


def find(window: Window, head: Heads) -> Limits:
    """Those histograms of a window that are written the usual way, decoded together."""
    data = window.data
    record = np.flatnonzero(head.regular & (window.ends - head.body >= _SMALLEST_BYTES))
    if not record.size:
        return NO_LIMITS
    at, end = head.body[record], window.ends[record]
    for key in (0x2A, 0x0A):  # one summary of one value, nothing behind it
        inside, size, good = _enter(data, at, key)
        good &= inside + size == end
        record, at, end = record[good], inside[good], end[good]
    tag_at, tag_size, good = _enter(data, at, 0x0A)
    good &= tag_at + tag_size < end
    record, end, tag_at, at = record[good], end[good], tag_at[good], (tag_at + tag_size)[good]
    inside, size, good = _enter(data, at, 0x2A)
    good &= (inside + size == end) & (size > _EXTREMES_BYTES)
    record, end, tag_at, tag_end, at = record[good], end[good], tag_at[good], at[good], inside[good]
    keys = load(data, at, _EXTREMES_BYTES).reshape(-1, _EXTREMES_BYTES)[:, ::9]
    limits_at, limits_size, good = _enter(data, at + _EXTREMES_BYTES, 0x32)
    good &= (keys == (0x09, 0x11, 0x19, 0x21, 0x29)).all(axis=1) & (limits_at + limits_size < end)
    good &= (limits_size % 8 == 0) & (limits_size <= 8 * BUCKET_LIMIT)
    record, end, tag_at, tag_end, at = record[good], end[good], tag_at[good], tag_end[good], at[good]
    limits_at, sizes = limits_at[good], limits_size[good]
    counts_at, counts_size, good = _enter(data, limits_at + sizes, 0x3A)
    good &= (counts_at + counts_size == end) & (counts_size == sizes)
    sizes = sizes[good] // 8
    return Limits(
        record[good],
        [data[a:b].tobytes() for a, b in zip(tag_at[good].tolist(), tag_end[good].tolist(), strict=True)],
        sizes,
        _doubles(data, limits_at[good], sizes),
        _doubles(data, counts_at[good], sizes),
        load(data, at[good] + 1, 8).view("<f8"),
        load(data, at[good] + 10, 8).view("<f8"),
    )


_NONE = np.empty(0, np.int64)
NO_LIMITS = Limits(_NONE, [], _NONE, np.empty(0), np.empty(0), np.empty(0), np.empty(0))


def _enter(data: Bytes, at: Places, key: int) -> tuple[Places, Places, NDArray[np.bool_]]:
    """Place and size of the content of a field, and whether there is one with this key."""
    word = words(data, at, 1)[:, 0]
    size, length, ended = varints(word)
    return at + 1 + length, size.view(np.int64), ended & (word & np.uint64(0xFF) == key)


def _doubles(data: Bytes, at: Places, sizes: Places) -> Numbers:
    return load(data, np.repeat(at, sizes) + 8 * ranges(np.zeros_like(sizes), sizes), 8).view("<f8")


def parse(view: memoryview, record: int, tag: bytes, at: int, end: int) -> Limits:
    """One ``HistogramProto``, its fields in any order. Raises ``WireError``."""
    low, high = -math.inf, math.inf
    packed: dict[int, list[Field]] = {6: [], 7: []}
    for part in fields(view, at, end):
        if part.number == 1 and part.wire == FIXED64:
            low = float64(view, part.at)
        elif part.number == 2 and part.wire == FIXED64:
            high = float64(view, part.at)
        elif part.number in packed and part.wire in (BYTES, FIXED64):
            packed[part.number].append(part)
    limits, counts = (b"".join(view[part.at : part.end] for part in packed[number]) for number in (6, 7))
    if len(limits) != len(counts) or len(limits) % 8 or len(limits) > 8 * BUCKET_LIMIT:
        raise WireError(f"{len(limits)} bytes of limits for {len(counts)} bytes of counts")
    return Limits(
        np.array([record]),
        [tag],
        np.array([len(limits) // 8]),
        np.frombuffer(limits, "<f8"),
        np.frombuffer(counts, "<f8"),
        np.array([low]),
        np.array([high]),
    )


def join(parts: list[Limits]) -> Limits:
    """All of them, one behind the other."""
    columns = ("record", "sizes", "limits", "counts", "low", "high")
    record, sizes, limits, counts, low, high = (
        np.concatenate([getattr(p, c) for p in parts]) for c in columns
    )
    return Limits(record, [tag for part in parts for tag in part.tags], sizes, limits, counts, low, high)


def buckets(found: Limits) -> Buckets:
    """Edges from right limits.

    Empty buckets at both ends are left out (writers pad with limits up to 1.8e308), and the outermost
    edges are the recorded minimum and maximum where those lie inside their buckets.
    """
    start = np.cumsum(found.sizes) - found.sizes
    filled = np.flatnonzero(found.counts)
    each = np.arange(found.sizes.size)
    owner = np.repeat(each, found.sizes)[filled]
    lower, upper = np.searchsorted(owner, each), np.searchsorted(owner, each, side="right")
    some = upper > lower
    first, last = filled[lower[some]], filled[upper[some] - 1]
    sizes = np.zeros_like(found.sizes)
    sizes[some] = last - first + 1
    kept = ranges(first, sizes[some])
    left = np.where(first > start[some], found.limits[first - 1], -np.inf)
    edges = np.empty(kept.size + first.size)
    head = np.cumsum(sizes[some] + 1) - sizes[some] - 1
    inner = np.ones(edges.size, np.bool_)
    inner[head] = False
    edges[inner] = found.limits[kept]
    edges[head] = np.fmax(left, np.fmin(found.low[some], found.limits[first]))
    tail = head + sizes[some]
    edges[tail] = np.fmax(np.fmin(edges[tail], found.high[some]), edges[tail - 1])
    return Buckets(found.record, found.tags, sizes, edges, found.counts[kept])


def of_tensor(view: memoryview, record: int, tag: bytes, tensor: Tensor) -> Buckets:
    """A tensor of plugin ``histograms``; buckets that do not touch get an empty one between them.

    Raises ``WireError`` if its shape is not ``[k, 3]``.
    """
    known = tensor.numeric and len(tensor.dims) == 2 and tensor.dims[1] == 3
    if not known or tensor.dims[0] > BUCKET_LIMIT:
        raise WireError(f"a histogram of shape {tensor.dims}")
    if tensor.size == 0:
        return Buckets(np.array([record]), [tag], np.array([0]), np.empty(0), np.empty(0))
    left, right, count = tftensor.numbers(view, tensor).reshape(-1, 3).T
    gaps = np.flatnonzero(left[1:] != right[:-1]) + 1
    edges = np.insert(np.append(left, right[-1]), gaps, right[gaps - 1])
    counts = np.insert(count, gaps, 0.0)
    return Buckets(np.array([record]), [tag], np.array([counts.size]), edges, counts)
