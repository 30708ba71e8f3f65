"""The records of one ``.wandb`` file put together: what one run logged, how it began and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from afterrun.loaders.protowire import BYTES, VARINT, WireError, fields, signed, text
from afterrun.loaders.schema import TEXT, Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.cells import SECOND_NS
from afterrun.loaders.wandb.history import History
from afterrun.loaders.wandb.log import BlockLog
from afterrun.loaders.wandb.machine import environment, environment_record
from afterrun.loaders.wandb.records import (
    CONFIG,
    ENVIRONMENT,
    EXIT,
    HISTORY,
    METRIC,
    OUTPUT,
    OUTPUT_RAW,
    RUN,
    STATS,
    SUMMARY,
    item,
    items,
    key_name,
    record,
    rejoined,
    timestamp_ns,
)
from afterrun.loaders.wandb.stats import Stats
from afterrun.loaders.wandb.values import INTERNAL, decoded, leaves, media_type

INTERRUPTED = 255
"""Exit code that the client writes for a run ended with Ctrl-C."""

_UPDATE, _REMOVE = 1, 2
_RUN_NAMES = {1: "run_id", 3: "project", 6: "group", 7: "job_type", 8: "name", 12: "sweep_id"}
_RUN_CONFIG, _RUN_STEP, _RUN_START, _RUN_RESUMED = 4, 14, 17, 18
_EXIT_CODE, _EXIT_RUNTIME = 1, 2
_OUTPUT_LINE = 3
_MARKS = pl.Schema({"t_ns": pl.Int64(), "kind": TEXT, "text": pl.String()})


class Tree:
    """Configuration or summary: the last value of every key, undecoded until it is asked for."""

    def __init__(self) -> None:
        self._raw: dict[bytes, bytes] = {}

    def add(self, data: bytes, at: int, end: int) -> None:
        """One record of updates and removals. Raises ``WireError`` where it is none."""
        pairs, others = items(data, at, end, _UPDATE)
        self._raw.update(pairs)
        for field in others:
            if field.number == _REMOVE and field.wire == BYTES:
                self._raw.pop(item(data[field.at : field.end])[0], None)

    def values(self) -> Iterator[tuple[str, object]]:
        """Plain values by dotted key; media, W&B's own affairs and what is no JSON are left out."""
        for key, raw in rejoined([*self._raw.items()]):
            try:
                name, value = key_name(key), decoded(raw)
            except ValueError:
                continue
            if name.partition(".")[0] != INTERNAL:
                yield from ((k, x) for k, x in leaves(name, value) if media_type(x) is None)


