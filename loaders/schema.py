"""The unified columnar schema: nine tables, one contract.

Long form, one row an observation. Times are int64 nanoseconds UTC, units live in column names.
``null`` means *not recorded*, ``NaN`` means *the run recorded NaN*. A column never changes type or
meaning. Every table begins with ``run``, ``source``, ``attempt`` and ``rank``.

A loader knows nothing of runs: it yields ``Batch`` objects whose frames hold the columns of
``LOADER_COLUMNS`` (missing nullable ones are filled), and ``afterrun.loaders.runs.assemble`` adds
identity, attempts, ranks, canonical names and the superseded mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Literal

import polars as pl

from afterrun.loaders.errors import SchemaError

Status = Literal["read", "partial", "empty", "unreadable", "unknown", "skipped"]
"""State of a source: ``partial`` = read with losses, ``empty`` = understood, holds no observation."""

Outcome = Literal["finished", "running", "crashed", "killed", "nan", "oom", "stopped", "unknown"]

TEXT = pl.Categorical()

_KEY: dict[str, pl.DataType] = {
    "run": TEXT,
    "source": TEXT,
    "attempt": pl.Int32(),
    "rank": pl.Int32(),
}

_BODY: dict[str, dict[str, pl.DataType]] = {
    "metrics": {
        "tag": TEXT,
        "metric": TEXT,
        "split": TEXT,
        "seq": pl.Int64(),
        "step": pl.Int64(),
        "epoch": pl.Float64(),
        "tokens": pl.Int64(),
        "wall_ns": pl.Int64(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "superseded": pl.Boolean(),
    },
    "histograms": {
        "tag": TEXT,
        "step": pl.Int64(),
        "wall_ns": pl.Int64(),
        "edges": pl.List(pl.Float64()),
        "counts": pl.List(pl.Float64()),
    },
    "spans": {
        "process": pl.Int64(),
        "device": pl.Int32(),
        "lane": TEXT,
        "track": pl.Int64(),
        "name": TEXT,
        "start_ns": pl.Int64(),
        "dur_ns": pl.Int64(),
        "corr": pl.Int64(),
        "step": pl.Int64(),
        "bytes": pl.Int64(),
        "group": TEXT,
    },
    "samples": {
        "host": TEXT,
        "device": pl.Int32(),
        "series": TEXT,
        "counter": TEXT,
        "t_ns": pl.Int64(),
        "value": pl.Float64(),
    },
    "kernels": {
        "device": pl.Int32(),
        "name": TEXT,
        "launch": pl.Int64(),
        "metric": TEXT,
        "unit": TEXT,
        "value": pl.Float64(),
    },
    "marks": {
        "t_ns": pl.Int64(),
        "step": pl.Int64(),
        "line": pl.Int64(),
        "kind": TEXT,
        "text": pl.String(),
    },
    "params": {"key": TEXT, "value": pl.String()},
    "runs": {
        "path": pl.String(),
        "formats": pl.String(),
        "started_ns": pl.Int64(),
        "ended_ns": pl.Int64(),
        "outcome": TEXT,
        "world_size": pl.Int64(),
        "device_name": pl.String(),
        "devices": pl.Int64(),
    },
    "sources": {
        "path": pl.String(),
        "format": TEXT,
        "bytes": pl.Int64(),
        "rows": pl.Int64(),
        "damaged": pl.Int64(),
        "status": TEXT,
        "sampled": pl.Boolean(),
        "note": pl.String(),
    },
}

SCHEMAS: Mapping[str, pl.Schema] = MappingProxyType(
    {name: pl.Schema({**_KEY, **body}) for name, body in _BODY.items()}
)
"""Column names and types of every table, in order."""

_ASSEMBLED = {"run", "source", "attempt"}
_NAMED = {"metric", "split", "superseded"}
"""Columns of ``metrics`` that follow from the tag and the order of rows."""

LOADER_COLUMNS: Mapping[str, pl.Schema] = MappingProxyType(
    {
        name: pl.Schema(
            {
                c: t
                for c, t in schema.items()
                if c not in _ASSEMBLED and not (name == "metrics" and c in _NAMED)
            }
        )
        for name, schema in SCHEMAS.items()
        if name not in ("runs", "sources")
    }
)
"""What a loader may yield for each table; ``rank`` is null unless the file itself says it."""

REQUIRED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "metrics": frozenset({"tag", "value"}),
        "histograms": frozenset({"tag", "edges", "counts"}),
        "spans": frozenset({"lane", "track", "name", "start_ns", "dur_ns"}),
        "samples": frozenset({"series", "counter", "value"}),
        "kernels": frozenset({"name", "launch", "metric", "value"}),
        "marks": frozenset({"kind"}),
        "params": frozenset({"key", "value"}),
    }
)
"""Columns without nulls in what a loader yields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some rows, and what was lost on the way to them. Frozen; a loader yields any number.

    ``damaged`` counts records or rows given up since the last batch (kept + damaged = read).
    ``notes`` are sentences for a person, shown with the source: what was skipped, cut, repaired.
    ``status`` overrides the state that follows from rows and damage. ``sampled`` marks an export
    that is known not to hold all points. ``subrun`` names the run these rows belong to, where one file
    holds several (docs/decisions/0006-sub-runs.md). ``assembled`` frames hold all columns of ``SCHEMAS``, as
    an earlier analysis wrote them.
    """

    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    damaged: int = 0
    notes: tuple[str, ...] = ()
    status: Status | None = None
    sampled: bool = False
    subrun: str | None = None
    assembled: bool = False


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Check one loader frame against ``LOADER_COLUMNS`` and fill what it left out with nulls.

    Integers and floats are cast strictly, text to its dictionary type. Raises ``SchemaError``
    naming the table, the column and what was expected: a loader bug, not bad input.
    """
    if table not in LOADER_COLUMNS:
        raise SchemaError(f"no loader may fill the table {table!r}; there are {sorted(LOADER_COLUMNS)}")
    schema = LOADER_COLUMNS[table]
    unknown = [c for c in frame.columns if c not in schema]
    if unknown:
        raise SchemaError(f"{table}: unknown columns {unknown}; there are {list(schema)}")
    missing = sorted(REQUIRED[table] - set(frame.columns))
    if missing:
        raise SchemaError(f"{table}: columns {missing} are required")
    try:
        return frame.select(
            pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in schema.items()
        )
    except pl.exceptions.PolarsError as error:
        raise SchemaError(f"{table}: {error}") from error


