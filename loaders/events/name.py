"""The name of an event file: ``events.out.tfevents.<unix>.<host>[.<pid>.<n>][.<suffix>]``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"tfevents\.(?P<unix>\d+)(?:\.(?P<rest>.*))?$", re.DOTALL)
_WRITER = re.compile(r"(?P<host>.+)\.(?P<pid>\d+)\.(?P<n>\d+)(?:\.(?P<suffix>[^.]*[^.\d][^.]*))?$", re.DOTALL)
_SUFFIX = re.compile(r"(?P<host>.*)\.(?P<suffix>v2|profile-empty)$", re.DOTALL)
_ADDRESS = re.compile(r"\d+(\.\d+){3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who wrote an event file, as far as its name says.

    ``started_s`` is the second it was opened, ``number`` counts the writers of one process. The first
    TensorFlow and tensorboardX name no process.
    """

    started_s: int | None = None
    host: str | None = None
    pid: int | None = None
    number: int | None = None
    suffix: str | None = None


def writer_of(name: str) -> Writer:
    """The writer named by a file name; parts that are missing are None. Hosts may hold dots and blanks."""
    match = _NAME.search(name)
    if match is None:
        return Writer()
    started_s, rest = int(match["unix"]), match["rest"] or ""
    writer = None if _ADDRESS.fullmatch(rest) else _WRITER.match(rest)
    if writer is not None:
        return Writer(
            started_s=started_s,
            host=writer["host"],
            pid=int(writer["pid"]),
            number=int(writer["n"]),
            suffix=writer["suffix"],
        )
    marked = _SUFFIX.match(rest)
    if marked is not None:
        return Writer(started_s=started_s, host=marked["host"] or None, suffix=marked["suffix"])
    return Writer(started_s=started_s, host=rest or None)
