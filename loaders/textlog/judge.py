"""Which rows of a text log count: what its first part shows decides, and then holds for the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from afterrun.loaders.names import canonical
from afterrun.loaders.textlog.rows import Rows, Tags

REPEATS = 3
"""Values of a tag, not all the same, from which lines in doubt count as metrics."""

REPEATED_EPOCHS = 1 / 3
"""Share of rows in the epoch of the row before from which the epoch does not count the rows of a tag."""

_CONSTANT_KINDS = frozenset({"rate", "axis"})
"""Kinds of metrics that may well stand still."""


@dataclass(slots=True)
class Judge:
    """Decides on rows. ``generic``: whether lines of no known trainer count at all."""

    generic: bool = True
    _trusted: set[int] = field(default_factory=set)
    _no_step: set[int] = field(default_factory=set)

    def look(self, parts: Sequence[Rows], tags: Tags) -> None:
        """Learn from the first rows of the file."""
        self._learn(parts, tags)
        by_epoch: dict[int, list[float]] = {}
        fractions = False
        for rows in parts:
            step, epoch = rows.events.step[rows.event], rows.events.epoch[rows.event]
            fractions = fractions or bool((np.isnan(step) & np.isfinite(epoch)).any())
            chosen = rows.events.by_epoch[rows.event]
            for code in np.unique(rows.tag[chosen]).tolist():
                by_epoch.setdefault(code, []).extend(epoch[chosen & (rows.tag == code)].tolist())
        for code, epochs in by_epoch.items():
            # among epochs with fractions those that happen to be whole are no steps either
            if fractions or (len(epochs) > 1 and np.mean(np.diff(epochs) == 0) > REPEATED_EPOCHS):
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
        if self._no_step and events.by_epoch.any():
            stuck = events.by_epoch[rows.event] & np.isin(rows.tag, list(self._no_step))
            rows = replace(rows, no_step=stuck)
        return rows

    def _learn(self, parts: Sequence[Rows], tags: Tags) -> None:
        """Trust the tags of sure lines, and those of doubtful lines that repeat and move."""
        doubtful: dict[int, list[float]] = {}
        for rows in parts:
            open_ = rows.events.doubtful[rows.event]
            self._trusted.update(np.unique(rows.tag[~open_]).tolist())
            for code in np.unique(rows.tag[open_]).tolist():
                if code not in self._trusted:
                    doubtful.setdefault(code, []).extend(rows.value[rows.tag == code].tolist())
        names = list(tags.codes)
        for code, values in doubtful.items():
            moves = len(set(values)) > 1 or not np.isfinite(values).all()
            constant = canonical(names[code]).kind in _CONSTANT_KINDS
            if len(values) >= REPEATS and (moves or constant):
                self._trusted.add(code)
