"""Nsight Systems reports exported to a folder of parquet files (``nsys export --type parquetdir``).

One file of the folder stands for all: it yields what the tables hold together, the others say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.traces.nsys.capture import DESCRIBING, TABLES, batches
from afterrun.loaders.traces.nsys.parquet_store import SUFFIX, ParquetStore

_MAGIC = b"PAR1"
_FOLDER = "_pqtdir"
_LEADER = "StringIds"


class NsysParquet(Loader):
    """Nsight Systems export (`nsys export --type parquetdir`): a folder `*_pqtdir` with one parquet file a table."""

    format = "nsys-parquet"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Parquet in a folder `*_pqtdir`, or with `StringIds.parquet` beside it."""
        return head.startswith(_MAGIC) and (
            path.parent.name.endswith(_FOLDER) or (path.parent / f"{_LEADER}{SUFFIX}").is_file()
        )

    def home(self, source: Source) -> str | None:
        """All tables of a folder are of one run."""
        return source.name.rpartition("/")[0]

    def load(self, source: Source) -> Iterator[Batch]:
        """The whole export for the file that stands for it, nothing but a note for the others."""
        folder = source.path.parent
        leader = folder / f"{_LEADER}{SUFFIX}"
        if not leader.is_file():
            leader = min(folder.glob(f"*{SUFFIX}"), default=source.path)
        if leader.name == source.path.name:
            store = ParquetStore(folder, (*TABLES, *DESCRIBING))
            yield from batches(store)
            yield Batch(damaged=store.damaged, notes=tuple(store.notes))
        elif source.path.stem.startswith((*TABLES, *DESCRIBING)):
            yield Batch(status="read", notes=(f"read with {leader.name}",))
        else:
            yield Batch(status="skipped", notes=("a table that is not read",))
