"""A file of a run, and the files of one run together; what a file name says of rank and split."""

from __future__ import annotations

import re
from dataclasses import dataclass

from afterrun.loaders.discover import Found
from afterrun.loaders.events.name import Writer, writer_of
from afterrun.loaders.naming.reading import SPLIT_WORDS

RANK = re.compile(r"(?:^|[._-])(?:global[_-]?)?(?:rank|worker|proc)[._-]?(\d{1,6})(?=$|[._-])", re.IGNORECASE)
MONITOR = re.compile(r"^(\d+)\.monitor$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of a run: what to put before its tags, and the rank its name says."""

    found: Found
    prefix: str = ""
    rank: int | None = None
    of: int | None = None
    """How many processes the file itself says there were; its rank is told by the file then."""
    by_layout: bool = False
    """The layout of the format itself says which run the file belongs to."""
    job: str | None = None
    """The job whose output or error stream this is, where both are here: one writer."""

    @property
    def folder(self) -> str:
        """Folder of the file below the root, ``""`` at the root."""
        return self.found.source.name.rpartition("/")[0]

    @property
    def stem(self) -> str:
        """File name without its last suffix."""
        return stem_of(self.found.source.name)

    @property
    def format(self) -> str:
        """Name of the format that claims the file."""
        assert self.found.loader is not None
        return self.found.loader.format

    @property
    def writer(self) -> Writer | None:
        """The process that wrote an event file, as far as the file name says; None for other formats."""
        return writer_of(self.found.source.name.rpartition("/")[2]) if self.format == "tensorboard" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The files of one run."""

    run: str
    members: tuple[Member, ...]
    grouped_by: str


def stem_of(name: str) -> str:
    """The last part of a name without its suffix (``.tar.gz`` counts as one)."""
    base = name.rpartition("/")[2]
    for suffix in (".pt.trace.json.gz", ".pt.trace.json", ".tar.gz", ".csv.gz", ".json.gz"):
        if base.endswith(suffix):
            return base[: -len(suffix)]
    head, dot, _ = base.rpartition(".")
    return head if dot and head else base


def rank_of(stem: str) -> int | None:
    """The rank that a file name tells."""
    match = MONITOR.match(stem) or RANK.search(stem)
    return int(match.group(1)) if match else None


def family_of(stem: str) -> tuple[str, str]:
    """(stem without rank and split words, split word found)."""
    bare = MONITOR.sub("monitor", stem)
    bare = RANK.sub("", bare)
    words = [w for w in re.split(r"[._\s-]+", bare.lower()) if w]
    split = next((w for w in words if w in SPLIT_WORDS), "")
    return "_".join(w for w in words if w not in SPLIT_WORDS), split
