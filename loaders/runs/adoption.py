"""One training whose logs lie in a folder and below it.

A text log above the folder of a run (``train.py ... | tee exp/train.log`` with the run in ``exp/out``), event files
below the folder of the other logs (``exp/metrics.csv``, ``exp/runs/events...``). The layout alone says nothing: they are one run
where both hold the same curve.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from afterrun.loaders.names import Name
from afterrun.loaders.runs.assemble import same_curves
from afterrun.loaders.runs.member import Group
from afterrun.loaders.runs.placing import Loaded

TEXT = "text-log"
ABOVE = "a text log above it holds the same curve"
BELOW = "logs below it hold the same curve"
MOST_BELOW = 8
"""A folder with more runs below holds a sweep, whose runs are not read twice to find that out."""


def logs_above(groups: Sequence[Group]) -> dict[int, list[int]]:
    """{index of a run: indices of the text logs in a folder above it}, where it is the only run there is below."""
    logs = [i for i, g in enumerate(groups) if all(m.format == TEXT and not m.by_layout for m in g.members)]
    below: dict[str, set[int]] = defaultdict(set)
    for i in set(range(len(groups))).difference(logs):
        for folder in {m.folder for m in groups[i].members}:
            for above in _and_above(folder):
                below[above].add(i)
    found: dict[int, list[int]] = defaultdict(list)
    for i in logs:
        folder = groups[i].members[0].folder
        if len(below[folder]) == 1:
            (run,) = below[folder]
            found[run] += [i] if all(m.folder != folder for m in groups[run].members) else []
    return found


def runs_below(groups: Sequence[Group], taken: frozenset[int]) -> dict[int, list[int]]:
    """{index of a run: indices of the runs in folders below its own}, of few runs; those ``taken`` are left out.

    The run lies in one folder, and nothing else does; a run is below the nearest such folder.
    """
    free = [i for i in range(len(groups)) if i not in taken]
    in_folder: dict[str, list[int]] = defaultdict(list)
    for i in free:
        folders = {m.folder for m in groups[i].members}
        if len(folders) == 1 and not any(m.by_layout for m in groups[i].members):
            in_folder[folders.pop()].append(i)
    found: dict[int, list[int]] = defaultdict(list)
    for i in free:
        top = min((m.folder for m in groups[i].members), key=len)
        nearest = next((f for f in list(_and_above(top))[1:] if f in in_folder), None)
        if nearest is not None and len(in_folder[nearest]) == 1:
            found[in_folder[nearest][0]].append(i)
    few = {i: below for i, below in found.items() if len(below) <= MOST_BELOW}
    lower = {i for below in few.values() for i in below}
    return {i: [j for j in below if j not in few] for i, below in few.items() if i not in lower}


def _and_above(folder: str) -> Iterator[str]:
    yield folder
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def adopted(
    run: Group,
    files: Sequence[Loaded],
    log: Group,
    its_files: Sequence[Loaded],
    overrides: Mapping[str, Name],
    why: str = ABOVE,
) -> tuple[Group, list[Loaded]] | None:
    """The run with the log as one of its files; None where they do not hold the same curve."""
    together = [*files, *its_files]
    if any(f.subrun is not None or f.assembled for f in together):
        return None
    proven = same_curves(together, overrides)
    if not any(f.name in proven for f in its_files):
        return None
    members = (*run.members, *log.members)
    return replace(
        run, members=members, grouped_by="; ".join(dict.fromkeys([*run.grouped_by.split("; "), why]))
    ), together


def with_those_below(
    run: Group,
    files: list[Loaded],
    below: Mapping[int, tuple[Group, list[Loaded]]],
    overrides: Mapping[str, Name],
) -> tuple[Group, list[Loaded], list[int]]:
    """(the run with the logs below it that hold its curve, its files, those that stay runs of their own).

    Two of one format that both hold it are two trainings from one seed or a copy: nobody knows which is this one.
    """
    same = [
        j
        for j, (log, its_files) in below.items()
        if adopted(run, files, log, its_files, overrides) is not None
    ]
    often = Counter(f for j in same for f in {m.format for m in below[j][0].members})
    for j in same:
        log, its_files = below[j]
        joined = None
        if all(often[m.format] == 1 for m in log.members):
            joined = adopted(run, files, log, its_files, overrides, BELOW)
        if joined is not None:
            run, files = joined
    taken = {m.found.source.name for m in run.members}
    apart = [j for j, (log, _) in below.items() if log.members[0].found.source.name not in taken]
    return run, files, apart
