"""MLflow's file store: a folder a run with ``metrics/<name>``, ``params/<name>``, ``tags/<name>`` and ``meta.yaml``.

A line of a metric is ``timestamp value step``, from MLflow 3 on also ``run_id``; ``/`` in a name makes folders.
``models/m-<id>/metrics`` of MLflow 3 repeats metrics of the run that logged the model, so what stands there
already is not counted again. Of the tags only the name of the run and its parent are read: others hold people
and paths.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from afterrun.loaders.mlflow.machine import split
from afterrun.loaders.mlflow.runs import marks, times_ns
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.cells import number
from afterrun.loaders.tables.damage import Places
from afterrun.loaders.tables.plain import plain_cells
from afterrun.loaders.tables.textblocks import TextBlock, decode, split_lines, text_blocks

META = "meta.yaml"
TAGS = ("mlflow.runName", "mlflow.parentRunId")
"""Tags that are read."""

_LINE = re.compile(r"(\d{9,19}) (\S+)(?: (-?\d{1,19}))?(?: (\S*))?")
_HEAD = re.compile(rb"\d{9,19} \S+(?: -?\d+)?(?: \w+)?\r?(?:\n|$)")
_PARTS = ("metrics", "params", "tags")
_RUN_META = re.compile(r"^run_(?:id|uuid):", re.MULTILINE)
_SOURCE_RUN = re.compile(r"^source_run_id:\s*['\"]?(\w+)", re.MULTILINE)
_SHORT = 1 << 16


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a file stands in the store: folder of the run (or logged model), part, and name below the part."""

    folder: Path
    part: str
    name: str

    @property
    def is_model(self) -> bool:
        return self.folder.parent.name == "models" and self.folder.name.startswith("m-")