@cache
def empty(table: str) -> pl.DataFrame:
    """The table without rows; made once, for no one changes a frame."""
    return pl.DataFrame(schema=SCHEMAS[table])


def _none(table: str) -> pl.DataFrame:
    return field(default_factory=lambda: empty(table))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All nine tables of any number of runs. Frozen; passes never change one."""

    metrics: pl.DataFrame = _none("metrics")
    histograms: pl.DataFrame = _none("histograms")
    spans: pl.DataFrame = _none("spans")
    samples: pl.DataFrame = _none("samples")
    kernels: pl.DataFrame = _none("kernels")
    marks: pl.DataFrame = _none("marks")
    params: pl.DataFrame = _none("params")
    runs: pl.DataFrame = _none("runs")
    sources: pl.DataFrame = _none("sources")

    @staticmethod
    def names() -> tuple[str, ...]:
        """The names of the tables, in the order of the schema."""
        return tuple(f.name for f in fields(Tables))

    def items(self) -> list[tuple[str, pl.DataFrame]]:
        """Pairs of name and frame, in the order of the schema."""
        return [(name, getattr(self, name)) for name in self.names()]

    def of_run(self, run: str) -> Tables:
        """The rows of one run, in every table."""
        return Tables(**{name: frame.filter(pl.col("run") == run) for name, frame in self.items()})

    def run_names(self) -> list[str]:
        """Names of the runs, in the order of the ``runs`` table."""
        return self.runs["run"].cast(pl.String).to_list()

    def with_(self, **frames: pl.DataFrame) -> Tables:
        """A copy with some tables replaced."""
        return replace(self, **frames)

    @staticmethod
    def concat(parts: list[Tables]) -> Tables:
        """All rows of all parts, in order."""
        if not parts:
            return Tables()
        return Tables(**{name: pl.concat([getattr(p, name) for p in parts]) for name in Tables.names()})

    def validate(self) -> Tables:
        """Return self, or raise ``SchemaError`` naming the first table that breaks the contract."""
        for name, frame in self.items():
            if frame.schema != SCHEMAS[name]:
                wrong = {c: t for c, t in frame.schema.items() if SCHEMAS[name].get(c) != t}
                raise SchemaError(f"{name}: columns {wrong or list(frame.columns)} break the schema")
        return self
