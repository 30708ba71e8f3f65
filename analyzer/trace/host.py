"""What the host did, as disjoint stretches by class, for each thread that feeds a device.

Classes in order of precedence, each instant in one of them: checkpoint, eval, dataloader, comm_wait, compile, gc,
allocator, memcpy (a call that blocks on a copy of real size), sync (any other call that blocks), launch (operators and CUDA
calls). What no row covers is a hole: a short one is the interpreter between two calls (``other``), or part of
launching where the trace holds no operators at all; a long one is explained by the operating-system calls inside
it, is compiling where code is loaded to the device right behind it, or stays ``unobserved``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl

from afterrun.analyzer.intervals import Intervals, union

CLASSES = (
    "checkpoint",
    "eval",
    "dataloader",
    "comm_wait",
    "compile",
    "gc",
    "allocator",
    "memcpy",
    "sync",
    "launch",
)

BLOCKING = ("memcpy", "sync")

CAUSES = (*CLASSES, "other", "unobserved")

SHORT_HOLE_NS = 1_000_000
"""A hole below this between two recorded calls is Python between them; a longer one needs an explanation."""

LAUNCH_HOLE_NS = 50_000
"""Where no operators are recorded, a hole below this before a call is the dispatch of its operator."""

COPY_BYTES = 65_536
"""A blocking copy of at least this size costs by its size (``memcpy``); a smaller one is a value read back (``sync``)."""

BLOCKED_NS = 20_000
"""An asynchronous copy call that takes longer than this waited for its copy: pageable memory is staged."""

OS_SHARE = 0.1
"""Operating-system calls explain a long hole when they fill at least this share of it."""

QUICK_LOADER_NS = 1_000_000
"""A loader call below this, and near the fastest tenth of its kind, found its batch ready."""

_ANY = re.compile("")
_MARKED = ("annotation", "python", "cpu_op")

_RULES: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (("checkpoint",), _ANY, "checkpoint"),
    (("data",), _ANY, "dataloader"),
    (
        _MARKED,
        re.compile(
            r"^(?!.*::)(?:.*[^a-z])?(?:eval|evaluat\w*|validat\w*|test_(?:step|epoch))(?:[^a-z]|$)", re.I
        ),
        "eval",
    ),
    (("comm",), re.compile(r"barrier|^gloo|^mpi|NEGOTIATE_|\bwait\b", re.I), "comm_wait"),
    (
        (*_MARKED, "runtime"),
        re.compile(
            r"^(?!Torch-Compiled Region).*(?:dynamo|inductor|nvrtc|(?:Module|Library)Load|ptxas|XlaCompile|jit_?compil|autotun|AOTAutograd"
            r"|\bcompil(?:e|ing|ation)\b)",
            re.I,
        ),
        "compile",
    ),
    (("annotation", "python"), re.compile(r"(?:^|[^a-z])gc(?:[^a-z]|$)|garbage.?collect", re.I), "gc"),
    (
        ("runtime",),
        re.compile(
            r"^(?:cuda|cu|hip)(?:Mem)?(?:Malloc|Free|HostAlloc|HostRegister|MemAlloc|MemFree|AllocHost|Alloc)",
            re.I,
        ),
        "allocator",
    ),
    (
        ("runtime",),
        re.compile(
            r"Synchronize|^(?:cuda|hip)Memcpy(?:$|_|2D$|3D$|ToSymbol$|FromSymbol$)|^cuMemcpy(?!.*Async)", re.I
        ),
        "sync",
    ),
    (("runtime", "cpu_op", "comm"), _ANY, "launch"),
)
"""Lanes, names, class; the first that fits. ``Torch-Compiled Region`` marks the running of compiled code, not compiling."""

_COPY = re.compile(r"memcpy", re.I)
_ASYNC_COPY = re.compile(r"memcpy.*async", re.I)

_OS: Mapping[str, str] = MappingProxyType(
    {
        "checkpoint": "^(?:p?write|fsync|fdatasync|ftruncate|rename|sync_file)",
        "comm_wait": "^(?:epoll_wait|recv|send|accept|connect)",
        "dataloader": "^(?:p?read|open|mmap|poll|select|ppoll|pthread_cond_|sem_|futex|msgrcv|waitpid)",
    }
)
"""What a thread that feeds a device most likely waits for in a call of this name: rules for names, in ``str.contains``."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HostView:
    """Classes of the host's time as one thread sees them: its own rows first, those of its peers where it has none.

    ``by_class`` are disjoint sets; ``quick`` is the part of ``dataloader`` in which a batch was ready at once;
    ``blocked`` holds for each blocking class the whole calls, for telling what a gap began in.
    """

    by_class: Mapping[str, Intervals]
    quick: Intervals
    blocked: Mapping[str, Intervals]


def host_view(rows: pl.DataFrame, thread: int, window: tuple[int, int]) -> HostView:
    """The view of ``thread`` between two instants (ns); ``rows`` are ``classed`` spans of the threads that feed the device."""
    rows = rows.filter((pl.col("end_ns") > window[0]) & (pl.col("start_ns") < window[1]))
    own = _by_class(rows.filter(pl.col("track") == thread))
    peers = _by_class(rows.filter(pl.col("track") != thread))
    sets: dict[str, Intervals] = {name: Intervals.none() for name in CAUSES}
    taken = Intervals.none()
    for part in (own, peers):
        for name in CLASSES:
            if name in part:
                new = _union(part[name]) - taken
                sets[name], taken = sets[name] | new, taken | new
    _fill_holes(sets, taken, rows, thread, window)
    loads = own.get("dataloader")
    return HostView(
        by_class=sets,
        quick=Intervals.none() if loads is None else _quick(loads) & sets["dataloader"],
        blocked={name: _union(own[name]) if name in own else Intervals.none() for name in BLOCKING},
    )