class MlflowFiles(Loader):
    """A run in MLflow's file store: a metric, parameter or tag a file, and `meta.yaml`."""

    format = "mlflow"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A file below ``metrics``, ``params`` or ``tags`` beside a ``meta.yaml``, or that file of a run."""
        if path.name == META:
            return _RUN_META.search(head.decode("utf-8", "replace")) is not None
        place = _place(path)
        if place is None:
            return False
        return not head or _HEAD.match(head) is not None if place.part == "metrics" else True

    def home(self, source: Source) -> str | None:
        """The folder of the run; for what is told of a logged model that of the run that logged it."""
        place = _place(source.path)
        below = len(source.path.parts) - len(
            source.path.parent.parts if place is None else place.folder.parts
        )
        folder = source.name.split("/")[:-below]
        if place is not None and place.is_model:
            run = _run_of_model(place)
            if run is not None and len(folder) >= 2:
                return "/".join([*folder[:-2], run])
        return "/".join(folder)

    def load(self, source: Source) -> Iterator[Batch]:
        """The part of the run that the file holds. A damaged line costs itself."""
        place = _place(source.path)
        if place is None:
            yield _meta(source.path)
        elif place.part == "metrics":
            yield from _metric(source, place)
        elif place.part == "tags" and place.name not in TAGS:
            yield Batch(status="skipped", notes=("a tag that is not read: tags may hold names and paths",))
        else:
            settings = Settings()
            settings.add(place.name, _short_text(source.path).strip())
            yield Batch(frames=settings.frames(), notes=tuple(settings.notes()))


def _place(path: Path) -> _Place | None:
    """The place of a metric, parameter or tag; None for any other file."""
    parts = path.parts
    for i in range(len(parts) - 2, 0, -1):
        if parts[i] in _PARTS:
            folder = Path(*parts[:i])
            if (folder / META).is_file():
                return _Place(folder, parts[i], "/".join(parts[i + 1 :]))
    if re.fullmatch(r"[0-9a-f]{32}|m-[0-9a-f]{32}", path.parent.parent.name) and path.parent.name in _PARTS:
        return _Place(path.parent.parent, path.parent.name, path.name)
    return None


def _run_of_model(place: _Place) -> str | None:
    """The run that logged a model, where its folder stands beside; the ``meta.yaml`` of the model names it."""
    try:
        told = _SOURCE_RUN.search(_short_text(place.folder / META))
    except OSError:
        return None
    return told[1] if told and (place.folder.parent.parent / told[1]).is_dir() else None


def _short_text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_SHORT).decode("utf-8", "replace")


def _meta(path: Path) -> Batch:
    """Start, end and state of a run as marks; no owner, no place of its artifacts."""
    entries: dict[str, str] = {}
    for line in split_lines(_short_text(path)):
        key, colon, value = line.partition(":")
        if colon and re.fullmatch(r"\w+", key):
            entries[key] = value.strip().strip("'\"")
    notes = ("deleted in MLflow",) if entries.get("lifecycle_stage") == "deleted" else ()
    status = entries.get("status", "")
    frames = marks(entries.get("start_time"), entries.get("end_time"), status)
    name = entries.get("run_name")
    if name and not (path.parent / "tags" / TAGS[0]).is_file():
        settings = Settings()
        settings.add(TAGS[0], name)
        frames |= settings.frames()
    return Batch(frames=frames, notes=notes)


@dataclass(slots=True)
class _Book:
    """What was given up of one metric."""

    bad: Places
    half_line: int | None = None
    repeated: int = 0
    rows: int = 0

    def notes(self, name: str, run: str) -> Iterator[str]:
        """One sentence for each kind of loss."""
        if self.bad.count:
            lines = f"{self.bad.count} line{'s' if self.bad.count > 1 else ''}"
            yield f"{name}: {lines} that are no 'timestamp value step' left out: {self.bad}"
        if self.half_line is not None:
            yield f"{name}: the file ends in the middle of line {self.half_line}, which was left out"
        if self.repeated:
            yield f"{self.repeated} values stand in the metrics of run {run} already"


def _metric(source: Source, place: _Place) -> Iterator[Batch]:
    book = _Book(Places())
    known: Counter[tuple[float, float, float]] = Counter()
    run = _run_of_model(place) if place.is_model else None
    if run is not None:
        known = _values_of(place.folder.parent.parent / run / "metrics" / place.name)
    for text in text_blocks(source.path):
        cells = _cells(text, book)
        if known:
            cells = _unknown(cells, known, book)
        if len(cells):
            yield Batch(frames=split(_frame(cells, place.name, book)))
    damaged = book.bad.count + (book.half_line is not None)
    notes = tuple(book.notes(source.name, run or ""))
    if not book.rows and not damaged:
        if book.repeated:
            yield Batch(status="skipped", notes=notes)
        else:
            yield Batch(status="empty", notes=(f"{source.name}: the file holds no value",))
    elif notes:
        yield Batch(damaged=damaged, notes=notes)


def _cells(text: TextBlock, book: _Book) -> pl.DataFrame:
    """Columns ``0`` timestamp, ``1`` value, ``2`` step of the lines that read."""
    plain = plain_cells(text.data, ("timestamp", "value", "step"), " ")
    if (
        plain is not None
        and all(t == pl.Float64 for t in plain.dtypes)
        and not any(c.null_count() for c in plain)
    ):
        return plain
    rows: list[tuple[float, float, float | None]] = []
    lines = split_lines(decode(text.data)[0])
    for i, line in enumerate(lines):
        if not line.strip("\0 \t"):
            continue
        match = _LINE.fullmatch(line.strip())
        value = None if match is None else number(match[2])
        if (
            match is not None
            and value is not None
            and not (text.cut and i == len(lines) - 1 and match[3] is None)
        ):
            rows.append((float(match[1]), value, None if match[3] is None else float(match[3])))
        elif text.cut and i == len(lines) - 1:
            book.half_line = text.first_line + i
        else:
            book.bad.add(text.first_line + i)
    return pl.DataFrame(rows, schema={"0": pl.Float64, "1": pl.Float64, "2": pl.Float64}, orient="row")


def _frame(cells: pl.DataFrame, name: str, book: _Book) -> pl.DataFrame:
    first = book.rows
    book.rows += len(cells)
    return pl.DataFrame(
        {
            "tag": pl.repeat(name, len(cells), dtype=pl.Categorical, eager=True),
            "seq": pl.int_range(first, book.rows, dtype=pl.Int64, eager=True),
            "step": cells["2"].cast(pl.Int64, strict=False),
            "wall_ns": times_ns(cells["0"]),
            "value": cells["1"],
        }
    )


def _values_of(path: Path) -> Counter[tuple[float, float, float]]:
    """All points of a metric, empty where it cannot be read."""
    found: Counter[tuple[float, float, float]] = Counter()
    try:
        for text in text_blocks(path):
            found.update(_keyed(_cells(text, _Book(Places()))))
    except OSError:
        return Counter()
    return found


def _keyed(cells: pl.DataFrame) -> list[tuple[float, float, float]]:
    # NaN is unequal to itself and would never be found again
    return [(t, float("-inf") if math.isnan(v) else v, s) for t, v, s in cells.rows()]


def _unknown(cells: pl.DataFrame, known: Counter[tuple[float, float, float]], book: _Book) -> pl.DataFrame:
    fresh = [key not in known for key in _keyed(cells)]
    book.repeated += len(fresh) - sum(fresh)
    return cells.filter(pl.Series(fresh, dtype=pl.Boolean))
