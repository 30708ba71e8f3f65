"""Which rows of a text log count: what its first part shows decides, and then holds for the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from afterrun.loaders.names import canonical
from afterrun.loaders.textlog.events import Bools, Events
from afterrun.loaders.textlog.rows import Codes, Rows, Tags

REPEATS = 3
"""Values of a tag, not all the same, from which lines in doubt count as metrics."""

REPEATED_EPOCHS = 1 / 3
"""Share of rows in the epoch of the row before from which the epoch does not count the rows of a tag."""

MOSTLY = 0.5
"""Share of the moves to a next epoch at which a step falls back, if it counts within the epoch."""

_CONSTANT_KINDS = frozenset({"rate", "axis"})
"""Kinds of metrics that may well stand still."""


@dataclass(slots=True)
class Judge:
    """Decides on rows. ``generic``: whether lines of no known trainer count at all."""

    generic: bool = True
    _trusted: set[int] = field(default_factory=set)
    _no_step: set[int] = field(default_factory=set)
    _restarting: bool = False

    def look(self, parts: Sequence[Rows], tags: Tags) -> None:
        """Learn from the first rows of the file."""
        self._learn(parts, tags)
        self._restarting = _steps_restart([rows.events for rows in parts])
        epochs, tag, fractions = [np.empty(0)], [np.empty(0, np.int32)], False
        for rows in parts:
            step, epoch = rows.events.step[rows.event], rows.events.epoch[rows.event]
            fractions = fractions or bool((np.isnan(step) & np.isfinite(epoch)).any())
            chosen = rows.events.by_epoch[rows.event]
            epochs.append(epoch[chosen])
            tag.append(rows.tag[chosen])
        all_epochs, all_tags = np.concatenate(epochs), np.concatenate(tag)
        for code in _codes(all_tags):
            apart = np.diff(all_epochs[all_tags == code])
            # among epochs with fractions those that happen to be whole are no steps either
            if fractions or (len(apart) and np.mean(apart == 0) > REPEATED_EPOCHS):
                self._no_step.add(code)

    def keep(self, rows: Rows, tags: Tags) -> Rows:
        """The rows that count, steps taken off where the epoch is none."""
        events = rows.events
        kept = np.ones(len(rows), np.bool_)
        if events.doubtful.any():
            self._learn([rows], tags)
            kept = ~events.doubtful[rows.event] | np.isin(rows.tag, list(self._trusted))
        if not self.generic and events.generic.any():
            kept &= ~events.generic[rows.event]
        rows = rows.where(kept)
        # bars without a metric say how far some loop is, not which one
        no_step = (events.doubtful & ~events.generic)[rows.event]
        if self._no_step and events.by_epoch.any():
            no_step |= events.by_epoch[rows.event] & np.isin(rows.tag, list(self._no_step))
        if self._restarting:
            no_step |= _loose(events)[rows.event]
        return replace(rows, no_step=no_step) if no_step.any() else rows

    def _learn(self, parts: Sequence[Rows], tags: Tags) -> None:
        """Trust the tags of doubtful lines that repeat and move."""
        doubtful: dict[int, list[float]] = {}
        for rows in parts:
            open_ = rows.events.doubtful[rows.event]
            for code in _codes(rows.tag[open_]):
                if code not in self._trusted:
                    doubtful.setdefault(code, []).extend(rows.value[open_ & (rows.tag == code)].tolist())
        names = list(tags.codes)
        for code, values in doubtful.items():
            moves = len(set(values)) > 1 or not np.isfinite(values).all()
            constant = canonical(names[code]).kind in _CONSTANT_KINDS
            if len(values) >= REPEATS and (moves or constant):
                self._trusted.add(code)


def _loose(events: Events) -> Bools:
    """Events of unknown trainers with an epoch and a step that says not of how many."""
    return events.generic & np.isfinite(events.epoch) & np.isnan(events.batch) & ~events.by_epoch


def _steps_restart(parts: Sequence[Events]) -> bool:
    """Whether such steps fall back wherever the epoch moves on, so that they count within it."""
    pairs = [np.stack([e.epoch, e.step])[:, _loose(e) & np.isfinite(e.step)] for e in parts]
    epoch, step = np.diff(np.concatenate(pairs, axis=1)) if pairs else np.empty((2, 0))
    moves = epoch > 0
    return bool(moves.any()) and bool(np.mean(step[moves] < 0) > MOSTLY)


def _codes(tag: Codes) -> list[int]:
    """The numbers that occur, without sorting the rows."""
    found: list[int] = np.flatnonzero(np.bincount(tag)).tolist()
    return found
