"""Runs that an earlier analysis wrote as tables: taken as they are, not assembled again.

Attempts, ranks and superseded rows were decided from files that are not here any more, so they are kept,
and so are the names of the files that the rows came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import polars as pl

from afterrun.loaders.names import Name, Split
from afterrun.loaders.runs.assemble import Assembled
from afterrun.loaders.runs.member import Group
from afterrun.loaders.runs.placing import Loaded
from afterrun.loaders.schema import REQUIRED, SCHEMAS, Outcome, Status, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """The tables of one run as they were written, and what was lost on the way here."""

    tables: Tables
    notes: tuple[str, ...]


def earlier_runs(group: Group, files: Sequence[Loaded]) -> Iterator[tuple[Group, EarlierRun]]:
    """One group a run, in the order of the ``runs`` table; names below the group's as in ``by_run``.

    Of a table that stands here in several files (Parquet beside CSV) the first one counts.
    """
    if not files:
        return
    frames: dict[str, pl.DataFrame] = {}
    used: list[Loaded] = []
    for loaded in sorted(files, key=lambda f: _preference(f.name)):
        fresh = {name: frame for name, frame in loaded.frames.items() if name not in frames}
        frames |= fresh
        used += [loaded] if fresh or not loaded.frames else []
    notes = tuple(f"{loaded.name}: {note}" for loaded in used for note in loaded.notes)
    members = tuple(loaded.member for loaded in used)
    parts = {
        name: {str(key[0]): part for key, part in frame.partition_by("run", as_dict=True).items()}
        for name, frame in frames.items()
    }
    order = ("runs", *(n for n in Tables.names() if n != "runs"))
    for run in dict.fromkeys(run for name in order for run in parts.get(name, ())):
        tables = Tables(**{n: by_run[run] for n, by_run in parts.items() if run in by_run})
        name = f"{group.run}/{run}" if group.run else run
        given = replace(group, run=name, members=members, grouped_by="tables of an earlier analysis")
        yield given, EarlierRun(tables=tables, notes=notes)


def _preference(name: str) -> tuple[int, str]:
    suffix = name.rpartition(".")[2]
    known = ("parquet", "jsonl", "csv")
    return known.index(suffix) if suffix in known else len(known), name


def reassemble(run: str, earlier: EarlierRun, overrides: Mapping[str, Name]) -> Assembled:
    """The tables under the name that the run has here; meanings of tags given by the user are applied."""
    called = pl.lit(run, dtype=pl.Categorical).alias("run")
    tables = Tables(**{name: frame.with_columns(called) for name, frame in earlier.tables.items()})
    metrics = tables.metrics
    for tag, name in overrides.items():
        given = {"metric": name.metric, "split": name.split}
        metrics = metrics.with_columns(
            pl.when(pl.col("tag") == tag)
            .then(pl.lit(value))
            .otherwise(pl.col(column).cast(pl.String))
            .cast(pl.Categorical)
            .alias(column)
            for column, value in given.items()
        )
    attempts = max((int(f["attempt"].max() or 1) for _, f in tables.items() if len(f)), default=1)  # type: ignore[arg-type]  # int32 column
    tables = tables.with_(metrics=metrics, runs=_one_row(run, tables))
    tables = Tables(**{name: _filled(name, frame) for name, frame in tables.items()})
    return Assembled(tables=tables.validate(), attempts=attempts, notes=earlier.notes)


def _filled(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """What every row of a table has, where damage or a foreign hand left it out."""
    frame = frame.drop_nulls(sorted(REQUIRED.get(table, ())))
    frame = frame.with_columns(pl.col("attempt").fill_null(1))
    if table == "metrics":
        counted = pl.int_range(pl.len(), dtype=pl.Int64)
        return frame.with_columns(
            pl.col("seq").fill_null(counted),
            pl.col("superseded").fill_null(value=False),
            _one_of("split", get_args(Split), "none"),
        )
    if table == "sources":
        return frame.with_columns(
            pl.col("bytes", "rows", "damaged").fill_null(0),
            pl.col("sampled").fill_null(value=False),
            pl.col("note").fill_null(""),
            pl.coalesce("path", pl.col("source").cast(pl.String), pl.lit("")),
            _text("source", ""),
            _text("format", "unknown"),
            _one_of("status", get_args(Status), "unknown"),
        )
    return frame


def _text(column: str, otherwise: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null(otherwise).cast(pl.Categorical)


def _one_of(column: str, known: Sequence[str], otherwise: str) -> pl.Expr:
    text = pl.col(column).cast(pl.String)
    return (
        pl.when(text.is_in(known)).then(text).otherwise(pl.lit(otherwise)).cast(pl.Categorical).alias(column)
    )


def _one_row(run: str, tables: Tables) -> pl.DataFrame:
    """The row of ``runs``; whether the run is still running is asked again for the moment of this analysis."""
    if tables.runs.is_empty():
        row = {"run": run, "path": run, "attempt": 1, "formats": "", "outcome": "unknown"}
        return pl.DataFrame([row], schema=SCHEMAS["runs"])
    ended = [o for o in get_args(Outcome) if o != "running"]
    return tables.runs.head(1).with_columns(
        _one_of("outcome", ended, "unknown"), pl.col("path").fill_null(run), pl.col("formats").fill_null("")
    )
