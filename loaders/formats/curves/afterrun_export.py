"""Tables of our own: what ``afterrun export`` and ``afterrun report`` (``data/*.parquet``) wrote.

They hold finished runs: names, attempts, ranks and superseded rows are taken as written, so that exports and
reports can be merged. See ``afterrun.loaders.store`` for the files and ``afterrun.loaders.runs.earlier`` for the runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.registry import HEAD_BYTES, Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.store import read_table, table_of


class AfterrunExport(Loader):
    """A table that `afterrun export` or `afterrun report` wrote, as Parquet, CSV or JSON lines."""

    format = "afterrun-export"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """The exact columns of one of the nine tables, or a Parquet file that says which table it is."""
        return table_of(path, head) is not None

    def home(self, source: Source) -> str | None:
        """The folder of the tables; for those of a report the folder of the report."""
        folder = source.name.rpartition("/")[0]
        parent, _, base = folder.rpartition("/")
        report = source.path.parent.parent / "findings.json"
        return parent if base == "data" and report.is_file() else folder

    def load(self, source: Source) -> Iterator[Batch]:
        """The whole table in one batch. Raises ``UnreadableError`` where it cannot be read."""
        with source.path.open("rb") as file:
            table = table_of(source.path, file.read(HEAD_BYTES))
        if table is None:
            raise UnreadableError("this table of an export cannot be read")
        frame, damaged = read_table(source.path, table)
        notes = (f"{damaged} damaged rows left out",) if damaged else ()
        yield Batch(frames={table: frame}, damaged=damaged, notes=notes, assembled=True)