class RunRecords:
    """Takes the records of a file one by one; ``take`` and ``last`` hand over what they said."""

    def __init__(self) -> None:
        self._history, self._stats = History(), Stats()
        self._config, self._summary = Tree(), Tree()
        self._run: dict[str, str] = {}
        self._machine: dict[str, Any] = {}
        self._start_ns: int | None = None
        self._resumed_at: int | None = None
        self._exit: tuple[int, int | None] | None = None
        self._lines = 0
        self._broken = 0
        self._number = 0
        self._missing = 0
        self._takers: dict[int, Callable[[bytes, int, int], None]] = {
            HISTORY: self._history.add,
            STATS: self._stats.add,
            OUTPUT: self._add_output,
            OUTPUT_RAW: self._add_output,
            SUMMARY: self._summary.add,
            CONFIG: self._config.add,
            METRIC: self._history.axes.define,
            RUN: self._add_run,
            EXIT: self._add_exit,
            ENVIRONMENT: self._add_environment,
        }

    def add(self, payload: bytes) -> None:
        """One record; one that cannot be decoded is counted."""
        try:
            number, kind, at, end = record(payload)
            self._count(number)
            if (taker := self._takers.get(kind)) is not None:
                taker(payload, at, end)
        except WireError:
            self._broken += 1

    @property
    def full(self) -> bool:
        """Whether there is enough for a batch."""
        return self._history.full or self._stats.full

    def take(self) -> dict[str, pl.DataFrame]:
        """History and system metrics since the last time."""
        return self._history.take() | self._stats.take()

    def last(self, log: BlockLog) -> Batch:
        """The rest, parameters and marks, and what there is to say about the file."""
        settings = Settings()
        settings.add_all("wandb.", self._run.items())
        settings.add_all("", environment(self._machine))
        settings.add_all("", self._config.values())
        settings.add_all("summary.", self._summary.values())
        lost = self._lost(log)
        broken = self._broken + self._history.broken
        return Batch(
            frames=self.take() | settings.frames() | self._marks(),
            damaged=lost + broken + log.oversize,
            notes=(
                *_log_notes(log, lost, counted=bool(self._number) and not log.lost_tail_bytes),
                *([f"{broken:,} records or values could not be decoded"] if broken else []),
                *self._notes(log),
                *self._history.skipped.notes(),
                *settings.notes(),
            ),
        )

    def _count(self, number: int) -> None:
        """Records are numbered without a gap, so a number left out is a record lost."""
        if self._number and number > self._number:
            self._missing += number - self._number - 1
        self._number = number or self._number

    def _add_output(self, data: bytes, at: int, end: int) -> None:
        for field in fields(memoryview(data), at, end):
            if field.number == _OUTPUT_LINE and field.wire == BYTES:
                self._lines += data.count(b"\n", field.at, field.end)

    def _add_run(self, data: bytes, at: int, end: int) -> None:
        view = memoryview(data)
        resumed, step = False, 0
        for field in fields(view, at, end):
            if field.number in _RUN_NAMES and field.wire == BYTES:
                self._run[_RUN_NAMES[field.number]] = text(view, field.at, field.end)
            elif field.number == _RUN_CONFIG and field.wire == BYTES:
                self._config.add(data, field.at, field.end)
            elif field.number == _RUN_START and field.wire == BYTES:
                self._start_ns = self._history.start_ns = timestamp_ns(data, field.at, field.end)
            elif field.number == _RUN_RESUMED:
                resumed = bool(field.value)
            elif field.number == _RUN_STEP:
                step = signed(field.value)
        self._resumed_at = step if resumed else None

    def _add_environment(self, data: bytes, at: int, end: int) -> None:
        self._machine |= environment_record(data, at, end)

    def _add_exit(self, data: bytes, at: int, end: int) -> None:
        numbers = {f.number: f.value for f in fields(memoryview(data), at, end) if f.wire == VARINT}
        self._exit = signed(numbers.get(_EXIT_CODE, 0)), numbers.get(_EXIT_RUNTIME)

    def _marks(self) -> dict[str, pl.DataFrame]:
        """``start`` and ``finish``, or how else the run ended, as far as there are records of it."""
        rows: list[tuple[int | None, str, str]] = []
        if self._start_ns is not None:
            resumed = "" if self._resumed_at is None else f", resumed at step {self._resumed_at}"
            rows.append((self._start_ns, "start", f"W&B run started{resumed}"))
        if self._exit is not None:
            code, runtime_s = self._exit
            end_ns = None
            if self._start_ns is not None and runtime_s is not None and runtime_s < 2**31:
                end_ns = self._start_ns + runtime_s * SECOND_NS
            kind, meaning = ("finish", "") if code == 0 else ("crash", "")
            if code == INTERRUPTED:
                kind, meaning = "stop", " (interrupted from the keyboard)"
            rows.append((end_ns, kind, f"W&B run ended with exit code {code}{meaning}"))
        if not rows:
            return {}
        return {"marks": pl.DataFrame(rows, schema=_MARKS, orient="row")}

    def _lost(self, log: BlockLog) -> int:
        """Records in the damaged stretches: by their numbers, or else estimated from the bytes."""
        if not self._number:
            return _estimate(log, log.lost_bytes)
        before_end = log.lost_bytes - log.lost_tail_bytes
        return (
            max(self._missing, before_end > 0) + _estimate(log, log.lost_tail_bytes) if log.lost_bytes else 0
        )

    def _notes(self, log: BlockLog) -> Iterator[str]:
        if not log.good_records:
            yield "the run wrote nothing but the file header"
            return
        if not self._history.rows:
            yield "no history: the run logged no metrics"
        if self._exit is None:
            yield "no exit record: the run was killed or is still going on"
        if self._lines:
            yield f"{self._lines:,} lines of console output, which stand in output.log too, not read here"


def _estimate(log: BlockLog, size: int) -> int:
    """About how many records these bytes held, at least one."""
    if not size:
        return 0
    return max(1, round(size * log.good_records / log.good_bytes)) if log.good_bytes else 1


def _log_notes(log: BlockLog, lost: int, *, counted: bool) -> Iterator[str]:
    if log.false_header:
        yield "the file header is damaged"
    if log.lost_bytes:
        blocks = f"{log.damaged_blocks} damaged block{'s' if log.damaged_blocks != 1 else ''} of 32 KiB"
        records = f"{'' if counted else 'about '}{lost:,} record{'s' if lost != 1 else ''}"
        yield f"{blocks}: {log.lost_bytes:,} bytes with {records} skipped; the other blocks are intact"
    if log.oversize:
        yield f"{log.oversize} oversized record{'s' if log.oversize > 1 else ''} skipped"
    if log.cut_bytes:
        yield f"file ends inside a record (still written or cut): {log.cut_bytes:,} bytes left out"
    if log.zero_bytes:
        yield f"{log.zero_bytes:,} zero bytes, reserved but never written"
