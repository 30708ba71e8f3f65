"""Read everything below a set of paths: walk, claim, group, load, assemble. One bad file costs one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from afterrun.loaders.collection import Collection, RunInfo, Unclaimed
from afterrun.loaders.discover import Found, discover, readable
from afterrun.loaders.names import Name
from afterrun.loaders.reading import by_run, read
from afterrun.loaders.runs.adoption import adopted, logs_above, runs_below, with_those_below
from afterrun.loaders.runs.assemble import Assembled, assemble
from afterrun.loaders.runs.earlier import earlier_runs, reassemble
from afterrun.loaders.runs.grouping import group
from afterrun.loaders.runs.member import Group, stem_of
from afterrun.loaders.runs.placing import Loaded
from afterrun.loaders.schema import Tables
from afterrun.loaders.wanted import Wanted

RUNNING_NS = 600 * 10**9
"""A run written to less than 10 minutes before *now* and without an end record is still running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What the user says about reading."""

    group: str = "auto"
    """``auto``, ``folder`` or ``file`` (see ``afterrun.loaders.runs.grouping``)."""
    verify: bool = False
    overrides: Mapping[str, Name] = field(default_factory=dict)
    now_ns: int | None = None
    tags: tuple[str, ...] = ()
    """Tags, globs of tags or canonical metrics to read alone; empty: all (see ``afterrun.loaders.wanted``)."""

    def wanted(self) -> Wanted | None:
        """What loaders are told of it."""
        return Wanted(self.tags, self.overrides) if self.tags else None


Progress = Callable[[int, int], None]
"""Called with (files read, files in all)."""


def collect(
    paths: Sequence[Path],
    options: LoadOptions = LoadOptions(),
    progress: Progress | None = None,
    *,
    left_out: Sequence[Unclaimed] = (),
) -> Collection:
    """All runs below the paths. Files that cannot be read stand in ``sources`` with the reason.

    ``left_out`` is what was met before, while unpacking archives; it stands with the unclaimed files.
    """
    wanted = options.wanted()
    found = [replace(f, source=replace(f.source, wanted=wanted)) for f in _find(paths, options.verify)]
    unclaimed = (*left_out, *(Unclaimed(f.source.name, f.reason) for f in found if f.loader is None))
    groups = group([f for f in found if f.loader is not None], rule=options.group)
    names = _Names(paths)
    total = sum(len(g.members) for g in groups)
    made: dict[int, list[tuple[Group, Assembled]]] = {}
    above = logs_above(groups) if options.group == "auto" else {}
    waiting = {i for logs in above.values() for i in logs}
    below = runs_below(groups, frozenset(waiting | above.keys())) if options.group == "auto" else {}
    waiting |= {i for runs in below.values() for i in runs}
    load = _Reader(total, progress)
    for i, one in enumerate(groups):
        if i in waiting:
            continue
        files = load(one)
        lower = {j: (groups[j], load(groups[j])) for j in below.get(i, ())}
        one, files, apart = with_those_below(one, files, lower, options.overrides)  # noqa: PLW2901  # the run with logs below it
        made |= {j: list(_runs(*lower[j], names, options)) for j in apart}
        for j in above.get(i, ()):
            log, its_files = groups[j], load(groups[j])
            joined = adopted(one, files, log, its_files, options.overrides)
            if joined is not None:
                one, files = joined  # noqa: PLW2901  # the run with one file more
            else:
                made[j] = list(_runs(log, its_files, names, options))
        made[i] = list(_runs(one, files, names, options))
    parts = [part for i in sorted(made) for part in made[i]]
    tables = Tables.concat([p.tables for _, p in parts])
    tables = tables if wanted is None else wanted.kept_rows(tables)
    newest = tables.runs["ended_ns"].max()
    now = options.now_ns if options.now_ns is not None else newest
    return Collection(
        tables=tables.with_(runs=_running(tables, now)),  # type: ignore[arg-type]  # integer column
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


class _Reader:
    """Reads the files of one group after another and says how far it is."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done, self._total, self._progress = 0, total, progress

    def __call__(self, one: Group) -> list[Loaded]:
        files: list[Loaded] = []
        for member in one.members:
            files += read(member)
            self._done += 1
            if self._progress:
                self._progress(self._done, self._total)
        return files


def _runs(
    one: Group, files: Sequence[Loaded], names: _Names, options: LoadOptions
) -> Iterator[tuple[Group, Assembled]]:
    """The runs of a group, assembled, each under a name of its own."""
    for run, mine in by_run(one, [f for f in files if not f.assembled]):
        named = names.give(run)
        yield named, assemble(named.run, mine, options.overrides)
    for run, earlier in earlier_runs(one, [f for f in files if f.assembled]):
        named = names.give(run)
        yield named, reassemble(named.run, earlier, options.overrides)


def _find(paths: Sequence[Path], verify: bool) -> list[Found]:
    """Files below all paths; with several paths each name begins with its path's own name."""
    if len(paths) == 1:
        return discover(paths[0], verify=verify)
    found: list[Found] = []
    taken: dict[str, int] = {}
    for path in paths:
        base = readable(path.resolve().name)
        taken[base] = taken.get(base, 0) + 1
        base = base if taken[base] == 1 else f"{base}~{taken[base]}"
        for f in discover(path, verify=verify):
            name = base if path.is_file() else f"{base}/{f.source.name}"
            found.append(replace(f, source=replace(f.source, name=name)))
    return found


class _Names:
    """Gives every run a name of its own; the root itself is called by its own name."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._taken: set[str] = set()

    def give(self, one: Group) -> Group:
        """The group under a name that no group before it has."""
        run = one.run
        if not run:
            root = readable(self._paths[0].resolve().name)
            lone = self._paths[0].is_file() and len(one.members) == 1
            run = stem_of(root) if lone else root or "run"
        if run in self._taken:
            run = one.members[0].found.source.name
        base, n = run, 2
        while run in self._taken:
            run = f"{base}~{n}"
            n += 1
        self._taken.add(run)
        return replace(one, run=run)


def _running(tables: Tables, now_ns: int | None) -> pl.DataFrame:
    """The runs, those that were written to just now and do not say that they ended as ``running``.

    A run of traces and counters alone is a capture: nothing in it is written while a training goes on.
    """
    runs = tables.runs
    if now_ns is None:
        return runs
    logged = pl.concat([tables.metrics["run"], tables.marks["run"]]).unique()
    recent = (pl.col("ended_ns") > now_ns - RUNNING_NS) & (pl.col("outcome") == "unknown")
    live = recent & pl.col("run").is_in(logged.implode())
    outcome = pl.when(live).then(pl.lit("running")).otherwise(pl.col("outcome").cast(pl.String))
    return runs.with_columns(outcome.cast(pl.Categorical).alias("outcome"))
