"""From the files of one run to its tables: identity, attempts, ranks, names, superseded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from afterrun.loaders.joining.conflicts import to_marks
from afterrun.loaders.joining.sources import Joined, join_sources
from afterrun.loaders.names import Name, resolve
from afterrun.loaders.runs.attempts import Place
from afterrun.loaders.runs.machine import device_name, devices
from afterrun.loaders.runs.parameters import without_repeats
from afterrun.loaders.runs.placing import (
    Loaded,
    number_attempts,
    place_all,
    repeated_snapshots,
    without_stuck_steps,
)
from afterrun.loaders.schema import LOADER_COLUMNS, SCHEMAS, Tables, empty
from afterrun.loaders.textlog.incidents import ending
from afterrun.loaders.traces.lanes import EPOCH_FLOOR_NS

OTHER_TABLES = ("histograms", "spans", "samples", "kernels", "marks", "params")

_ENDS = {"finish": "finished", "crash": "crashed", "killed": "killed", "stop": "stopped"}
"""Kind of an end mark -> outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The tables of one run and what was decided on the way."""

    tables: Tables
    attempts: int
    notes: tuple[str, ...] = ()


def assemble(run: str, files: Sequence[Loaded], overrides: Mapping[str, Name]) -> Assembled:
    """Tables of one run from its files, in the order of their names.

    Adds run, source, attempt and rank to every row, canonical names and the superseded mark to metrics.
    """
    decided = _decided(files, overrides)
    joined, places, repeats = decided.joined, decided.places, decided.repeats
    metrics = _named(run, joined.rows, files, overrides)
    others = {name: _other(run, name, files, places) for name in OTHER_TABLES}
    others["marks"] = pl.concat([others["marks"], to_marks(run, joined.conflicts)])
    others["params"] = without_repeats(others["params"])
    tables = Tables(metrics=metrics, **others)
    tables = tables.with_(
        runs=_run_row(run, files, tables), sources=_source_rows(run, files, places, repeats)
    )
    attempts = int(metrics["attempt"].max() or 1)  # type: ignore[arg-type]  # int32 column
    return Assembled(tables=tables.validate(), attempts=attempts, notes=decided.notes)


def same_curves(files: Sequence[Loaded], overrides: Mapping[str, Name]) -> frozenset[str]:
    """Names of the files that hold a loss or score of another one's, value by value."""
    return frozenset(files[i].name for i in _decided(files, overrides).joined.proven)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """The metric rows of all files with attempt, rank and what supersedes them, and how that was decided."""

    joined: Joined
    places: Mapping[int, Place]
    repeats: Mapping[int, int]
    notes: tuple[str, ...]


def _decided(files: Sequence[Loaded], overrides: Mapping[str, Name]) -> _Decided:
    rows = _metric_rows(files)
    repeats = repeated_snapshots(rows, files)
    placed = place_all(rows, files, repeats)
    rows, places, notes = number_attempts(rows, placed, files)
    rows, stepless = without_stuck_steps(rows)
    joined = join_sources(rows, files, rows["_source"].is_in(list(repeats)), overrides)
    return _Decided(joined=joined, places=places, repeats=repeats, notes=(*notes, *stepless, *joined.notes))


def _metric_rows(files: Sequence[Loaded]) -> pl.DataFrame:
    """All metric rows of all files with the index of the file and ``seq`` running over all of them."""
    parts: list[pl.DataFrame] = []
    offset = 0
    for i, loaded in enumerate(files):
        frame = loaded.table("metrics")
        if frame.is_empty():
            continue
        frame = frame.with_columns(
            _source=pl.lit(i, dtype=pl.Int32),
            seq=pl.coalesce("seq", pl.int_range(pl.len(), dtype=pl.Int64)) + offset,
            tag=_clean_tag(loaded.member.prefix, frame["tag"]),
        )
        offset = int(frame["seq"].max()) + 1  # type: ignore[arg-type]  # integers, not empty
        parts.append(frame)
    if parts:
        return pl.concat(parts)
    return pl.DataFrame(schema={**LOADER_COLUMNS["metrics"], "_source": pl.Int32})


def _clean_tag(prefix: str, tags: pl.Series) -> pl.Series:
    """Tags with the folder they come from in front; dictionary-encoded as before."""
    if not prefix:
        return tags
    unique = tags.unique().drop_nulls().cast(pl.String)
    renamed = {t: prefix + t for t in unique}
    return tags.cast(pl.String).replace(renamed).cast(pl.Categorical)


def _named(
    run: str, rows: pl.DataFrame, files: Sequence[Loaded], overrides: Mapping[str, Name]
) -> pl.DataFrame:
    """The metrics table: canonical names, axis columns filled from axis tags, columns in order."""
    counts = rows.filter(pl.col("value").is_not_nan() & ~pl.col("view"))["tag"].cast(pl.String).value_counts()
    points = dict(zip(rows["tag"].unique(maintain_order=True).cast(pl.String), [0] * len(rows), strict=False))
    points.update(zip(counts["tag"], counts["count"], strict=True))
    names = resolve(points, overrides)
    tags = list(names)
    table = pl.DataFrame(
        {"tag": tags, "metric": [names[t].metric for t in tags], "split": [names[t].split for t in tags]},
        schema={"tag": pl.Categorical, "metric": pl.Categorical, "split": pl.Categorical},
    )
    rows = rows.join(table, on="tag", how="left", maintain_order="left")
    rows = _fill_axis(rows, "epoch", pl.Float64())
    rows = _fill_axis(rows, "tokens", pl.Int64())
    sources = pl.Series([f.name for f in files], dtype=pl.Categorical)
    return rows.with_columns(
        run=pl.lit(run, dtype=pl.Categorical),
        source=sources.gather(rows["_source"]),
    ).select(pl.col(c).cast(t) for c, t in SCHEMAS["metrics"].items())


