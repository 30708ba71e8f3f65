"""Read everything below a set of paths: walk, claim, group, load, assemble. One bad file costs one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from afterrun.loaders.assemble import Assembled, assemble
from afterrun.loaders.collection import Collection, RunInfo, Unclaimed
from afterrun.loaders.discover import Found, discover
from afterrun.loaders.errors import AfterrunError, SchemaError
from afterrun.loaders.grouping import Group, Member, group, stem_of
from afterrun.loaders.names import Name
from afterrun.loaders.placing import Loaded
from afterrun.loaders.schema import Status, Tables, conform

RUNNING_NS = 600 * 10**9
"""A run written to less than 10 minutes before *now* and without an end record is still running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What the user says about reading."""

    group: str = "auto"
    """``auto``, ``folder`` or ``file`` (see ``afterrun.loaders.grouping``)."""
    verify: bool = False
    overrides: Mapping[str, Name] = field(default_factory=dict)
    now_ns: int | None = None


Progress = Callable[[int, int], None]
"""Called with (files read, files in all)."""


def collect(
    paths: Sequence[Path], options: LoadOptions = LoadOptions(), progress: Progress | None = None
) -> Collection:
    """All runs below the paths. Files that cannot be read stand in ``sources`` with the reason."""
    found = _find(paths, options.verify)
    unclaimed = tuple(Unclaimed(f.source.name, f.reason) for f in found if f.loader is None)
    groups = _named_groups(group([f for f in found if f.loader is not None], rule=options.group), paths)
    parts: list[tuple[Group, Assembled]] = []
    done, total = 0, sum(len(g.members) for g in groups)
    for one in groups:
        files = []
        for member in one.members:
            files.append(read(member))
            done += 1
            if progress:
                progress(done, total)
        parts.append((one, assemble(one.run, files, options.overrides)))
    tables = Tables.concat([p.tables for _, p in parts])
    newest = tables.runs["ended_ns"].max()
    now = options.now_ns if options.now_ns is not None else newest
    return Collection(
        tables=tables.with_(runs=_running(tables.runs, now)),  # type: ignore[arg-type]  # integer column
        runs={
            g.run: RunInfo(
                name=g.run,
                path=str(p.tables.runs["path"][0]),
                grouped_by=g.grouped_by,
                attempts=p.attempts,
                notes=p.notes,
            )
            for g, p in parts
        },
        unclaimed=unclaimed,
        overrides=options.overrides,
        newest_ns=now,  # type: ignore[arg-type]  # integer column
    )


def _find(paths: Sequence[Path], verify: bool) -> list[Found]:
    """Files below all paths; with several paths each name begins with its path's own name."""
    if len(paths) == 1:
        return discover(paths[0], verify=verify)
    found: list[Found] = []
    taken: dict[str, int] = {}
    for path in paths:
        base = path.resolve().name
        taken[base] = taken.get(base, 0) + 1
        base = base if taken[base] == 1 else f"{base}~{taken[base]}"
        for f in discover(path, verify=verify):
            name = base if path.is_file() else f"{base}/{f.source.name}"
            found.append(replace(f, source=replace(f.source, name=name)))
    return found


def _named_groups(groups: Iterable[Group], paths: Sequence[Path]) -> list[Group]:
    """Groups with unique run names; the root itself is called by its own name."""
    taken: set[str] = set()
    named: list[Group] = []
    for one in groups:
        run = one.run
        if not run:
            root = paths[0].resolve()
            run = stem_of(root.name) if paths[0].is_file() and len(one.members) == 1 else root.name or "run"
        if run in taken:
            run = one.members[0].found.source.name
        base, n = run, 2
        while run in taken:
            run = f"{base}~{n}"
            n += 1
        taken.add(run)
        named.append(replace(one, run=run))
    return named


def read(member: Member) -> Loaded:
    """One file through its loader, inside a fault wall: whatever it does costs this file only."""
    loader = member.found.loader
    assert loader is not None
    parts: dict[str, list[pl.DataFrame]] = {}
    damaged, sampled = 0, False
    notes: list[str] = []
    status: Status | None = None
    try:
        for batch in loader.load(member.found.source):
            for name, frame in batch.frames.items():
                parts.setdefault(name, []).append(conform(name, frame))
            damaged += batch.damaged
            notes += batch.notes
            sampled = sampled or batch.sampled
            status = batch.status or status
    except SchemaError:
        raise
    except (AfterrunError, OSError, MemoryError) as error:
        notes.append(_reason(error))
        status = "partial" if parts else "unreadable"
    except Exception as error:  # noqa: BLE001  # the fault wall around one file
        notes.append(
            f"{loader.format} reader failed ({type(error).__name__}: {error}); please report this file"
        )
        status = "partial" if parts else "unreadable"
    frames = {name: pl.concat(frames) for name, frames in parts.items()}
    if status is None:
        kept = sum(len(f) for f in frames.values())
        status = "partial" if damaged and kept else "unreadable" if damaged else "read" if kept else "empty"
    return Loaded(
        member=member,
        frames=frames,
        damaged=damaged,
        notes=tuple(dict.fromkeys(notes)),
        status=status,
        sampled=sampled,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "cannot be read: not enough memory"
    return str(error)


def _running(runs: pl.DataFrame, now_ns: int | None) -> pl.DataFrame:
    if now_ns is None:
        return runs
    recent = (pl.col("ended_ns") > now_ns - RUNNING_NS) & (pl.col("outcome") == "unknown")
    outcome = pl.when(recent).then(pl.lit("running")).otherwise(pl.col("outcome").cast(pl.String))
    return runs.with_columns(outcome.cast(pl.Categorical).alias("outcome"))
