"""Which attempt and rank every file of a run has, and which rows are copies of others.

Works on the metric rows of one run with ``_source``, the index of the file each row comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from afterrun.loaders.runs.attempts import FileSpan, Place, Within, place_files, restarts_within
from afterrun.loaders.runs.member import Member
from afterrun.loaders.schema import LOADER_COLUMNS, Status

MIN_STUCK_POINTS = 2
"""A tag with so many points of one file, all on one step, has no step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One file after reading, or what it holds of one sub-run: its conformed frames, and what was lost."""

    member: Member
    frames: Mapping[str, pl.DataFrame]
    damaged: int = 0
    notes: tuple[str, ...] = ()
    status: Status = "read"
    sampled: bool = False
    subrun: str | None = None
    assembled: bool = False

    @property
    def name(self) -> str:
        """Path of the file below the root; the value of the ``source`` columns."""
        return self.member.found.source.name

    def table(self, name: str) -> pl.DataFrame:
        """Rows of one table, in write order."""
        frame = self.frames.get(name)
        return frame if frame is not None else pl.DataFrame(schema=LOADER_COLUMNS[name])


def repeated_snapshots(rows: pl.DataFrame, files: Sequence[Loaded]) -> dict[int, int]:
    """Files whose whole history stands again in a longer one of the same format: {file: the longer one}.

    Asked of formats that are written whole each time, and of the two streams of one job, which may both be given all.
    The longest history takes out all files it holds in one join; what is left is compared with the next.
    """
    kinds: dict[tuple[str, str | None], list[int]] = {}
    for i, f in enumerate(files):
        job, loader = f.member.job, f.member.found.loader
        if (loader is not None and loader.snapshot) or (job is not None and len(f.table("metrics"))):
            kinds.setdefault((f.member.format, job), []).append(i)
    kinds = {kind: same for kind, same in kinds.items() if len(same) > 1}
    if not kinds:
        return {}
    bits = rows.select("_source", "tag", "step", pl.col("value").fill_nan(None))
    sizes = dict(bits.group_by("_source").len().iter_rows())
    repeats: dict[int, int] = {}
    for same in kinds.values():
        # of equal histories the one nearest to the run's own folder stays
        left = sorted(
            same, key=lambda i: (-sizes.get(i, 0), files[i].member.folder.count("/"), files[i].name)
        )
        while len(left) > 1:
            head, *rest = left
            others = bits.filter(pl.col("_source").is_in(rest))
            whole = bits.filter(pl.col("_source") == head)
            held = others.join(whole, on=["tag", "step", "value"], how="semi", nulls_equal=True)
            counts = dict(held.group_by("_source").len().iter_rows())
            inside = {i for i in rest if counts.get(i, 0) == sizes.get(i, 0)}
            repeats |= dict.fromkeys(inside, head)
            left = [i for i in rest if i not in inside]
    return repeats


def place_all(rows: pl.DataFrame, files: Sequence[Loaded], repeats: Mapping[int, int]) -> dict[int, Place]:
    """Attempt and rank of every file; ranks told by file names, and formats, are placed one by one.

    Two formats in one run are two records of the same training, never two trainings.
    """
    spans = _file_spans(rows, files)
    apart: dict[tuple[int | None, str], list[FileSpan]] = {}
    for span in spans:
        member = files[span.source].member
        if span.source not in repeats:
            apart.setdefault((member.rank, member.format), []).append(span)
    places: dict[int, Place] = {}
    for (rank, _), mine in apart.items():
        for source, place in place_files(mine).items():
            places[source] = place if rank is None else replace(place, rank=rank)
    for i in sorted(repeats, reverse=True):
        j = i
        while j in repeats:
            j = repeats[j]
        places[i] = places[j]
    return places


def _file_spans(rows: pl.DataFrame, files: Sequence[Loaded]) -> list[FileSpan]:
    stats = {
        row["_source"]: row
        for row in rows.group_by("_source")
        .agg(
            pl.col("tag").unique(),
            pl.col("wall_ns").min().alias("first_ns"),
            pl.col("wall_ns").max().alias("last_ns"),
            pl.col("step").max().alias("last_step"),
        )
        .iter_rows(named=True)
    }
    spans = []
    for i, loaded in enumerate(files):
        row = stats.get(i, {})
        writer = loaded.member.writer
        process = None
        if loaded.subrun is not None:
            process = ("named inside the file", loaded.subrun)
        elif loaded.member.job is not None:
            process = ("job", loaded.member.job)
        elif writer is not None and writer.host is not None:
            process = (writer.host, str(writer.pid if writer.pid is not None else writer.started_s))
        spans.append(
            FileSpan(
                source=i,
                process=process,
                tags=frozenset(row.get("tag", ())),
                first_ns=row.get("first_ns"),
                last_ns=row.get("last_ns"),
                last_step=row.get("last_step"),
            )
        )
    return spans


def number_attempts(
    rows: pl.DataFrame, places: Mapping[int, Place], files: Sequence[Loaded]
) -> tuple[pl.DataFrame, dict[int, Place], tuple[str, ...]]:
    """Rows with ``attempt`` and ``rank``; files that begin again inside push later files back."""
    inside = _inside_files(rows)
    width: dict[int, int] = {}
    for i, place in places.items():
        width[place.attempt] = max(width.get(place.attempt, 1), 1 + len(inside.get(i, Within()).begins))
    first, total = {}, 1
    for level in sorted(width):
        first[level] = total
        total += width[level]
    moved = {i: replace(place, attempt=first[place.attempt]) for i, place in places.items()}
    source = rows["_source"]
    attempt = pl.Series([moved[i].attempt for i in range(len(files))], dtype=pl.Int32).gather(source)
    for i, within in inside.items():
        for seq in within.begins:
            attempt = attempt + ((source == i) & (rows["seq"] >= seq)).cast(pl.Int32)
    rank = pl.Series([moved[i].rank for i in range(len(files))], dtype=pl.Int32).gather(source)
    rows = rows.with_columns(attempt=attempt, rank=rows["rank"].fill_null(rank))
    notes = []
    for i, within in inside.items():
        if not within.cyclic:
            continue
        loops = (pl.col("_source") == i) & pl.col("tag").is_in(within.cyclic)
        rows = rows.with_columns(step=pl.when(loops).then(None).otherwise("step"))
        doubt = ", and nothing says whether the blocks are epochs or trainings" if within.guessed else ""
        notes.append(
            f"{files[i].name}: the step of {few(within.cyclic)} begins again in every block{doubt}; ordered as written"
        )
    return rows, moved, tuple(notes)


def _inside_files(rows: pl.DataFrame) -> dict[int, Within]:
    """What the counters of each file do."""
    needed = rows.select("_source", "tag", "seq", "step", "value", "epoch", "wall_ns")
    parts = needed.partition_by("_source", maintain_order=True)
    return {int(mine["_source"][0]): restarts_within(mine) for mine in parts}


def without_stuck_steps(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Step null for tags of one file that never advance: no step was recorded, only a default."""
    if rows.is_empty():
        return rows, ()
    stuck = (
        rows.group_by("_source", "tag", maintain_order=True)
        .agg(pl.len().alias("n"), pl.col("step").min().alias("lo"), pl.col("step").max().alias("hi"))
        .filter((pl.col("n") >= MIN_STUCK_POINTS) & (pl.col("lo") == pl.col("hi")))
        .select("_source", "tag", pl.lit(value=True).alias("_stuck"))
    )
    if stuck.is_empty():
        return rows, ()
    rows = rows.join(stuck, on=["_source", "tag"], how="left", maintain_order="left")
    rows = rows.with_columns(step=pl.when(pl.col("_stuck")).then(None).otherwise("step")).drop("_stuck")
    tags = stuck["tag"].unique(maintain_order=True).cast(pl.String).to_list()
    return rows, (f"no step recorded for {few(tags)}: ordered as written",)


def few(names: Sequence[str], limit: int = 3) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
