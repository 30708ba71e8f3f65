"""SQLite files of strangers: opened for reading only, checked first, nothing in them trusted.

The measures of https://www.sqlite.org/security.html that Python reaches: a read-only and immutable connection,
no trusted schema, cell sizes checked, reads only (authorizer), ``quick_check`` before the first query. A
damaged file answers wrongly without an error far more often than it fails, so the check is not optional.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from urllib.parse import quote

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.limits import GIB, MIB

MAGIC = b"SQLite format 3\0"

MAX_CHECKED_BYTES = 2 * GIB
"""Larger files are read without ``quick_check``, and it is said."""

WHOLE_CHECK_BYTES = 256 * MIB
"""Larger files may be checked table by table, which does not see that a table is missing."""

UNCHECKED = "too large to be checked for damage before reading"

PRAGMAS = ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON")
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_IMMUTABLE = "mode=ro&immutable=1"
_UNWRITTEN = ("-wal", "-journal")
_LOG_SEEN_BYTES = 4 * MIB
_CHECK_CACHE_KIB = 16_384
_CREATE = re.compile(rb"CREATE TABLE [\"'`\[]?(\w{1,64})", re.ASCII)

ERRORS = (sqlite3.Error, OSError, ValueError)
"""What a query of a damaged file may raise (``ValueError``: a message that is no UTF-8)."""


@dataclass(frozen=True, slots=True)
class Database:
    """An open database, and what a person should know of it. ``damaged``: the check found damage.

    ``uri`` opens the same file again, for reading only.
    """

    connection: sqlite3.Connection
    uri: str
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
def opened(path: Path, *, check: bool = True) -> Iterator[Database]:
    """A connection for reading. Where a log of unwritten changes lies beside the file, a private copy is read.

    ``check=False`` leaves the check to a ``SideCheck`` of the caller. Raises ``UnreadableError`` where SQLite cannot open it; ``ERRORS`` of later queries are the caller's.
    """
    beside = [
        p for end in _UNWRITTEN if (p := path.with_name(path.name + end)).is_file() and p.stat().st_size
    ]
    with TemporaryDirectory(prefix="afterrun-") as scratch:
        notes: list[str] = []
        target = path
        if beside:
            names = ", ".join(p.name for p in beside)
            try:
                target = _merged(path, beside, Path(scratch))
                notes.append(f"read with the changes in {names}, from a copy")
            except ERRORS as error:
                notes.append(f"read without the changes in {names}, which SQLite cannot apply: {error}")
        try:
            connection = _connect(target, immutable=True)
        except ERRORS as error:
            raise UnreadableError(f"{path.name}: SQLite cannot open it: {error}") from error
        with closing(connection):
            problem = ""
            if check and target.stat().st_size > MAX_CHECKED_BYTES:
                notes.append(UNCHECKED)
            elif check:
                problem = _problem(connection, "1")
            if problem:
                notes.append(damage_note(problem))
            connection.set_authorizer(_reads_only)
            yield Database(connection, _uri(target, _IMMUTABLE), bool(problem), tuple(notes))


def _merged(path: Path, beside: Sequence[Path], scratch: Path) -> Path:
    """A copy of the file into which the changes that lie beside it are written; raises one of ``ERRORS``.

    One plain file is left: a write-ahead log is read through a shared map, which two SQLite libraries in one
    process (Python's and the Arrow driver's) take from under each other, and the process dies of it.
    """
    for file in (path, *beside):
        shutil.copyfile(file, scratch / file.name)
    target = scratch / path.name
    with closing(_connect(target, immutable=False)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # rolls a hot journal back
        connection.execute("PRAGMA query_only=OFF")
        connection.execute("PRAGMA journal_mode=DELETE").fetchone()
    return target


class SideCheck:
    """``quick_check`` in a thread of its own, beside the reading, whose time it would double.

    Of a file over ``WHOLE_CHECK_BYTES`` only ``tables`` are checked, and over ``MAX_CHECKED_BYTES`` none.
    To be closed, which ends a check that no one waits for.
    """

    def __init__(self, database: Database, size_bytes: int, tables: Sequence[str]) -> None:
        self._problem = ""
        what = (
            ["1"]
            if size_bytes <= WHOLE_CHECK_BYTES
            else [f'"{table}"' for table in ("sqlite_schema", *tables)]
        )
        what = what if size_bytes <= MAX_CHECKED_BYTES else []
        self.notes = () if what else (UNCHECKED,)
        self._connection = sqlite3.connect(database.uri, uri=True, check_same_thread=False)
        for pragma in (*PRAGMAS, f"cache_size=-{_CHECK_CACHE_KIB}"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._thread = Thread(target=self._run, args=(what,), daemon=True)
        self._thread.start()

    def _run(self, what: Sequence[str]) -> None:
        for part in what:
            self._problem = _problem(self._connection, part)
            if self._problem:
                return

    def problem(self) -> str:
        """The first complaint, empty where there is none; waits for the end of the check."""
        self._thread.join()
        return self._problem

    def close(self) -> None:
        """Stop the check."""
        while self._thread.is_alive():  # interrupting between two statements stops none
            self._connection.interrupt()
            self._thread.join(0.01)
        self._connection.close()


def damage_note(problem: str) -> str:
    """What is told of a file in which the check found damage."""
    return f"SQLite finds the file damaged ({problem}): values may be wrong"


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.resolve()))}?{mode}"


def _connect(path: Path, *, immutable: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path, _IMMUTABLE if immutable else "mode=rw"), uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _problem(connection: sqlite3.Connection, what: str) -> str:
    """The first complaint of ``quick_check`` about a table or, for ``1``, the whole file."""
    try:
        (answer,) = connection.execute(f"PRAGMA quick_check({what})").fetchone()
    except ERRORS as error:
        return str(error)
    return "" if answer == "ok" else str(answer).splitlines()[-1]


def _reads_only(action: int, name: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_PRAGMA and name == "table_info":
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
