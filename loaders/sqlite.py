"""SQLite files of strangers: opened for reading only, checked first, nothing in them trusted.

The measures of https://www.sqlite.org/security.html that Python reaches: a read-only and immutable connection,
no trusted schema, cell sizes checked, reads only (authorizer), ``quick_check`` before the first query. A
damaged file answers wrongly without an error far more often than it fails, so the check is not optional.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import GIB, MIB

MAGIC = b"SQLite format 3\0"

MAX_CHECKED_BYTES = 2 * GIB
"""Larger files are read without ``quick_check``, and it is said."""

_PRAGMAS = ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON")
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_UNWRITTEN = ("-wal", "-journal")
_LOG_SEEN_BYTES = 4 * MIB
_CREATE = re.compile(rb"CREATE TABLE [\"'`\[]?(\w{1,64})", re.ASCII)

ERRORS = (sqlite3.Error, OSError, ValueError)
"""What a query of a damaged file may raise (``ValueError``: a message that is no UTF-8)."""


@dataclass(frozen=True, slots=True)
class Database:
    """An open database, and what a person should know of it. ``damaged``: the check found damage."""

    connection: sqlite3.Connection
    damaged: bool
    notes: tuple[str, ...]


def tables(path: Path, head: bytes) -> frozenset[str]:
    """Names of the tables of a SQLite file, for sniffers; empty where it is none or cannot be opened."""
    if not head.startswith(MAGIC):
        return frozenset()
    found = _unwritten_tables(path)
    try:
        with closing(_connect(path, immutable=True)) as connection:
            rows = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 10000"
            ).fetchall()
    except ERRORS:
        return found
    return found.union(str(name) for (name,) in rows)


def _unwritten_tables(path: Path) -> frozenset[str]:
    """Names of tables that were created in the write-ahead log and are in the file itself not yet."""
    try:
        with path.with_name(path.name + "-wal").open("rb") as file:
            data = file.read(_LOG_SEEN_BYTES)
    except OSError:
        return frozenset()
    return frozenset(m[1].decode("ascii") for m in _CREATE.finditer(data))


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """A connection for reading. Where a log of unwritten changes lies beside the file, a private copy is read.

    Raises ``UnreadableError`` where SQLite cannot open it; ``ERRORS`` of later queries are the caller's.
    """
    beside = [
        p for end in _UNWRITTEN if (p := path.with_name(path.name + end)).is_file() and p.stat().st_size
    ]
    with TemporaryDirectory(prefix="afterrun-") as scratch:
        notes: list[str] = []
        target = path
        if beside:
            target = Path(scratch) / path.name
            for file in (path, *beside):
                shutil.copyfile(file, Path(scratch) / file.name)
            notes.append(f"read with the changes in {', '.join(p.name for p in beside)}, from a copy")
        try:
            connection = _connect(target, immutable=not beside)
        except ERRORS as error:
            raise UnreadableError(f"{path.name}: SQLite cannot open it: {error}") from error
        with closing(connection):
            problem = _problem(connection, path, notes)
            if problem:
                notes.append(f"SQLite finds the file damaged ({problem}): values may be wrong")
            connection.set_authorizer(_reads_only)
            yield Database(connection, bool(problem), tuple(notes))


def _connect(path: Path, *, immutable: bool) -> sqlite3.Connection:
    mode = "mode=ro&immutable=1" if immutable else "mode=rw"
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?{mode}", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _problem(connection: sqlite3.Connection, path: Path, notes: list[str]) -> str:
    """The first complaint of ``quick_check``, empty where there is none."""
    if path.stat().st_size > MAX_CHECKED_BYTES:
        notes.append("too large to be checked for damage before reading")
        return ""
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except ERRORS as error:
        return str(error)
    return "" if answer == "ok" else str(answer).splitlines()[-1]


def _reads_only(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
