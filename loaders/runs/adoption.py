"""A text log above the folder of a run: ``train.py ... | tee exp/train.log`` with the run in ``exp/out``.

The layout alone says nothing: a log is taken for the output of the only run below it where both hold the same curve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from afterrun.loaders.names import Name
from afterrun.loaders.runs.assemble import same_curves
from afterrun.loaders.runs.member import Group
from afterrun.loaders.runs.placing import Loaded

TEXT = "text-log"
ABOVE = "a text log above it holds the same curve"


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
) -> tuple[Group, list[Loaded]] | None:
    """The run with the log as one of its files; None where they do not hold the same curve."""
    together = [*files, *its_files]
    if any(f.subrun is not None or f.assembled for f in together):
        return None
    proven = same_curves(together, overrides)
    if not any(f.name in proven for f in its_files):
        return None
    members = (*run.members, *log.members)
    return replace(run, members=members, grouped_by=f"{run.grouped_by}; {ABOVE}"), together