def _by_class(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    parts = rows.select("class", "start_ns", "end_ns", "dur_ns").partition_by("class", as_dict=True)
    return {str(name): part for (name,), part in parts.items() if name is not None}


def classed(rows: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Host spans with ``end_ns`` and ``class`` (null where a row explains nothing).

    ``copies`` holds ``corr`` and ``bytes`` of the copies of the device.
    """
    kinds = rows.select("lane", "name").unique(maintain_order=True)
    pairs = kinds.select(pl.col("lane", "name").cast(pl.String)).rows()
    known = kinds.with_columns(
        pl.Series("class", [_class_of(lane, name) for lane, name in pairs], dtype=pl.String),
        pl.Series(
            "copies",
            [lane == "runtime" and bool(_COPY.search(name)) for lane, name in pairs],
            dtype=pl.Boolean,
        ),
        pl.Series(
            "staged",
            [lane == "runtime" and bool(_ASYNC_COPY.search(name)) for lane, name in pairs],
            dtype=pl.Boolean,
        ),
    )
    ended = rows.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
    keyed = ended.join(known, on=["lane", "name"], how="left", maintain_order="left")
    return _copy_waits(keyed, copies).drop("copies", "staged")


def _class_of(lane: str, name: str) -> str | None:
    """The class of a span by the first rule of its lane that its name meets."""
    return next((cls for lanes, rule, cls in _RULES if lane in lanes and rule.search(name)), None)


def _copy_waits(rows: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Turns calls that wait for a copy into ``memcpy``: the copy call itself, and the call that blocks right behind it."""
    if copies.is_empty() or not rows["copies"].any():
        return rows
    sizes = copies.group_by("corr").agg(pl.col("bytes").max().alias("moved"))
    calls = rows.with_row_index("row").filter(pl.col("lane") == "runtime")
    calls = calls.select("row", "track", "start_ns", "dur_ns", "corr", "class", "copies", "staged")
    calls = calls.join(sizes, on="corr", how="left", maintain_order="left").sort("track", "start_ns", "row")
    large = pl.col("copies") & (pl.col("moved") >= COPY_BYTES).fill_null(value=False)
    behind = large.shift(1).over("track").fill_null(value=False)
    waits = calls.with_columns((large | behind).alias("large")).filter(
        (pl.col("class") == "sync") | (pl.col("staged") & (pl.col("dur_ns") > BLOCKED_NS))
    )
    waits = waits.select(
        "row", pl.when("large").then(pl.lit("memcpy")).otherwise(pl.lit("sync")).alias("waits")
    )
    found = rows.with_row_index("row").join(waits, on="row", how="left", maintain_order="left")
    return found.with_columns(pl.coalesce("waits", "class").alias("class")).drop("row", "waits")


def _fill_holes(
    sets: dict[str, Intervals], taken: Intervals, rows: pl.DataFrame, thread: int, window: tuple[int, int]
) -> None:
    """Shares the time that no row covers between launch, other, the classes of OS calls, and unobserved."""
    holes = taken.outside(*window)
    operators = bool((rows["lane"] == "cpu_op").any())
    length = holes.durations
    launch = np.zeros(len(holes), bool) if operators else length <= LAUNCH_HOLE_NS
    short = (length <= SHORT_HOLE_NS) & ~launch
    sets["launch"] = sets["launch"] | _some(holes, launch)
    sets["other"] = sets["other"] | _some(holes, short)
    long = _some(holes, length > SHORT_HOLE_NS)
    os_rows = rows.filter((pl.col("lane") == "os") & (pl.col("track") == thread))
    best = np.full(len(long), OS_SHARE)
    winner = np.full(len(long), "unobserved", dtype=object)
    for name, rule in _OS.items():
        covered = _union(os_rows.filter(os_rows["name"].cast(pl.String).str.contains(rule)))
        share = covered.covered(long.start, long.end) / np.maximum(long.durations, 1)
        winner[share >= best] = name
        best = np.maximum(best, share)
    loads = np.sort(
        rows.filter((pl.col("class") == "compile") & (pl.col("lane") == "runtime"))["start_ns"].to_numpy()
    )
    if len(loads):
        after = np.append(loads, np.iinfo(np.int64).max)[np.searchsorted(loads, long.end)]
        winner[(winner == "unobserved") & (after - long.end <= SHORT_HOLE_NS)] = "compile"
    for name in dict.fromkeys(winner):
        sets[name] = sets[name] | _some(long, winner == name)


def _quick(loads: pl.DataFrame) -> Intervals:
    """Loader calls that found their batch ready: near the fastest tenth, and short at all."""
    limit = min(QUICK_LOADER_NS, 3 * int(np.quantile(loads["dur_ns"].to_numpy(), 0.1)))
    return _union(loads.filter(pl.col("dur_ns") <= limit))


def _some(of: Intervals, chosen: np.ndarray) -> Intervals:
    return Intervals(of.start[chosen], of.end[chosen])


def _union(rows: pl.DataFrame) -> Intervals:
    return union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
