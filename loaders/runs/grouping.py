"""Which files make one run. The rules are few and fixed, and each run says which one was used.

A run starts from each folder that holds a recognised file. A child folder joins its parent only where the
layout says that both are one run; sibling logs of one format in one folder are runs of their own unless
their names say that they are ranks or splits of one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from afterrun.loaders.discover import Found
from afterrun.loaders.events.name import Writer
from afterrun.loaders.runs.member import RANK, Group, Member, rank_of
from afterrun.loaders.runs.siblings import split_siblings

SPLIT_FOLDERS = frozenset({"train", "training", "val", "valid", "validation", "eval", "evaluation", "test"})
CHECKPOINT = re.compile(r"^checkpoint-\d+$")
WANDB_FOLDERS = ("files", "logs")
"""Below the folder of a W&B run; a failure stands in the client's ``logs/debug.log`` too."""
TRAINER_RUN = re.compile(r"^\w+\d\d_\d\d-\d\d-\d\d_.+$")
"""``Aug21_15-01-13_host``: where the Hugging Face Trainer puts the event files of one launch, below ``runs``."""
HPARAMS_RUN = re.compile(r"^1\d{9}(?:\.\d+)?$")
"""Where ``add_hparams`` of PyTorch's writer puts settings and final metrics: a folder named by the time, below its own."""
WANDB_RUN = re.compile(r"^(?:offline-)?run-\d{8}_\d{6}-")
SAME_START_S = 2
"""Event files without a pid are of one process when they were opened within so many seconds."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """What the rules ask about the folders around a file; built once for all files."""

    folders: frozenset[str]
    """Folders that hold a recognised file."""
    split_children: Mapping[str, int]
    """Number of split folders with recognised files below each folder."""
    writers: Mapping[str, tuple[Writer, ...]]
    """Event-file writers by folder."""
    wandb: frozenset[str]
    """Folders that hold the binary log of a W&B run."""
    hparams: Counter[str]
    """Number of ``HPARAMS_RUN`` folders with event files directly below each folder."""
    trainers: frozenset[str]
    """Output folders of the Hugging Face Trainer: they hold its state, or checkpoints that do."""


def _tree(members: Sequence[Member]) -> _Tree:
    folders = frozenset(m.folder for m in members)
    splits = [f.rpartition("/")[0] for f in folders if f.rpartition("/")[2].lower() in SPLIT_FOLDERS]
    writers: dict[str, dict[Writer, None]] = defaultdict(dict)
    for member in members:
        if member.writer is not None:
            writers[member.folder][member.writer] = None
    return _Tree(
        folders=folders,
        split_children=Counter(splits),
        writers={folder: tuple(found) for folder, found in writers.items()},
        wandb=frozenset(m.folder for m in members if m.format == "wandb"),
        hparams=Counter(
            parent
            for parent, _, base in (f.rpartition("/") for f in writers)
            if HPARAMS_RUN.match(base) and parent in writers
        ),
        trainers=frozenset(_above_checkpoint(m.folder) for m in members if m.format == "hf-trainer"),
    )


def _above_checkpoint(folder: str) -> str:
    parent, _, base = folder.rpartition("/")
    return parent if CHECKPOINT.match(base) else folder


def group(found: Sequence[Found], *, rule: str = "auto") -> list[Group]:
    """Runs from claimed files. ``rule``: ``auto``, ``folder`` (every folder one run) or ``file``.

    The result is ordered by run name and does not depend on the order of ``found``.
    """
    members = [Member(found=f) for f in sorted(found, key=lambda f: f.source.name.split("/"))]
    if rule == "file":
        text = "each file is a run (--group file)"
        return [Group(run=m.found.source.name, members=(m,), grouped_by=text) for m in members]
    homes: dict[str, list[Member]] = defaultdict(list)
    why: dict[str, dict[str, None]] = defaultdict(dict)
    tree = _tree(members)
    for member in members:
        home, placed, reasons = _home(member, tree) if rule == "auto" else (member.folder, member, [])
        homes[home].append(placed)
        why[home].update(dict.fromkeys(reasons))
    groups: list[Group] = []
    for home, placed_here in homes.items():
        if rule == "folder":
            text = "each folder is a run (--group folder)"
            groups.append(Group(run=home, members=tuple(placed_here), grouped_by=text))
        else:
            groups += split_siblings(home, placed_here, list(why[home]))
    return sorted(groups, key=lambda g: g.run.split("/"))


def _home(member: Member, tree: _Tree) -> tuple[str, Member, list[str]]:
    """(folder of the run, member with its tag prefix and rank, rules used)."""
    assert member.found.loader is not None
    given = member.found.loader.home(member.found.source)
    if given is not None:
        return given, replace(member, by_layout=True), [f"{member.format} layout"]
    home, prefix, rank, reasons = _joined_above(member, tree)
    trial = HPARAMS_RUN.match(home.rpartition("/")[2]) is not None
    if set(reasons) <= {"split folders"} and member.writer is not None and not trial:
        ancestor = _writer_ancestor(member.writer, member.folder, tree)
        # ``loss/train`` and ``loss/val`` of one writer
        if ancestor is not None and len(ancestor) < len(home):
            home, prefix = ancestor, member.folder[len(ancestor) :].strip("/") + "/"
            reasons = ["add_scalars children of one writer"]
    if member.writer is not None and (output := _trainer_output(home, tree)) is not None:
        home = output
        reasons.append("event files of the Trainer below its output folder")
    told = member.found.loader.rank(member.found.source)
    rank, of = (rank, None) if told is None else (told.rank, told.of)
    return home, replace(member, prefix=prefix, rank=rank, of=of), reasons


def _joined_above(member: Member, tree: _Tree) -> tuple[str, str, int | None, list[str]]:
    """(folder above that the layout joins the file to, tag prefix, rank, rules used)."""
    home, prefix, reasons = member.folder, "", list[str]()
    rank = rank_of(member.stem)
    while home:
        parent, _, base = home.rpartition("/")
        match = RANK.fullmatch(base)
        if match:
            rank = int(match.group(1))
            reasons.append("rank folders")
        elif _is_checkpoint(member, base):
            reasons.append("checkpoint folders")
        elif base in WANDB_FOLDERS and (parent in tree.wandb or WANDB_RUN.match(parent.rpartition("/")[2])):
            reasons.append("W&B files folder")
        elif member.writer is not None and HPARAMS_RUN.match(base) and tree.hparams[parent] == 1:
            reasons.append(
                "add_hparams below its writer"
            )  # several are trials, each with settings of its own
        elif _is_split(home, base, parent, tree):
            prefix = f"{base}/{prefix}"
            reasons.append("split folders")
        else:
            break
        home = parent
    return home, prefix, rank, reasons


def _trainer_output(folder: str, tree: _Tree) -> str | None:
    """The output folder of the Trainer that wrote ``<output>/runs/<date>_<host>``; None for any other folder."""
    parent, _, base = folder.rpartition("/")
    output, _, runs = parent.rpartition("/")
    known = runs == "runs" and TRAINER_RUN.match(base) and output in tree.trainers
    return output if known else None


def _is_checkpoint(member: Member, base: str) -> bool:
    return member.found.loader is not None and member.found.loader.snapshot and bool(CHECKPOINT.match(base))


def _is_split(home: str, base: str, parent: str, tree: _Tree) -> bool:
    """Whether a split folder has a partner: files in its parent, or another split folder beside it."""
    if base.lower() not in SPLIT_FOLDERS:
        return False
    others = tree.split_children.get(parent, 0) - (home in tree.folders)
    return parent in tree.folders or others > 0


def _writer_ancestor(writer: Writer, folder: str, tree: _Tree) -> str | None:
    """The nearest folder above that holds an event file of the same process."""
    if writer.host is None:
        return None
    while folder:
        folder = folder.rpartition("/")[0]
        if any(_same_process(w, writer) for w in tree.writers.get(folder, ())):
            return folder
    return None


def _same_process(a: Writer, b: Writer) -> bool:
    if a.host != b.host:
        return False
    if a.pid is not None and b.pid is not None:
        return a.pid == b.pid
    return (
        a.pid == b.pid
        and a.started_s is not None
        and b.started_s is not None
        and abs(a.started_s - b.started_s) <= SAME_START_S
    )
