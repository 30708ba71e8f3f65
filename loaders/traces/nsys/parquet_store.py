"""The tables of a parquet export: a folder with one ``<TABLE>.parquet`` each, columns as in SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import check_columns, check_inflation
from afterrun.loaders.traces.nsys.store import CHUNK_ROWS, Store

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

SUFFIX = ".parquet"


class ParquetStore(Store):
    """The tables of one folder; a file that cannot be opened is counted as damaged and its table is not there."""

    def __init__(self, folder: Path, wanted: Sequence[str]) -> None:
        super().__init__({})
        self._folder = folder
        self._heights: dict[str, int] = {}
        names = {path.stem for path in folder.glob(f"*{SUFFIX}") if path.stem.isidentifier()}
        self.columns = dict.fromkeys(names, frozenset())
        read = {table for name in wanted if (table := self.find(name))}
        self.columns = {table: found for table in sorted(read) if (found := self._opened(table)) is not None}

    def height(self, name: str) -> int:
        """Number of rows of a table; 0 where there is none."""
        return self._heights.get(self.find(name) or "", 0)

    def _opened(self, table: str) -> frozenset[str] | None:
        path = self._folder / f"{table}{SUFFIX}"
        try:
            with _file(path) as file:
                meta = file.metadata
                check_columns(path.name, meta.num_columns)
                unpacked = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
                check_inflation(path.name, path.stat().st_size, unpacked)
                self._heights[table] = meta.num_rows
                return frozenset(file.schema_arrow.names)
        except (ValueError, OSError, LimitError) as error:  # pyarrow's own errors are of the first two
            self._lost(path.name, error)
            return None

    def _lost(self, name: str, error: Exception) -> None:
        self.damaged += 1
        self.notes.append(f"{name}: {next(iter(str(error).splitlines()), type(error).__name__)}")

    def _chunks(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> Iterator[pl.DataFrame]:
        path = self._folder / f"{table}{SUFFIX}"
        asked = [pl.col(integers).cast(pl.Int64, strict=False), pl.col(texts).cast(pl.String, strict=False)]
        try:
            with _file(path) as file:
                for batch in file.iter_batches(CHUNK_ROWS, columns=[*integers, *texts]):
                    yield pl.DataFrame(batch).select(asked)
        except (ValueError, OSError, pl.exceptions.PolarsError) as error:
            self._lost(path.name, error)


def _file(path: Path) -> ParquetFile:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # this path only

    return ParquetFile(path, page_checksum_verification=True)
