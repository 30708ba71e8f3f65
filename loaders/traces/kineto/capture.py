"""One Kineto file: events to rows, then what only the whole file tells (clock, process, rank), then batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.registry import Source
from afterrun.loaders.schema import LOADER_COLUMNS, Batch
from afterrun.loaders.traces.chromejson import PIECE_BYTES, EventText
from afterrun.loaders.traces.events import EventDecoder, collector_paused
from afterrun.loaders.traces.inflating import Blocks
from afterrun.loaders.traces.kineto.buckets import Buckets
from afterrun.loaders.traces.kineto.counters import Counters
from afterrun.loaders.traces.kineto.facts import facts_of, groups_of
from afterrun.loaders.traces.kineto.rows import Rows, joined
from afterrun.loaders.traces.lanes import EPOCH_FLOOR_NS
from afterrun.loaders.traces.repair import NEGATIVE, repair


class Capture:
    """Reads one source; ``batches`` may be asked once."""

    def __init__(self, source: Source) -> None:
        self._blocks = Blocks(source, PIECE_BYTES)
        self._text = EventText(self._blocks)
        self._decoder = EventDecoder()
        self._rows = Rows()
        self._counters = Counters()
        self._skipped = 0
        self._damaged = 0
        self._notes: list[str] = []

    def batches(self) -> Iterator[Batch]:
        """Host rows, device rows with the calls that launched them, counters, facts."""
        with collector_paused():
            self._read()
        facts = facts_of(self._text.surroundings())
        self._tell()
        if not self._rows.rows and not self._counters.samples and self._lost:
            raise UnreadableError("; ".join(self._notes) or "no event of a trace in it")
        rank = pl.lit(facts.rank, dtype=pl.Int32).alias("rank")
        clock = _Clock(facts.base_ns, self._rows)
        steps = self._steps()
        stacks = any((frame["lane"] == "python").any() for frame in self._rows.host)
        host_frames, call_frames, device_frames = self._rows.taken()
        host, calls = clock.of_spans(host_frames, rank), clock.of_spans(call_frames, rank)
        process = only_process(self._rows.processes)
        device = clock.of_spans(device_frames, rank, process)
        idle, kept = device is None, 0
        if device is not None:
            if calls is not None and len(self._rows.processes) > 1:
                device = with_launcher(device, calls)
            device = self._repaired(device.rechunk(), calls)
        for frame in (device, calls, host):
            if frame is not None:
                kept += len(frame)
                yield Batch(frames={"spans": frame})
        yield from self._values(clock, rank)
        more = steps | ({"trace.with_stack": True} if stacks else {})
        frames = {"params": facts.params_frame(more).with_columns(rank)}
        if facts.diagnostics:
            marks = pl.DataFrame({"text": facts.diagnostics}).with_columns(rank, kind=pl.lit("diagnostic"))
            frames["marks"] = marks
        self._damaged += clock.strays
        self._notes += clock.notes()
        if idle:
            self._notes.append("no activity of a device was recorded")
        yield Batch(frames=frames, damaged=self._damaged, notes=tuple(self._notes), status=self._status(kept))

    @property
    def _lost(self) -> bool:
        return bool(self._damaged or self._blocks.trouble or not self._text.closed)

    def _read(self) -> None:
        buckets = Buckets()
        for number, piece in enumerate(self._text.pieces()):
            if number == 0:
                self._rows.groups = groups_of(self._text.surroundings())
            buckets.sort(self._decoder.decode(piece))
            self._rows.add(buckets)
            self._counters.add(buckets)
            self._skipped += buckets.count("none")
        self._skipped += buckets.points

    def _repaired(self, device: pl.DataFrame, calls: pl.DataFrame | None) -> pl.DataFrame:
        checked = repair(device, pl.DataFrame(schema=LOADER_COLUMNS["spans"]) if calls is None else calls)
        self._damaged += checked.damaged
        self._notes += checked.notes
        return checked.spans

    def _values(self, clock: _Clock, rank: pl.Expr) -> Iterator[Batch]:
        samples, kernels = joined(self._counters.samples), joined(self._counters.kernels)
        if samples is not None and not samples.is_empty():
            shifted = samples.with_columns(pl.col("t_ns") + clock.shift_ns, rank, series=pl.lit(""))
            yield Batch(frames={"samples": shifted})
        if kernels is not None and not kernels.is_empty():
            yield Batch(frames={"kernels": kernels.with_columns(rank)})

    def _steps(self) -> dict[str, Any]:
        ends = [(s.min(), s.max()) for f in self._rows.host if (s := f["step"]).null_count() < len(s)]
        if not ends:
            return {}
        first, last = min(a for a, _ in ends), max(b for _, b in ends)  # type: ignore[type-var]  # integers
        return {"trace.step_first": first, "trace.step_last": last}

    def _tell(self) -> None:
        """Counts and notes of the reading itself."""
        rows, text = self._rows, self._text
        timeless = rows.timeless + self._counters.timeless
        self._damaged += self._decoder.damaged + text.lost + timeless + rows.placeless + rows.negative
        told = (
            (self._blocks.trouble, self._blocks.trouble),
            (not text.closed and not self._blocks.trouble, "cut: the file ends inside its events"),
            (text.closed and not text.whole, "cut behind its events"),
            (
                self._decoder.damaged + text.lost,
                f"{self._decoder.damaged + text.lost} stretches hold no whole event and were left out",
            ),
            (timeless, f"{timeless} events without a start or a length were left out"),
            (rows.negative, NEGATIVE.format(rows.negative)),
            (rows.placeless, f"{rows.placeless} device events that name no device were left out"),
            (
                self._decoder.mended,
                f"{self._decoder.mended} places that are no JSON (stray backslashes, control or foreign characters) were mended",
            ),
            (
                self._skipped,
                f"{self._skipped} flow, metadata and instant events are no activity and were left out",
            ),
            (
                self._counters.without_totals,
                f"{self._counters.without_totals} allocations say no total and were left out",
            ),
        )
        self._notes += [str(note) for happened, note in told if happened]

    def _status(self, kept: int) -> Any:
        broken = self._blocks.trouble or not self._text.closed or not self._text.whole
        return "partial" if broken and kept else None


class _Clock:
    """The shift from the file's clock to 1970, and which rows are on another clock than most."""

    def __init__(self, base_ns: int | None, rows: Rows) -> None:
        self._epoch = rows.anchored * 2 > rows.rows
        self._mixed = 0 < rows.anchored < rows.rows
        self.shift_ns = 0 if self._epoch or base_ns is None else base_ns
        self.strays = 0

    def of_spans(self, frames: list[pl.DataFrame], *more: pl.Expr) -> pl.DataFrame | None:
        """All rows on one clock, with ``more`` columns; strays are left out and counted. ``frames`` is used up.

        Block by block, for a new column beside columns in blocks would copy them all.
        """
        done: list[pl.DataFrame] = []
        while frames:
            frame = frames.pop(0)
            if self._mixed:
                kept = frame.filter((pl.col("start_ns") >= EPOCH_FLOOR_NS) == self._epoch)
                self.strays += len(frame) - len(kept)
                frame = kept
            done.append(frame.with_columns(pl.col("start_ns") + self.shift_ns, *more))
        return joined(done)

    def notes(self) -> list[str]:
        return [f"{self.strays} events on another clock than the others were left out"] if self.strays else []


def only_process(known: set[int]) -> pl.Expr:
    """The column ``process`` where the file is of one process; nulls otherwise."""
    value = next(iter(known)) if len(known) == 1 else None
    return pl.lit(value, dtype=pl.Int64).alias("process")


def with_launcher(device: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Device rows of a file of several processes: each device is of the one whose calls launched most on it."""
    launches = calls.select("corr", "process").drop_nulls().unique()
    votes = device.select("device", "corr").join(launches, on="corr").group_by("device", "process").len()
    votes = votes.sort("len", "process", descending=[True, False])
    launcher = votes.unique("device", keep="first", maintain_order=True).select("device", "process")
    return device.drop("process").join(launcher, on="device", how="left", maintain_order="left")
