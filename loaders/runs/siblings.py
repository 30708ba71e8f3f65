"""Logs side by side in one folder: parts of one run, or a run each.

Siblings of one format are runs of their own unless their names say that they are ranks or splits of one; so are
tables of several formats that are named after their runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from afterrun.loaders.runs.captures import captures
from afterrun.loaders.runs.member import Group, Member, family_of
from afterrun.loaders.runs.streams import stream_of

PARTS = "rank or split files of one run"
RANKS = "ranks of one job, as the files say"
STREAMS = "output and error stream of one job"

_TABLES = frozenset({"csv", "tsv", "jsonl", "ndjson"})
_USUAL_WORDS = frozenset(
    {
        "progress", "monitor", "metric", "metrics", "result", "results", "log", "logs", "logger", "history", "scalar", "scalars",
        "stat", "stats", "summary", "report", "curve", "curves", "loss", "losses", "acc", "accuracy", "lr", "score", "scores", "epoch",
        "epochs", "step", "steps", "batch", "iter", "iteration", "output", "data", "learning", "rank", "worker", "episode", "episodes",
        "reward", "rewards", "time", "times", "timing", "system", "perf", "throughput", "console", "params", "config", "hparams",
    }
)  # fmt: skip
"""Words of names that tools and scripts give to the files of one run."""


def split_siblings(home: str, placed: Sequence[Member], reasons: list[str]) -> list[Group]:
    """One group for the folder, and one for each sibling log that is a run of its own."""
    strangers = _strangers(placed)
    by_format: dict[str, list[Member]] = defaultdict(list)
    for member in placed:
        by_format[member.format].append(member)
    together: list[Member] = []
    apart: list[Group] = []
    for members in by_format.values():
        together += [m for m in members if m.by_layout]
        logs = _logs([m for m in members if not m.by_layout])
        if logs:
            mine, runs, why = _of_one_format(home, logs, strangers)
            together += mine
            apart += runs
            reasons += why
    if together:
        text = "; ".join(dict.fromkeys(reasons)) or ("one folder" if len(together) > 1 else "one file")
        return [*apart, Group(run=home, members=tuple(together), grouped_by=text)]
    return apart


def _of_one_format(
    home: str, logs: Sequence[_Log], strangers: frozenset[str]
) -> tuple[list[Member], list[Group], list[str]]:
    """(members of the run of the folder, runs of their own, rules used) of the logs of one format."""
    loader = logs[0].members[0].found.loader
    assert loader is not None
    jobs, logs = _jobs(logs)
    if len(jobs) == 1 and not logs:
        return [m for log in jobs[0] for m in log.members], [], [RANKS]
    apart = [
        Group(
            run=_join(home, job[0].stem),
            members=tuple(m for log in job for m in log.members),
            grouped_by=RANKS,
        )
        for job in jobs
    ]
    if not logs:
        return [], apart, []
    if loader.family == "traces":
        logs = _without_lone_rank(logs)
    alone = len({log.members[0].folder for log in logs}) == len(logs)
    alone = alone and not any(log.members[0].found.source.name in strangers for log in logs)
    if loader.format == "tensorboard" or loader.snapshot or alone:
        streams = [STREAMS] if any(len(log.members) > 1 for log in logs) else []
        return [m for log in logs for m in log.members], apart, streams
    families: dict[str, list[_Log]] = defaultdict(list)
    for log in logs:
        families[family_of(log.stem)[0]].append(log)
    if len(families) == 1 and _are_parts(logs):
        return [_with_split(m, log.stem) for log in logs for m in log.members], apart, [PARTS]
    for family in families.values():
        apart += _sibling_groups(home, family)
    return [], apart, []


def _strangers(members: Sequence[Member]) -> frozenset[str]:
    """Names of curve tables that lie beside one of another format and are named after their runs.

    A folder of exports, ``resnet18.csv`` beside ``ppo-seed3.csv``: what tells the formats apart is the model, not the
    tool. Names that tools give (``progress.csv`` beside ``monitor.csv``) and names that go on from one another
    (``exp1.csv``, ``exp1_monitor.csv``) are parts of one run.
    """
    tables: dict[tuple[str, str], list[Member]] = defaultdict(list)
    for member in members:
        suffix = member.found.source.name.rpartition(".")[2].lower()
        assert member.found.loader is not None
        if suffix in _TABLES and member.found.loader.family == "curves" and not member.by_layout:
            tables[member.folder, suffix].append(member)
    return frozenset(
        m.found.source.name
        for beside in tables.values()
        if len({m.format for m in beside}) > 1
        and not any(_is_usual(m.stem) for m in beside)
        and not all(m.stem.startswith(min(beside, key=lambda x: len(x.stem)).stem) for m in beside)
        for m in beside
    )


def _is_usual(stem: str) -> bool:
    """Whether a name says what is in a file and not of which run, as a number does that is no rank."""
    words = family_of(stem)[0].split("_")
    return all(w in _USUAL_WORDS or not w for w in words)


def _jobs(logs: Sequence[_Log]) -> tuple[list[list[_Log]], list[_Log]]:
    """(files of one capture by the ranks of one job, one list a capture; the other logs).

    Only files that say themselves which of how many processes wrote them.
    """
    by_size: dict[int, dict[int, list[_Log]]] = defaultdict(lambda: defaultdict(list))
    for log in logs:
        if log.of is not None and log.of > 1 and log.rank is not None:
            by_size[log.of][log.rank].append(log)
    jobs = [
        [ranks[rank][number] for rank, number in capture]
        for ranks in by_size.values()
        for capture in captures({rank: [log.stem for log in files] for rank, files in ranks.items()})
    ]
    taken = {id(log) for job in jobs for log in job}
    return jobs, [log for log in logs if id(log) not in taken]


def _without_lone_rank(logs: Sequence[_Log]) -> list[_Log]:
    """A number in the name of a trace (``worker0``) is a rank only where there is another one beside it."""
    if len({log.rank for log in logs}) > 1:
        return list(logs)
    return [
        log if log.of is not None else replace(log, members=tuple(replace(m, rank=None) for m in log.members))
        for log in logs
    ]


@dataclass(frozen=True, slots=True)
class _Log:
    """One log: a file, or the two that the output and the error stream of one job went to."""

    stem: str
    members: tuple[Member, ...]

    @property
    def rank(self) -> int | None:
        return self.members[0].rank

    @property
    def of(self) -> int | None:
        return self.members[0].of


def _logs(members: Sequence[Member]) -> list[_Log]:
    jobs: dict[tuple[str, str], dict[str, Member]] = defaultdict(dict)
    for member in members:
        stream = stream_of(member.found.source.name.rpartition("/")[2])
        if stream is not None:
            jobs[member.folder, stream[0]].setdefault(stream[1], member)
    pairs = {key: streams for key, streams in jobs.items() if len(streams) == 2}
    logs = [
        _Log(job or streams["out"].stem, tuple(replace(streams[w], job=job) for w in ("out", "err")))
        for (_, job), streams in pairs.items()
    ]
    paired = {m.found.source.name for streams in pairs.values() for m in streams.values()}
    logs += [_Log(m.stem, (m,)) for m in members if m.found.source.name not in paired]
    return sorted(logs, key=lambda log: log.members[0].found.source.name.split("/"))


def _sibling_groups(home: str, logs: Sequence[_Log]) -> list[Group]:
    """Sibling logs of one format: parts of one run where their names say so, else one run each."""
    if len(logs) > 1 and _are_parts(logs):
        name = _join(home, family_of(logs[0].stem)[0] or logs[0].stem)
        members = tuple(_with_split(m, log.stem) for log in logs for m in log.members)
        return [Group(run=name, members=members, grouped_by=PARTS)]
    return [
        Group(
            run=_join(home, log.stem),
            members=log.members,
            grouped_by=STREAMS if len(log.members) > 1 else "sibling files of one format",
        )
        for log in logs
    ]


def _are_parts(logs: Sequence[_Log]) -> bool:
    """Whether names tell all logs apart by rank or split and by nothing else."""
    keys = [(log.rank, family_of(log.stem)[1]) for log in logs]
    return len(set(keys)) == len(keys) and all(rank is not None or split for rank, split in keys)


def _with_split(member: Member, stem: str) -> Member:
    split = family_of(stem)[1]
    return replace(member, prefix=f"{split}/") if split else member


def _join(home: str, name: str) -> str:
    return f"{home}/{name}" if home else name
