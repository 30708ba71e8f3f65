"""MLflow's SQLite backend: many runs in one database, each a sub-run called by its name.

Rows come in the order in which they were inserted. SQLite holds a value of any type in any column, so each
value is asked for its type; what is no number where one belongs is counted as damaged. NaN is recorded as
``is_nan``, infinities as the largest float.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from afterrun.loaders.mlflow.machine import split
from afterrun.loaders.mlflow.runs import marks, times_ns
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.sqlite import ERRORS, Database, opened, tables

CHUNK_ROWS = 50_000

_NEEDED = {"runs", "metrics", "params"}
_METRICS = "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics"
_METRICS_OLD = "SELECT run_uuid, key, value, timestamp, 0, 0 FROM metrics"
_SHORT_ID = 8
_WRONG_TYPE = "metric rows whose value is no number left out"


@dataclass(slots=True)
class _Run:
    """One run while it is read."""

    name: str
    frames: dict[str, pl.DataFrame]
    settings: Settings
    notes: list[str] = field(default_factory=list)
    rows: int = 0


class MlflowSqlite(Loader):
    """MLflow's SQLite backend (`mlflow.db`): every run of the database is a run of its own."""

    format = "mlflow-sqlite"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """An SQLite file with MLflow's tables ``runs``, ``metrics`` and ``params``."""
        return tables(path, head) >= _NEEDED

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the rows run by run. Raises ``UnreadableError`` where SQLite cannot open the file."""
        with opened(source.path) as database:
            reader = _Reader(database)
            yield from reader.batches()


class _Reader:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._runs: dict[str, _Run] = {}
        self._damaged = int(database.damaged)
        self._failed: list[str] = []
        self._orphans = 0

    def batches(self) -> Iterator[Batch]:
        """Metrics as they come, then what else is known of each run, then what concerns the file."""
        self._read_runs()
        for key, value, run_id in self._rows("SELECT key, value, run_uuid FROM params"):
            self._setting(run_id, key, value)
        for key, value, run_id in self._rows("SELECT key, value, run_uuid FROM tags"):
            if key == "mlflow.parentRunId":
                parent = self._runs.get(str(value))
                self._setting(run_id, key, parent.name if parent else value)
        for run in self._runs.values():
            frames = run.frames | run.settings.frames()
            yield Batch(frames=frames, subrun=run.name, notes=(*run.notes, *run.settings.notes()))
        yield from self._metrics()
        notes = [*self._database.notes, *self._failed]
        if self._orphans:
            notes.append(f"{self._orphans} metric rows of runs that are not in the database left out")
        if self._damaged or notes:
            yield Batch(damaged=self._damaged, notes=tuple(notes))

    def _rows(self, query: str) -> Iterator[tuple[object, ...]]:
        """Rows of a query; where the file breaks off, those before."""
        try:
            cursor = self._database.connection.execute(query)
            while rows := cursor.fetchmany(CHUNK_ROWS):
                yield from rows
        except ERRORS as error:
            self._failed.append(f"SQLite stopped reading ({error})")
            self._damaged += 1

    def _read_runs(self) -> None:
        taken: dict[str, int] = {}
        query = "SELECT run_uuid, name, status, start_time, end_time, lifecycle_stage FROM runs"
        for run_id, name, status, start, end, stage in self._rows(query):
            if not isinstance(run_id, str) or not run_id:
                self._damaged += 1
                continue
            called = name.strip() if isinstance(name, str) and name.strip() else run_id
            taken[called] = taken.get(called, 0) + 1
            if taken[called] > 1:
                called = f"{called} {run_id[:_SHORT_ID]}"
            notes = ["deleted in MLflow"] if stage == "deleted" else []
            run = _Run(called, marks(start, end, str(status)), Settings(), notes)
            run.settings.add("mlflow.runId", run_id)
            self._runs[run_id] = run

    def _setting(self, run_id: object, key: object, value: object) -> None:
        run = self._runs.get(str(run_id))
        if run is None or not isinstance(key, str) or not isinstance(value, (str, int, float)):
            self._damaged += 1
        else:
            run.settings.add(key, value)

    def _metrics(self) -> Iterator[Batch]:
        columns = self._columns()
        query = _METRICS if {"step", "is_nan"} <= columns else _METRICS_OLD
        chunk: list[tuple[object, ...]] = []
        for row in self._rows(query):
            chunk.append(row)
            if len(chunk) == CHUNK_ROWS:
                yield from self._chunk(chunk)
                chunk = []
        yield from self._chunk(chunk)

    def _columns(self) -> set[str]:
        """Names of the columns of ``metrics``; those of today where they cannot be asked for."""
        try:
            cursor = self._database.connection.execute("SELECT * FROM metrics LIMIT 0")
        except ERRORS:
            return {"step", "is_nan"}
        return {str(column[0]) for column in cursor.description}

    def _chunk(self, rows: Sequence[tuple[object, ...]]) -> Iterator[Batch]:
        """Some rows of the table, one batch a run."""
        by_run: dict[str, list[tuple[str, float, float | None, int | None]]] = {}
        damaged: Counter[str] = Counter()
        for run_id, key, value, time, step, is_nan in rows:
            known = str(run_id)
            if known not in self._runs:
                self._orphans += 1
            elif (
                not isinstance(key, str) or isinstance(value, (str, bytes)) or (value is None and not is_nan)
            ):
                damaged[known] += 1
            else:
                read = float("nan") if is_nan else _unbounded(float(value))  # type: ignore[arg-type]  # a number
                when = float(time) if isinstance(time, (int, float)) else None
                at = step if isinstance(step, int) else None
                by_run.setdefault(known, []).append((key, read, when, at))
        for run_id, count in damaged.items():
            yield Batch(damaged=count, notes=(_WRONG_TYPE,), subrun=self._runs[run_id].name)
        for run_id, mine in by_run.items():
            run = self._runs[run_id]
            tags, values, times, steps = zip(*mine, strict=True)
            frame = pl.DataFrame(
                {
                    "tag": pl.Series(tags, dtype=pl.String),
                    "seq": pl.int_range(run.rows, run.rows + len(mine), dtype=pl.Int64, eager=True),
                    "step": pl.Series(steps, dtype=pl.Int64),
                    "wall_ns": times_ns(pl.Series(times, dtype=pl.Float64)),
                    "value": pl.Series(values, dtype=pl.Float64),
                }
            )
            run.rows += len(mine)
            yield Batch(frames=split(frame), subrun=run.name)


def _unbounded(value: float) -> float:
    """MLflow stores an infinity as the largest float."""
    return value if abs(value) < sys.float_info.max else float("inf") if value > 0 else float("-inf")
