"""The records of a block in the order they were written, and where each of them lies.

One event is one record of one line. What a line does not say about its place is worked out here: a batch of an
epoch becomes a step, a line without a step takes that of the line before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from afterrun.loaders.textlog.grammar import Number
from afterrun.loaders.textlog.moments import NO_TIME, line_times
from afterrun.loaders.textlog.planner import Reading
from afterrun.loaders.textlog.tokens import Ints, Lines

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_EXACT = 2.0**53
_MOST_RECORDS = 1 << 10
_AXES = ("step", "steps", "epoch", "epochs", "batch", "batches", "tokens")


@dataclass(frozen=True, slots=True)
class Group:
    """All events of one record of one skeleton: the indices of their lines, and which record of the line it is."""

    reading: Reading
    lines: Ints
    place: int


@dataclass(slots=True)
class Events:
    """Columns of the events of a block, in the order of lines. NaN and ``NO_TIME``: not recorded.

    ``of_group[g]`` are the positions of the events of group ``g``. ``by_epoch``: the step is that of the epoch.
    """

    lines: Ints
    of_group: list[Ints]
    groups: Sequence[Group]
    alive: Bools
    step: Floats
    steps: Floats
    epoch: Floats
    epochs: Floats
    batch: Floats
    batches: Floats
    tokens: Floats
    rank: Floats
    wall: Ints
    by_epoch: Bools
    bar: Floats
    """Length of the progress bar that the event is a drawing of."""
    names: tuple[str, ...]
    """Scopes of the grammars of the block, ..."""
    grammar: Ints
    """... and which of them the event is of."""
    metric: Bools
    """Whether the event holds a metric, ..."""
    doubtful: Bools
    """... from a line that is not sure to, ..."""
    opens: Bools
    """... or opens a chain of lines that do, ..."""
    generic: Bools
    """... read by a grammar that is asked last."""

    def __len__(self) -> int:
        return len(self.lines)


def evaluate(lines: Lines, at: Ints, number: Number) -> Floats:
    """The values of a number at some lines; NaN where digits make no number."""
    if number.slot is None:
        return np.full(len(at), number.constant * number.scale)
    values = lines.column(at, number.slot)
    if number.over is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = values / lines.column(at, number.over)
    if number.scale == 1.0:
        return values
    # 1200.5 ms are 1.2005 s, and not the nearest number to 1200.5 times the nearest number to 0.001
    return values * number.scale if number.scale > 1.0 else values / round(1 / number.scale)


def gather(lines: Lines, groups: Sequence[Group], *, drawings: bool = False) -> Events:
    """The events of a block as the lines tell them. ``drawings``: every drawing of a bar counts, at its batch."""
    sizes = [len(g.lines) for g in groups]
    at = np.concatenate([g.lines for g in groups]) if groups else np.empty(0, np.int64)
    place = np.repeat([g.place for g in groups], sizes).astype(np.int64)
    order = np.argsort(at * _MOST_RECORDS + place, kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    bounds = np.cumsum([0, *sizes])
    columns = {name: np.full(len(at), np.nan) for name in (*_AXES, "rank", "bar")}
    wall = np.full(len(at), NO_TIME)
    flags = {
        name: np.zeros(len(at), np.bool_) for name in ("metric", "doubtful", "opens", "generic", "by_epoch")
    }
    of_group = []
    told: set[str] = set()
    names = tuple(dict.fromkeys(g.reading.grammar.scope for g in groups))
    grammar = np.zeros(len(at), np.int64)
    alive = np.ones(len(at), np.bool_)
    for g, group in enumerate(groups):
        mine = position[bounds[g] : bounds[g + 1]]
        of_group.append(mine)
        record = group.reading.record
        for name in _AXES:
            number = getattr(record.axes, name)
            if number is not None:
                columns[name][mine] = evaluate(lines, group.lines, number)
                told.add(name)
        if record.rank is not None:
            columns["rank"][mine] = evaluate(lines, group.lines, record.rank)
        if record.clock is not None:
            wall[mine] = line_times(lines, group.lines, record.clock)
        grammar[mine] = names.index(group.reading.grammar.scope)
        flags["metric"][mine] = bool(record.fields)
        if record.whole is not None:
            part, whole = (evaluate(lines, group.lines, number) for number in record.whole)
            columns["bar"][mine] = whole
            if drawings:
                columns["batch"][mine], columns["batches"][mine] = part, whole
                told |= {"batch", "batches"}
            else:
                alive[mine] = part == whole
        flags["doubtful"][mine] = not record.sure and group.reading.grammar.use != "own"
        flags["opens"][mine] = record.opens
        flags["generic"][mine] = group.reading.grammar.use == "generic"
    for name in told - {"epoch", "epochs"}:
        columns[name] = _whole(columns[name])
    return Events(
        lines=at[order], of_group=of_group, groups=groups, alive=alive, wall=wall, names=names, grammar=grammar, **columns,
        metric=flags["metric"], doubtful=flags["doubtful"], opens=flags["opens"], generic=flags["generic"],
        by_epoch=flags["by_epoch"],
    )  # fmt: skip


def _whole(values: Floats) -> Floats:
    """NaN where a number is not whole: no step."""
    with np.errstate(invalid="ignore"):
        return np.where((values == np.floor(values)) & (np.abs(values) < _EXACT), values, np.nan)


@dataclass(slots=True)
class _Within:
    """What is known of the epochs of one grammar: batches of each, number of the first, whether batches restart."""

    batches: float = np.nan
    base: float = np.nan
    restarts: bool | None = None
    epoch: float = np.nan
    batch: float = np.nan


@dataclass(slots=True)
class Placer:
    """Completes the axes of events; remembers what later blocks need."""

    evaluations: int = 0
    """Finished bars left out because they are not those of an epoch."""
    _bar: float = np.nan
    _last: dict[tuple[str, float], dict[str, float]] = field(default_factory=dict)
    _within: dict[str, _Within] = field(default_factory=dict)
    _open: bool = False
    _chain_wall: int = NO_TIME

    def place(self, events: Events, line_count: int) -> None:
        """Fill in step, epoch and time where they follow from other lines."""
        if not len(events):
            self._open = False if line_count else self._open
            return
        self._chain(events, line_count)
        self._inherit(events, ("epoch", "epochs", "tokens"))
        self._bars(events)
        for number in range(len(events.names)):
            self._epochs(events, number)
        self._inherit(events, ("step",))
        free = np.isfinite(events.epoch)
        if not free.any():
            return
        free &= np.isnan(events.step)
        whole = free & (events.epoch == np.floor(events.epoch))
        events.by_epoch = whole
        events.step = np.where(whole, events.epoch, events.step)

    def _chain(self, events: Events, line_count: int) -> None:
        """Chained lines count where the lines above lead up to the one that opens the chain."""
        chained, opens = _flag(events, "chained"), events.opens
        in_chain = np.zeros(line_count, np.bool_)
        in_chain[events.lines[chained]] = True
        head = np.where(in_chain, -1, np.arange(line_count))
        head = np.maximum.accumulate(head)
        opening = np.zeros(line_count + 1, np.bool_)
        opening[events.lines[opens]] = True
        opening[-1] = self._open  # of the block before, where ``head`` is -1
        events.alive &= ~chained | opening[head[events.lines]]
        if chained.any() or opens.any():
            times = np.full(line_count + 1, NO_TIME)
            times[events.lines[opens]] = events.wall[opens]
            times[-1] = self._chain_wall
            events.wall = np.where(chained, times[head[events.lines]], events.wall)
            self._chain_wall = int(times[head[-1]])
        self._open = bool(opening[head[-1]])

    def _bars(self, events: Events) -> None:
        """Of a bar drawn whole several times in one epoch the last drawing counts.

        The first bar below the line of an epoch is that of the epoch; one of another length is an evaluation
        after it, whose values have the names of the training.
        """
        finished = events.alive & np.isfinite(events.bar) & np.isnan(events.batch)
        bars = np.flatnonzero(finished & np.isfinite(events.epoch))
        if not len(bars):
            return
        opened = np.cumsum(~events.metric & np.isfinite(events.epoch))[bars]
        for number in np.unique(opened).tolist():
            mine = bars[opened == number]
            if number or np.isnan(self._bar):
                self._bar = float(events.bar[mine[0]])
            own = events.bar[mine] == self._bar
            self.evaluations += int(np.count_nonzero(~own))
            events.alive[mine[~own]] = False
            events.alive[mine[own][:-1]] = False

    def _epochs(self, events: Events, grammar: int) -> None:
        """Steps of batches within epochs, and of lines at the end of an epoch."""
        name = events.names[grammar]
        mine = events.alive & (events.grammar == grammar)
        state = self._within.setdefault(name, _Within())
        rows = np.flatnonzero(mine & np.isfinite(events.batch))
        if len(rows):
            epoch, batch, batches = events.epoch[rows], events.batch[rows], events.batches[rows]
            if np.isnan(state.base) and np.isfinite(epoch).any():
                state.base = min(1.0, float(epoch[np.isfinite(epoch)][0]))
            if state.restarts is None and events.generic[rows].any():  # known trainers count within the epoch
                state.restarts = _restarts(state, epoch, batch)
            state.epoch, state.batch = float(epoch[-1]), float(batch[-1])
            offset = np.zeros(len(rows)) if state.restarts is False else (epoch - state.base) * batches
            events.step[rows] = _whole(np.where(np.isfinite(offset), batch + offset, batch))
            self._remember_batches(events, state, rows)
        if name != "tqdm" and np.isfinite(state.batches) and state.restarts is not False:
            ends = np.flatnonzero(mine & _flag(events, "ends_epoch") & np.isfinite(events.epoch))
            ends = ends[np.isnan(events.step[ends])]
            events.step[ends] = _whole((events.epoch[ends] - state.base + 1) * state.batches)

    def _remember_batches(self, events: Events, state: _Within, rows: Ints) -> None:
        """Batches of an epoch, the largest told: a validation set has fewer."""
        told = events.batches[rows][np.isfinite(events.epoch[rows]) & np.isfinite(events.batches[rows])]
        if len(told):
            state.batches = float(np.nanmax([state.batches, told.max()]))

    def _inherit(self, events: Events, names: Sequence[str]) -> None:
        """Axes of lines that take those of the line before, of the same grammar and rank."""
        inherits = _flag(events, "inherits") & events.alive
        ranks = np.where(np.isnan(events.rank), -1.0, events.rank)
        for grammar, rank in _pairs(events.grammar, ranks):
            rows = np.flatnonzero((ranks == rank) & (events.grammar == grammar) & events.alive)
            last = self._last.setdefault((events.names[grammar], rank), {})
            for name in names:
                column = getattr(events, name)
                own = column[rows]
                told = np.flatnonzero(np.isfinite(own))
                if inherits[rows].any():
                    before = np.searchsorted(told, np.arange(len(rows)), side="right") - 1
                    here = own[told[before]] if len(told) else np.nan
                    known = np.where(before >= 0, here, last.get(name, np.nan))
                    column[rows] = np.where(np.isnan(own) & inherits[rows], known, own)
                if len(told):
                    last[name] = float(own[told[-1]])


def _restarts(state: _Within, epoch: Floats, batch: Floats) -> bool | None:
    """Whether batches begin again with each epoch, seen where the epoch first moves on; None: not yet seen."""
    e, b = np.concatenate([[state.epoch], epoch]), np.concatenate([[state.batch], batch])
    moves = np.flatnonzero((e[1:] > e[:-1]) & np.isfinite(b[1:]) & np.isfinite(b[:-1]))
    return bool(b[moves[0] + 1] <= b[moves[0]]) if len(moves) else None


def _pairs(grammar: Ints, rank: Floats) -> list[tuple[int, float]]:
    """The pairs that occur; mostly one, which is seen without sorting."""
    if (grammar == grammar[0]).all() and (rank == rank[0]).all():
        return [(int(grammar[0]), float(rank[0]))]
    found = np.unique(np.stack([grammar.astype(np.float64), rank]), axis=1)
    return [(int(g), float(r)) for g, r in found.T]


def _flag(events: Events, name: str) -> Bools:
    """Which events have a property of their record."""
    found = np.zeros(len(events), np.bool_)
    for group, mine in zip(events.groups, events.of_group, strict=True):
        if getattr(group.reading.record, name):
            found[mine] = True
    return found


def lead_in(parts: Sequence[Events]) -> None:
    """Lines before the first one with a step lie one step before it, where their record says so.

    ``parts`` are the first blocks of a file, in order.
    """
    waiting: dict[str, list[tuple[Events, Ints]]] = {}
    started: set[str] = set()
    for events in parts:
        early = _flag(events, "before_first") & events.alive & np.isnan(events.step)
        for number, name in enumerate(events.names):
            if name in started:
                continue
            mine = events.grammar == number
            steps = np.flatnonzero(mine & np.isfinite(events.step))
            open_ = np.flatnonzero(mine & early)
            first = int(steps[0]) if len(steps) else len(events)
            waiting.setdefault(name, []).append((events, open_[open_ < first]))
            if len(steps):
                started.add(name)
                for before, at in waiting[name]:
                    before.step[at] = events.step[first] - 1