def _fill_axis(rows: pl.DataFrame, axis: str, dtype: pl.DataType) -> pl.DataFrame:
    """The axis column from a tag that logs it as a metric, at the same or the last earlier step of its file."""
    logged = rows.filter(
        (pl.col("metric") == axis) & pl.col("step").is_not_null() & pl.col("value").is_finite()
    )
    if logged.is_empty() or rows[axis].null_count() == 0:
        return rows
    known = (
        logged.select("_source", "attempt", "step", pl.col("value").cast(dtype, strict=False).alias("_axis"))
        .unique(["_source", "attempt", "step"], keep="last", maintain_order=True)
        .sort("step")
    )
    ordered = rows.with_row_index("_row").sort("step", nulls_last=True)
    filled = ordered.join_asof(
        known, on="step", by=["_source", "attempt"], strategy="backward", check_sortedness=False
    )
    return filled.sort("_row").with_columns(pl.coalesce(axis, "_axis").alias(axis)).drop("_row", "_axis")


def _other(run: str, name: str, files: Sequence[Loaded], places: Mapping[int, Place]) -> pl.DataFrame:
    """One of the other tables, with the identity of each file in front."""
    parts = []
    for i, loaded in enumerate(files):
        frame = loaded.frames.get(name)
        if frame is None or frame.is_empty():
            continue
        if "tag" in frame.columns:
            frame = frame.with_columns(tag=_clean_tag(loaded.member.prefix, frame["tag"]))
        place = places[i]
        parts.append(
            frame.with_columns(
                run=pl.lit(run),
                source=pl.lit(loaded.name),
                attempt=pl.lit(place.attempt),
                rank=pl.coalesce("rank", pl.lit(place.rank, dtype=pl.Int32)),
            ).select(pl.col(c).cast(t) for c, t in SCHEMAS[name].items())
        )
    return pl.concat(parts) if parts else empty(name)


def _run_row(run: str, files: Sequence[Loaded], tables: Tables) -> pl.DataFrame:
    recorded = (tables.metrics["wall_ns"], tables.samples["t_ns"], tables.marks["t_ns"])
    anchored = (t.filter(t >= EPOCH_FLOOR_NS) for t in recorded)
    times = [t for t in anchored if len(t)]
    ranks = tables.metrics["rank"].drop_nulls().n_unique()
    folder = files[0].member.folder if len(files) == 1 else run
    row = {
        "run": run,
        "source": files[0].name,
        "attempt": 1,
        "rank": None,
        "path": files[0].name if len(files) == 1 else folder,
        "formats": ", ".join(dict.fromkeys(f.member.format for f in files)),
        "started_ns": min((int(t.min()) for t in times), default=None),  # type: ignore[arg-type]  # integers
        "ended_ns": max((int(t.max()) for t in times), default=None),  # type: ignore[arg-type]  # integers
        "outcome": _outcome(tables),
        "world_size": ranks if ranks > 1 else None,
        "device_name": device_name(tables.params),
        "devices": devices(tables),
    }
    return pl.DataFrame([row], schema=SCHEMAS["runs"])


def _outcome(tables: Tables) -> str:
    """``nan`` where the training loss ends non-finite, else the failure that ended it, the last end record, or unknown."""
    loss = tables.metrics.filter(
        (pl.col("metric") == "loss") & pl.col("split").is_in(["train", "none"]) & ~pl.col("superseded")
    )
    if not loss.is_empty() and not loss.sort("attempt", "seq")["value"].is_finite()[-1]:
        return "nan"
    failure = ending(tables.marks)
    if failure is not None:
        return failure
    ends = tables.marks.filter(pl.col("kind").is_in(list(_ENDS))).sort("attempt", maintain_order=True)
    return _ENDS[str(ends["kind"][-1])] if len(ends) else "unknown"


def _source_rows(
    run: str, files: Sequence[Loaded], places: Mapping[int, Place], repeats: Mapping[int, int]
) -> pl.DataFrame:
    rows = []
    for i, loaded in enumerate(files):
        notes = list(loaded.notes)
        if i in repeats:
            notes.append(f"the same history stands in {files[repeats[i]].name}")
        rows.append(
            {
                "run": run,
                "source": loaded.name,
                "attempt": places[i].attempt,
                "rank": places[i].rank,
                "path": loaded.name,
                "format": loaded.member.format,
                "bytes": loaded.member.found.source.size_bytes,
                "rows": sum(len(f) for f in loaded.frames.values()),
                "damaged": loaded.damaged,
                "status": loaded.status,
                "sampled": loaded.sampled,
                "note": "; ".join(notes),
            }
        )
    return pl.DataFrame(rows, schema=SCHEMAS["sources"])
