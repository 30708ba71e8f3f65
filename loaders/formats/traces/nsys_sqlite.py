"""Nsight Systems reports exported to SQLite, every schema from 2020 on: columns are taken by name.

The check for damage (``quick_check``) of the tables that are read runs beside the reading, for it takes as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.sqlite import SideCheck, damage_note, opened, tables
from afterrun.loaders.traces.nsys.capture import TABLES, batches
from afterrun.loaders.traces.nsys.sqlite_store import SqliteStore

_OWN = (
    "CUPTI_ACTIVITY_KIND_",
    "NVTX_EVENTS",
    "OSRT_API",
    "TARGET_INFO_",
    "ProcessStreams",
    "ThreadNames",
    "GPU_METRICS",
)
_LFS = b"version https://git-lfs"
_NVPROF = "StringTable"
"""nvprof and the Visual Profiler name tables alike and columns otherwise."""


class NsysSqlite(Loader):
    """Nsight Systems export (`nsys export --type sqlite`): kernels, copies, CUDA graphs, calls, NVTX ranges, GPU metrics."""

    format = "nsys-sqlite"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:
        """An SQLite file with tables that only an export has, or a git-lfs pointer in the place of a `.sqlite` file."""
        if head.startswith(_LFS):
            return path.suffix == ".sqlite"
        found = tables(path, head)
        return _NVPROF not in found and any(name.startswith(_OWN) for name in found)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the tables. Raises ``UnreadableError`` where SQLite cannot open the file."""
        return load_sqlite(source.path)


def load_sqlite(path: Path) -> Iterator[Batch]:
    """The batches of one export."""
    with path.open("rb") as file:
        if file.read(len(_LFS)) == _LFS:
            raise UnreadableError("a git-lfs pointer stands in place of the file; run `git lfs pull`")
    with opened(path, check=False) as database:
        store = SqliteStore(database)
        read = [table for name in TABLES if (table := store.find(name))]
        with closing(SideCheck(database, path.stat().st_size, read)) as check:
            yield from batches(store)
            problem = check.problem()
        if problem:
            store.damaged = max(store.damaged, 1)
        notes = (*database.notes, *check.notes, *([damage_note(problem)] if problem else []), *store.notes)
        yield Batch(damaged=store.damaged, notes=notes)
