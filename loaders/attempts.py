"""Restarts, concurrent writers and superseded rows, decided on each tag's own order.

Works on one frame of metric rows of one run with the columns ``source`` (index of the file), ``tag``,
``seq`` (write order within the file), ``step`` and ``wall_ns``. Nothing is thrown away: rows are
numbered and marked, so that kept + superseded = read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]

MIN_REWALK_ROWS = 2
"""A counter that falls back must walk at least so many old steps again to be a restart and not a re-log."""
MIN_REWALK_SHARE = 0.5
"""... and at least this share of the steps that the tag had logged there before."""
MIN_CYCLES = 3
"""A counter that falls back to the same step so often, after equally long blocks, restarts every epoch."""
OVERLAP_SHARE = 0.5
"""Two writers are concurrent when their wall clocks overlap for this share of the shorter one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpan:
    """What one file holds, for telling restarts from ranks: times in ns, tags, first and last step."""

    source: int
    process: tuple[str, str] | None
    """Identity of the writing process, where the file says it."""
    tags: frozenset[str]
    first_ns: int | None
    last_ns: int | None
    last_step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Attempt (from 1) at which a file begins, and its rank where several write at once."""

    attempt: int
    rank: int | None


def place_files(spans: Sequence[FileSpan]) -> dict[int, Place]:
    """Attempt and rank of each file, from who wrote it, when, and which tags it shares with the others.

    Files of one process are one writer. Writers that share a tag and overlap in time are ranks of one
    attempt; one that starts after the others ended is a new attempt; one that shares no tag with those
    before it is another part of the attempt it ran in.
    """
    writers: dict[object, list[FileSpan]] = defaultdict(list)
    for span in spans:
        writers[span.process if span.process is not None else span.source].append(span)
    filled = {k: v for k, v in writers.items() if any(s.tags for s in v)}
    order = sorted(filled, key=lambda k: _order(filled[k]))
    attempts: list[list[object]] = []
    for key in order:
        home = _attempt_for(key, attempts, filled)
        if home is None:
            attempts.append([key])
        else:
            attempts[home].append(key)
    places: dict[int, Place] = {}
    for number, keys in enumerate(attempts, 1):
        for key, rank in _ranks(keys, filled).items():
            for span in filled[key]:
                places[span.source] = Place(attempt=number, rank=rank)
    for span in spans:
        places.setdefault(span.source, Place(attempt=1, rank=None))
    return places


def _order(files: Sequence[FileSpan]) -> tuple[int, int, int]:
    """Start of a writer; without a clock by the last step reached, then by name."""
    start = min((s.first_ns for s in files if s.first_ns is not None), default=0)
    return start, max((s.last_step or 0 for s in files), default=0), min(s.source for s in files)


def _tags(files: Sequence[FileSpan]) -> frozenset[str]:
    return frozenset().union(*(s.tags for s in files))


def _attempt_for(
    key: object, attempts: Sequence[Sequence[object]], writers: dict[object, list[FileSpan]]
) -> int | None:
    """Index of the attempt that this writer belongs to; None for a new one."""
    if not attempts:
        return None
    mine = writers[key]
    sharing = [i for i, keys in enumerate(attempts) if any(_tags(writers[k]) & _tags(mine) for k in keys)]
    if not sharing:
        return len(attempts) - 1
    last = sharing[-1]
    rivals = [k for k in attempts[last] if _tags(writers[k]) & _tags(mine)]
    if all(_concurrent(writers[k], mine) for k in rivals):
        return last
    return last + 1 if last + 1 < len(attempts) else None


def _concurrent(a: Sequence[FileSpan], b: Sequence[FileSpan]) -> bool:
    """Whether two writers wrote at the same time: overlap in wall clock of most of the shorter one."""
    bounds = [
        (
            min(s.first_ns for s in w if s.first_ns is not None),
            max(s.last_ns for s in w if s.last_ns is not None),
        )
        for w in (a, b)
        if any(s.first_ns is not None for s in w)
    ]
    if len(bounds) < 2:
        return False
    overlap = min(bounds[0][1], bounds[1][1]) - max(bounds[0][0], bounds[1][0])
    shorter = min(hi - lo for lo, hi in bounds)
    return overlap >= 0 and overlap >= OVERLAP_SHARE * shorter


def _ranks(keys: Sequence[object], writers: dict[object, list[FileSpan]]) -> dict[object, int | None]:
    """Rank of each writer of one attempt: numbered by process where they share a tag, else null."""
    shared = [k for k in keys if any(k != o and _tags(writers[k]) & _tags(writers[o]) for o in keys)]
    if not shared:
        return dict.fromkeys(keys)
    by_name = sorted(shared, key=lambda k: _process_key(writers[k][0]))
    ranks: dict[object, int | None] = dict.fromkeys(keys)
    ranks.update({k: i for i, k in enumerate(by_name)})
    return ranks


def _process_key(span: FileSpan) -> tuple[str, int, str, int]:
    host, pid = span.process or ("", "")
    return (host, int(pid) if pid.isdigit() else 0, pid, span.source)


def restarts_within(tag: Ints, seq: Ints, step: Ints) -> tuple[list[int], set[int]]:
    """Where one file begins again: (``seq`` of each new attempt, codes of tags whose counter is cyclic).

    ``tag`` are integer codes; the arrays share one length, without null steps. A fall of one tag's step is
    a restart when the tag then walks steps again that it had logged; single re-logged or out-of-order rows
    are not. Falls of several tags near each other are one restart.
    """
    order = np.lexsort((seq, tag))
    t, s, q = tag[order], step[order], seq[order]
    fell = np.flatnonzero((t[1:] == t[:-1]) & (s[1:] < s[:-1])) + 1
    if not len(fell):
        return [], set()
    falls: list[tuple[int, int]] = []
    cyclic: set[int] = set()
    for code in np.unique(t[fell]):
        lo, hi = np.searchsorted(t, code), np.searchsorted(t, code, side="right")
        mine = fell[(fell >= lo) & (fell < hi)] - lo
        if _is_cyclic(s[lo:hi], mine):
            cyclic.add(int(code))
            continue
        falls += [(int(q[lo + i]), int(code)) for i in _real_restarts(s[lo:hi], mine)]
    return _merge_falls(sorted(falls)), cyclic


def _is_cyclic(step: Ints, falls: Ints) -> bool:
    """Whether the counter begins again at one step after equally long blocks (a batch index within epochs)."""
    if len(falls) < MIN_CYCLES - 1:
        return False
    starts = np.concatenate([[0], falls])
    lengths = np.diff(np.append(starts, len(step)))
    first = step[starts]
    whole = lengths[:-1]
    same_start = bool((first == first[0]).all())
    same_length = whole.max() <= 1.2 * whole.min() and lengths[-1] <= 1.2 * whole.max()
    return len(starts) >= MIN_CYCLES and same_start and bool(same_length) and int(whole.min()) >= 3


def _real_restarts(step: Ints, falls: Ints) -> list[int]:
    """Indices of those falls after which the tag walks again over steps it had logged."""
    real: list[int] = []
    ends = [*falls[1:].tolist(), len(step)]
    for i, end in zip(falls.tolist(), ends, strict=True):
        top = int(step[:i].max())
        block = step[i:end]
        again = block[block <= top]
        logged = np.unique(step[:i])
        logged = logged[(logged >= block[0]) & (logged <= again.max(initial=block[0]))]
        from_start = int(block[0]) <= int(step[0])
        enough = len(again) >= MIN_REWALK_ROWS or (from_start and len(step[:i]) > 1)
        if enough and len(again) >= MIN_REWALK_SHARE * max(1, len(logged)):
            real.append(i)
    return real


def _merge_falls(falls: Sequence[tuple[int, int]]) -> list[int]:
    """Boundaries from falls (seq, tag): a tag that falls a second time opens the next boundary."""
    boundaries: list[int] = []
    fallen: set[int] = set()
    for seq, tag in falls:
        if not boundaries or tag in fallen:
            boundaries.append(seq)
            fallen = set()
        fallen.add(tag)
    return boundaries


def mark_superseded(rows: pl.DataFrame, counted: pl.Series) -> pl.Series:
    """Boolean mark for each row of one run (columns rank, tag, attempt, seq, step).

    ``counted`` masks the rows that take part: copies of another file's rows supersede nothing. A row is superseded when a later attempt of the same (rank, tag) starts at or before its step, or when
    the same attempt writes the same step again later. Rows without a step are never superseded.
    """
    key = ["rank", "tag"]
    indexed = rows.select(*key, "attempt", "seq", "step").with_row_index("_row")
    everything = len(indexed)
    indexed = indexed.filter(counted)
    if (
        indexed["attempt"].max() == indexed["attempt"].min()
        and not indexed.select(*key, "step").is_duplicated().any()
    ):
        return pl.Series("superseded", np.zeros(everything, dtype=np.bool_))
    starts = (
        indexed.filter(pl.col("step").is_not_null())
        .group_by(*key, "attempt")
        .agg(pl.col("step").min().alias("_start"))
    )
    later = (
        starts.sort("attempt", descending=True)
        .with_columns(pl.col("_start").cum_min().shift(1).over(key).alias("_cut"))
        .select(*key, "attempt", "_cut")
    )
    marked = indexed.join(
        later, on=[*key, "attempt"], how="left", nulls_equal=True, maintain_order="left"
    ).sort("_row")
    rewritten = (
        marked.sort("seq")
        .with_columns(
            (pl.col("_row") != pl.col("_row").last().over([*key, "attempt", "step"])).alias("_again")
        )
        .sort("_row")["_again"]
    )
    cut = (marked["_cut"] <= marked["step"]).fill_null(value=False)
    gone = marked["_row"].filter((cut | rewritten) & marked["step"].is_not_null())
    mask = np.zeros(everything, dtype=np.bool_)
    mask[gone.to_numpy()] = True
    return pl.Series("superseded", mask)
