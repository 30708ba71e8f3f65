"""One pass over a text log: blocks in, rows of ``metrics``, ``marks`` and ``params`` out, in bounded memory.

The first ``PROBE_BYTES`` are read before anything is given out: they show which grammars the file speaks. A grammar
that appears only later is recognised there; what the first part decided stays.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import polars as pl

from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.ahead import ahead
from afterrun.loaders.textlog.clean import Block, Damage
from afterrun.loaders.textlog.events import Events, Group, Placer, gather, lead_in
from afterrun.loaders.textlog.failures import Mark, MarkFinder, Progress, one_line
from afterrun.loaders.textlog.judge import Judge
from afterrun.loaders.textlog.moments import NO_TIME, line_times
from afterrun.loaders.textlog.planner import Plan, Planner, Reading
from afterrun.loaders.textlog.rows import Rows, Tags, make_rows, to_frame
from afterrun.loaders.textlog.signatures import FAILURES, MACHINE
from afterrun.loaders.textlog.spanning import joined
from afterrun.loaders.textlog.tokens import Ints, Lines, tokenise

PROBE_BYTES = 4 * 2**20
"""How much of a file decides which grammars it speaks."""

OWN_LINES = 3
"""Metric lines of a trainer's own format from which generic lines beside them are prose."""

MAX_PARAMS = 2_000
"""Settings kept of one file."""


@dataclass(slots=True)
class _Part:
    """What one block holds before it is judged."""

    lines: Lines
    events: Events
    rows: Rows
    suspicious: list[Ints]
    tracebacks: Ints
    notices: list[Mark]
    clocks: list[tuple[Ints, Plan]]


@dataclass(slots=True)
class _Plans:
    """Planned lengths the lines tell, and where they were reached."""

    steps: float = np.nan
    epochs: float = np.nan
    reached: Mark | None = None

    def see(self, events: Events, lines: Lines) -> None:
        """Take the plans of a block."""
        holds = events.metric | events.opens
        alive = np.flatnonzero(events.alive & (holds | ~events.generic))
        for name, axis, word in (("steps", "step", "step"), ("epochs", "epoch", "epoch")):
            told = getattr(events, name)[alive]
            rows = alive[np.isfinite(told)]
            if not len(rows):
                continue
            setattr(self, name, float(getattr(events, name)[rows[-1]]))
            rows = rows[holds[rows]]
            if not len(rows):
                continue
            last = rows[-1]
            planned, got = float(getattr(events, name)[last]), float(getattr(events, axis)[last])
            inside = events.batch[last] < events.batches[last]
            if got >= planned > 0 and not inside:
                step = events.step[last]
                self.reached = Mark(
                    line=int(lines.numbers[events.lines[last]]),
                    kind="finish",
                    text=f"{word} {got:.0f} of {planned:.0f} was reached",
                    step=int(step) if np.isfinite(step) else None,
                    t_ns=None if events.wall[last] == NO_TIME else int(events.wall[last]),
                )
            else:
                self.reached = None

    def params(self) -> dict[str, str]:
        """The plans as parameters."""
        told = {"max_steps": self.steps, "epochs": self.epochs}
        return {key: json.dumps(int(v)) for key, v in told.items() if np.isfinite(v) and v > 0}


