"""One file of ``nvidia-smi`` samples, whatever its shape: rows under headers, drawn tables, both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import polars as pl

from afterrun.loaders.counters.clocks import ELAPSED_NOTE, LOCAL_NOTE, is_ctime
from afterrun.loaders.counters.samples import device_settings, diagnostics_frame, series_text
from afterrun.loaders.counters.smi.devices import Placed, place
from afterrun.loaders.counters.smi.drawn import HEAD, DrawnTables, basename
from afterrun.loaders.counters.smi.guess import GUESSED_NOTE
from afterrun.loaders.counters.smi.lines import Other, SmiLines, header_of, headless
from afterrun.loaders.counters.smi.wide import KEYS, CounterColumn, Wide
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import BLOCK_BYTES, decode_head, split_lines, text_blocks

_KEY_TYPES = {
    "line": pl.Int64, "place": pl.Int64, "indexed": pl.Boolean, "t_ns": pl.Int64, "index": pl.Int64, "uuid": pl.Categorical,
    "bus": pl.Categorical, "name": pl.Categorical, "pid": pl.Int64, "process": pl.Categorical,
}  # fmt: skip

_HEADER_WITHIN = 20
_HINTS = (
    "gpu",
    "vram",
    "cuda",
    "nvidia",
    "mib",
    "memory.",
    "power.",
    "temperature.",
    "clocks",
    "pstate",
    " %",
    " w",
    "tesla",
)
"""One of these stands in every file of samples, so that others are passed over quickly; all in lower case."""
_UNITS = re.compile(r"[0-9] ?(?:%|MiB|W|MHz)(?=\s*(?:[,;|\t]|$))|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3},|GPU-")


def read_smi(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[Batch]:
    """All samples of a file. Rows are held as typed columns until its end, which alone shows which devices there are.

    Raises ``OSError`` where it cannot be read.
    """
    lines, wide, drawn = SmiLines(text_blocks(path, block_bytes)), Wide(), DrawnTables()
    for part in lines.parts():
        if isinstance(part, Other):
            drawn.add(part.text)
        else:
            wide.add(part)
    drawn.end()
    books = lines.books
    names, facts = dict(drawn.names), {**drawn.facts, **wide.facts}
    notes = [GUESSED_NOTE] if books.guessed else []
    damaged = books.damaged + wide.untimed.count + drawn.torn
    if drawn.samples:
        yield Batch(frames=drawn.samples.frames())
    if wide.frames:
        rows = pl.concat([_complete(f) for f in wide.frames], how="diagonal_relaxed")
        placed = place(rows)
        yield Batch(frames=_long(rows, wide.counters, placed))
        names |= placed.names
        damaged += placed.torn.count
        notes += placed.notes
        if placed.torn.count:
            notes.append(f"rows with a torn or missing device left out: {placed.torn}")
    frames = device_settings(names, facts).frames() | diagnostics_frame(books.diagnostics)
    yield Batch(frames=frames, damaged=damaged, notes=(*notes, *books.notes(), *_clock_notes(wide, drawn)))


def _clock_notes(wide: Wide, drawn: DrawnTables) -> Iterator[str]:
    if wide.untimed.count:
        yield f"rows without a readable time left out: {wide.untimed}"
    if drawn.torn:
        yield f"{drawn.torn} torn entries of drawn tables left out"
    if "local" in wide.clocks or drawn.dated:
        yield LOCAL_NOTE
    if "elapsed" in wide.clocks:
        yield ELAPSED_NOTE
    if wide.frames and not wide.clocks:
        yield "no time is recorded: samples are in written order"


def _complete(frame: pl.DataFrame) -> pl.DataFrame:
    missing = [pl.lit(None, dtype=_KEY_TYPES[k]).alias(k) for k in KEYS if k not in frame.columns]
    return frame.with_columns(missing)


def _long(rows: pl.DataFrame, counters: dict[str, CounterColumn], placed: Placed) -> dict[str, pl.DataFrame]:
    """Rows of ``samples``, counter by counter, each in written order."""
    of_process = rows["pid"].is_not_null() | rows["process"].is_not_null()
    rows = rows.with_columns(device=placed.device, series=placed.series)
    if of_process.any():
        rows = rows.with_columns(series=_of_process(rows).set(~of_process, None)).with_columns(
            pl.col("series").fill_null(placed.series)
        )
    rows = rows.with_columns(of_process=of_process).filter(placed.kept)
    parts = []
    for name, key in counters.items():
        device = pl.lit(key.device, dtype=pl.Int32) if key.device is not None else pl.col("device")
        if key.on_host:
            device = pl.lit(None, dtype=pl.Int32)
        counter = pl.when("of_process").then(pl.lit(f"process_{key.counter}")).otherwise(pl.lit(key.counter))
        parts.append(
            rows.filter(pl.col(name).is_not_null()).select(
                device.alias("device"),
                pl.col("series").cast(pl.Categorical),
                counter.cast(pl.Categorical).alias("counter"),
                "t_ns",
                pl.col(name).alias("value"),
            )
        )
    return {"samples": pl.concat(parts)} if parts else {}


def _of_process(rows: pl.DataFrame) -> pl.Series:
    """Labels of processes: pid and the basename of the executable."""
    pairs = rows.select("pid", pl.col("process").cast(pl.String)).unique(maintain_order=True)
    texts = []
    for pid, process in pairs.iter_rows():
        labels = {"pid": pid, "process": basename(process) if process else None}
        texts.append(series_text({k: v for k, v in labels.items() if v}))
    known = pairs.with_columns(text=pl.Series(texts, dtype=pl.String))
    return rows.select("pid", pl.col("process").cast(pl.String)).join(
        known, on=["pid", "process"], how="left", nulls_equal=True, maintain_order="left"
    )["text"]


def _is_hint(text: str) -> bool:
    low = text.lower()
    return any(hint in low for hint in _HINTS)


@lru_cache(maxsize=4)
def _content(head: bytes) -> tuple[tuple[str, ...], bool]:
    """Lines of the beginning of a file that may be rows, and whether a drawn table stands among the others.

    Remembered, because two formats ask for the same head.
    """
    text = decode_head(head)
    if text.lstrip("\0 \r\n\t")[:1] in ("{", "[", "<") or not _is_hint(text):
        return (), False
    lines = split_lines(text.replace("\0", ""))
    lines = lines[:-1] if len(lines) > 1 else lines
    rows = (x for x in lines if x.strip() and x.lstrip()[:1] not in "+|" and not is_ctime(x))
    return tuple(rows), any(HEAD.match(line) for line in lines)


def sniff_rows(head: bytes) -> bool:
    """Whether rows of samples begin here: a header of sampler columns, or rows that are such beyond doubt."""
    rows, _ = _content(head)
    early = rows[:_HEADER_WITHIN]
    if any(_is_hint(line) and header_of(line) for line in early):
        return True
    return len(rows) > 1 and _UNITS.search(rows[-1]) is not None and headless(rows) is not None


def sniff_drawn(head: bytes) -> bool:
    """Whether a drawn table begins here."""
    return _content(head)[1]
