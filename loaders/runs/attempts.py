"""Restarts, concurrent writers and superseded rows, decided on each tag's own order.

Works on one frame of metric rows of one run with the columns ``source`` (index of the file), ``tag``,
``seq`` (write order within the file), ``step`` and ``wall_ns``. Nothing is thrown away: rows are
numbered and marked, so that kept + superseded = read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.loaders.names import Name, canonical
from afterrun.loaders.runs.cycles import (
    Curve,
    Floats,
    Ints,
    Running,
    level_returns,
    looks_regular,
    pauses,
    within_epochs,
)

MIN_REWALK_ROWS = 2
"""A counter that falls back must walk at least so many old steps again to be a restart and not a re-log."""
MIN_REWALK_SHARE = 0.5
"""... and at least this share of the steps that the tag had logged there before."""
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


@dataclass(frozen=True, slots=True)
class Within:
    """What the counters of one file do.

    ``begins``: ``seq`` of the first row of each new attempt. ``cyclic``: tags whose step counts within epochs;
    ``guessed``: nothing but the equal length of the blocks says so.
    """

    begins: tuple[int, ...] = ()
    cyclic: tuple[str, ...] = ()
    guessed: bool = False


def restarts_within(rows: pl.DataFrame) -> Within:
    """Where one file begins again, from its metric rows (tag, seq, step, value, epoch, wall_ns).

    A fall of one tag's step is a restart when the tag then walks steps again that it had logged; single
    re-logged or out-of-order rows are not. A counter of batches falls at every epoch: see
    ``afterrun.loaders.runs.cycles`` for how the two are told apart. Falls of several tags near each other are one
    restart. Axis tags do not fall: rows of several counters meet in them.
    """
    names = {str(t): canonical(str(t)) for t in rows["tag"].unique().cast(pl.String)}
    axes = [t for t, name in names.items() if name.kind == "axis"]
    stepped = rows.filter(pl.col("step").is_not_null() & ~pl.col("tag").is_in(axes))
    fallen = _fallen(stepped)
    if not fallen:
        return Within()
    running = [*_running(rows, names), *_never_fallen(stepped, fallen)]
    verdicts = {tag: within_epochs(curve, running) for tag, curve in fallen.items()}
    regular = {t: c for t, c in fallen.items() if verdicts[t] is None and looks_regular(c)}
    joint = _by_level_and_clock(regular, names)
    verdicts |= dict.fromkeys(regular, joint is not False)
    falls = [
        (int(curve.seq[i]), tag)
        for tag, curve in fallen.items()
        if not verdicts[tag]
        for i in _real_restarts(curve.step, curve.starts[1:])
    ]
    cyclic = tuple(sorted(t for t, verdict in verdicts.items() if verdict))
    return Within(tuple(_merge_falls(sorted(falls))), cyclic, bool(regular) and joint is None)


def _fallen(stepped: pl.DataFrame) -> dict[str, Curve]:
    """The tags whose step falls somewhere, as curves."""
    codes, seq, step = (stepped[c].to_physical().to_numpy() for c in ("tag", "seq", "step"))
    order = np.lexsort((seq, codes))
    t, s = codes[order], step[order]
    fell = np.flatnonzero((t[1:] == t[:-1]) & (s[1:] < s[:-1])) + 1
    if not len(fell):
        return {}
    ordered = stepped[order]
    q = ordered["seq"].to_numpy()
    value, epoch, wall = (_floats(ordered[c]) for c in ("value", "epoch", "wall_ns"))
    curves = {}
    for code in np.unique(t[fell]):
        lo, hi = (int(np.searchsorted(t, code, side=side)) for side in ("left", "right"))
        mine = fell[(fell >= lo) & (fell < hi)] - lo
        here = slice(lo, hi)
        curves[str(ordered["tag"][lo])] = Curve(
            seq=q[here],
            step=s[here],
            value=value[here],
            epoch=epoch[here],
            wall_ns=wall[here],
            starts=np.concatenate([[0], mine]),
        )
    return curves


def _floats(column: pl.Series) -> Floats:
    floats: Floats = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return floats


def _running(rows: pl.DataFrame, names: Mapping[str, Name]) -> list[Running]:
    """Logged counts that grow during a training. A logged step may be the very counter that falls."""
    counts = {t: n for t, n in names.items() if n.kind == "axis" or n.metric == "elapsed_s"}
    found = []
    for tag, name in sorted(counts.items()):
        mine = rows.filter(pl.col("tag") == tag).sort("seq")
        found.append(Running(mine["seq"].to_numpy(), _floats(mine["value"]), name.metric != "step"))
    return found


def _never_fallen(stepped: pl.DataFrame, fallen: Mapping[str, Curve]) -> list[Running]:
    """The steps of tags that only grow."""
    others = stepped.filter(~pl.col("tag").is_in(list(fallen))).sort("seq")
    parts = others.partition_by("tag", maintain_order=True)
    return [Running(p["seq"].to_numpy(), _floats(p["step"]), returns=False) for p in parts]


def _by_level_and_clock(regular: Mapping[str, Curve], names: Mapping[str, Name]) -> bool | None:
    """Whether regular blocks are epochs, by the level of their curves, else by the clock; None: undecided."""
    if not regular:
        return None
    telling = [c for t, c in regular.items() if names[t].kind in ("loss", "quality")]
    returns = level_returns(telling or list(regular.values()))
    if returns is None:
        returns = pauses(max(regular.values(), key=lambda c: len(c.seq)))
    return None if returns is None else not returns


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


def _merge_falls(falls: Sequence[tuple[int, str]]) -> list[int]:
    """Boundaries from falls (seq, tag): a tag that falls a second time opens the next boundary."""
    boundaries: list[int] = []
    fallen: set[str] = set()
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