@dataclass(slots=True)
class TextLogReader:
    """Reads the blocks of one file once. ``damage`` is that of the blocks.

    ``metric_lines`` (``sure_lines``: in the words of a trainer) and ``failures`` count what was found so far, of
    messages those that no person wrote;
    ``unfinished`` the drawings of progress bars on their way, which count only (``drawings``) where no bar of the
    first part of the file came to its end.
    """

    blocks: Iterable[Block]
    damage: Damage = field(default_factory=Damage)
    drawings: bool = False
    metric_lines: int = 0
    sure_lines: int = 0
    failures: int = 0
    unfinished: int = 0
    _planner: Planner = field(default_factory=Planner)
    _placer: Placer = field(default_factory=Placer)
    _marks: MarkFinder = field(default_factory=MarkFinder)
    _judge: Judge = field(default_factory=Judge)
    _tags: Tags = field(default_factory=Tags)
    _plans: _Plans = field(default_factory=_Plans)
    _params: dict[str, str] = field(default_factory=dict)
    _streak: str | None = None
    _lines_of: Counter[str] = field(default_factory=Counter)
    _own_lines: int = 0
    _seq: int = 0
    _timed: bool = False
    _half: int | None = None
    _finished: int = 0
    _seen: set[str] = field(default_factory=set)

    def batches(self) -> Iterator[Batch]:
        """Everything in the file. Raises ``OSError`` where it cannot be read."""
        blocks = iter(joined(self.blocks))
        first, size = [], 0
        for block in blocks:
            first.append(block)
            size += len(block.data)
            if size >= PROBE_BYTES:
                break
        parts = [self._part(block, tokenise(block)) for block in first]
        if self.unfinished and not self._finished and not self.drawings:
            again = TextLogReader(chain(first, blocks), self.damage, drawings=True)
            yield from again.batches()
            self.metric_lines, self.failures = again.metric_lines, again.failures
            self.sure_lines = again.sure_lines
            return
        yield from self._release(parts)
        del first, parts
        for block, lines in ahead(blocks, tokenise):
            yield self._batch(self._part(block, lines))
        yield self._end()

    def _release(self, parts: list[_Part]) -> Iterator[Batch]:
        """Judge the first part of the file, then give it out."""
        if parts:
            lead_in([p.events for p in parts])
            self._judge.generic = self._own_lines < OWN_LINES
            self._judge.look([p.rows for p in parts], self._tags)
        for part in parts:
            yield self._batch(part)

    def _part(self, block: Block, lines: Lines) -> _Part:
        groups: list[Group] = []
        suspicious, tracebacks, clocks = [], [], []
        for skeleton, at in lines.groups:
            plan = self._planner.plan(skeleton)
            readings = plan.readings
            if block.cut and readings and at[-1] == len(lines.numbers) - 1:
                at = self._without_half(lines, skeleton, at)  # noqa: PLW2901  # the last line is not whole
            groups += [Group(reading, at, i) for i, reading in enumerate(readings) if len(at)]
            if plan.suspicious:
                suspicious.append(at)
                clocks.append((at, plan))
            if plan.traceback:
                tracebacks.append(at)
                clocks.append((at, plan))
            if readings and any(r.record.params for r in readings):
                self._take_params(lines, at, readings)
            if len(self._seen) < 10_000:
                self._seen.add(skeleton)
        events = gather(lines, groups, drawings=self.drawings)
        self._placer.place(events, len(lines.numbers))
        self._plans.see(events, lines)
        self._count(events)
        return _Part(
            lines=lines,
            events=events,
            rows=make_rows(lines, events, self._tags),
            suspicious=suspicious,
            tracebacks=np.sort(np.concatenate(tracebacks)) if tracebacks else np.empty(0, np.int64),
            notices=self._notices(events),
            clocks=clocks,
        )

    def _count(self, events: Events) -> None:
        """Book the metric lines of each grammar."""
        for group, mine in zip(events.groups, events.of_group, strict=True):
            grammar, record = group.reading.grammar, group.reading.record
            if record.fields:
                alive = int(np.count_nonzero(events.alive[mine]))
                self._lines_of[grammar.name] += alive
                if record.whole is not None:
                    self._finished += alive
                    self.unfinished += len(mine) - alive
                self._own_lines += alive if grammar.use == "own" and record.sure else 0

    def _without_half(self, lines: Lines, skeleton: str, at: Ints) -> Ints:
        """The lines of a skeleton but the last of the file, where that breaks off within its last number.

        A line that looks like others before it is taken for whole.
        """
        known = skeleton in self._seen or len(at) > 1
        if known or not skeleton.endswith("\x01"):
            return at
        self._half = int(lines.numbers[-1])
        return at[:-1]

    def _take_params(self, lines: Lines, at: Ints, readings: tuple[Reading, ...]) -> None:
        for line in at[: MAX_PARAMS - len(self._params)].tolist():
            for grammar in {r.grammar.name: r.grammar for r in readings}.values():
                for key, value in grammar.params(lines.text(line)):
                    self._params[key] = one_line(value)

    def _notices(self, events: Events) -> list[Mark]:
        """Marks of grammars, at the first line of each stretch of lines that say the same."""
        said = [""] * len(events)
        texts: dict[str, tuple[str, str]] = {}
        for group, mine in zip(events.groups, events.of_group, strict=True):
            notice = group.reading.record.notice
            if notice is not None:
                texts["\0".join(notice)] = notice
                for i in mine.tolist():
                    said[i] = "\0".join(notice)
        if not texts and self._streak is None:
            return []
        marks = []
        for i in np.flatnonzero(events.alive).tolist():
            if said[i] and said[i] != self._streak:
                kind, text = texts[said[i]]
                step = events.step[i]
                wall = None if events.wall[i] == NO_TIME else int(events.wall[i])
                whole = int(step) if np.isfinite(step) and not events.by_epoch[i] else None
                marks.append(Mark(int(events.lines[i]), kind, text, whole, wall))
            self._streak = said[i] or None
        return marks

    def _batch(self, part: _Part) -> Batch:
        """One block, judged."""
        rows = self._judge.keep(part.rows, self._tags)
        first = rows.first_of_event()
        self.metric_lines += len(first)
        at = rows.event[first]
        self.sure_lines += int(np.count_nonzero(~(part.events.doubtful | part.events.generic)[at]))
        steps = np.where(part.events.doubtful[at], part.events.step[at], rows.steps()[first])
        progress = Progress(part.events.lines[at], steps)
        marks = self._marks.find(part.lines, part.suspicious, part.tracebacks, part.notices, progress)
        self.failures += sum(m.kind in FAILURES and MACHINE.search(m.text) is not None for m in marks)
        frames: dict[str, pl.DataFrame] = {}
        if len(rows):
            frames["metrics"] = to_frame(rows, self._tags, self._seq)
            self._seq += len(rows)
            self._timed = self._timed or "wall_ns" in frames["metrics"].columns
        if marks:
            frames["marks"] = _mark_frame(marks, _times(part))
        return Batch(frames=frames)

    def _end(self) -> Batch:
        """Marks and settings of the whole file, and what was lost."""
        frames: dict[str, pl.DataFrame] = {}
        marks = self._marks.end()
        self.failures += sum(m.kind in FAILURES for m in marks)
        if self._plans.reached is not None and self._seq:
            marks.append(self._plans.reached)
        if marks:
            frames["marks"] = _mark_frame(marks, {})
        params = {**self._params, **(self._plans.params() if self._seq else {})}
        if params:
            frames["params"] = pl.DataFrame({"key": [*params], "value": [*params.values()]})
        notes = [*self.damage.notes(), *self._marks.notes()]
        if self._half is not None:
            notes.append(f"the file ends in the middle of line {self._half}, which was left out")
        if self._seq:
            names = ", ".join(name for name, _ in self._lines_of.most_common() if self._counts(name))
            notes.insert(0, f"lines of {names}")
        if self.drawings and self._seq:
            notes.append(
                "no epoch came to its end: values are those its progress bar showed on the way, by batch"
            )
        if extra := self._placer.evaluations:
            bars = "bar of an evaluation" if extra == 1 else "bars of evaluations"
            notes.append(f"{extra} {bars} after an epoch left out: the names are those of the training")
        if self._timed:
            notes.append("times without a zone are taken for UTC")
        return Batch(frames=frames, damaged=self.damage.lines + (self._half is not None), notes=tuple(notes))

    def _counts(self, name: str) -> bool:
        return self._lines_of[name] > 0 and (name != "key_value" or self._judge.generic)


def _times(part: _Part) -> dict[int, int]:
    """Time of suspicious lines by their number, from the prefix of each."""
    found: dict[int, int] = {}
    for at, plan in part.clocks:
        if plan.clock is not None:
            times = line_times(part.lines, at, plan.clock)
            numbers = part.lines.numbers[at]
            found.update((int(n), int(t)) for n, t in zip(numbers, times, strict=True) if t != NO_TIME)
    return found


def _mark_frame(marks: list[Mark], times: dict[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "t_ns": pl.Series([m.t_ns or times.get(m.line) for m in marks], dtype=pl.Int64),
            "step": pl.Series([m.step for m in marks], dtype=pl.Int64),
            "line": pl.Series([m.line for m in marks], dtype=pl.Int64),
            "kind": [m.kind for m in marks],
            "text": [m.text for m in marks],
        }
    )
