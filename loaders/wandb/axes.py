"""What the metrics of a W&B history are counted on: the x axis that the run defined, or the trainer's own counter.

``_step`` counts the calls of ``wandb.log``. Where a row also holds the trainer's step, that is the step of its
metrics: first the one that ``define_metric`` names for them, then one of a well-known name. A metric logged in rows
of its own takes the last value before. An axis counts for a metric only if it is whole, never falls and moves on from
point to point; all others stay with ``_step``.

Sources: ``MetricRecord`` in wandb/proto/wandb_internal.proto; globs have one ``*``, at the end, and the client writes
the axis into the rows itself where ``step_sync`` is set (core/internal/runmetric/runmetric.go).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.names import canonical
from afterrun.loaders.protowire import BYTES, fields, text
from afterrun.loaders.tables.axes import STEP_NAMES, flat
from afterrun.loaders.tables.cells import whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ADVANCING = 0.9
"""Share of the points of a metric at which its axis must have moved on."""

_INTERNAL = "_"
_NAME, _GLOB, _STEP_METRIC = 1, 2, 4
_KNOWN = {name: i for i, name in enumerate(n for n in STEP_NAMES if not n.startswith(_INTERNAL))}
_MAX_DEFINED = 10_000
_EXACT = 2.0**53


class HistoryAxes:
    """Decides the axis of every metric where it is first met, and keeps to it. One object for one history."""

    def __init__(self) -> None:
        self._defined: dict[str, str] = {}
        self._globs: dict[str, str] = {}
        self._chosen: dict[str, str | None] = {}
        self._last: dict[str, float] = {}
        self._counters: dict[str, Floats] = {}

    def define(self, data: bytes, at: int, end: int) -> None:
        """One ``MetricRecord``. Raises ``WireError`` where it is none."""
        view = memoryview(data)
        said = {
            f.number: text(view, f.at, f.end)
            for f in fields(view, at, end)
            if f.wire == BYTES and f.number < 5
        }
        axis, name, glob = (said.get(n, "") for n in (_STEP_METRIC, _NAME, _GLOB))
        if axis and len(self._defined) + len(self._globs) < _MAX_DEFINED:
            if name:
                self._defined[name] = axis
            elif glob:
                self._globs[glob.removesuffix("*")] = axis

    def place(
        self, names: Sequence[str], code: Ints, row: Ints, value: Floats, told: Floats
    ) -> dict[str, pl.Series]:
        """``step`` (Int64), and ``epoch`` (Float64) and ``tokens`` (Int64) where rows log them, one an entry.

        ``names[code]`` has ``value`` in row ``row``, rows ascending; ``told`` is the ``_step`` of every row, NaN where
        unknown.
        """
        seen = [names[i] for i in np.unique(code).tolist()]
        steps = self._named_counters([*self._last, *seen])
        others = {kind: self._first(kind, seen) for kind in ("epoch", "tokens")}
        wanted = {*steps, *(n for n in others.values() if n)}
        codes = {name: i for i, name in enumerate(names)}
        columns = {n: self._column(n, code == codes.get(n, -1), row, value, len(told)) for n in wanted}
        self._counters = {name: columns[name] for name in sorted(steps, key=_rank) if name in columns}
        placed = {"step": self.steps(names, code, row, told)}
        for kind, name in others.items():
            if name in columns:
                found = pl.Series(columns[name][row]).fill_nan(None)
                placed[kind] = found if kind == "epoch" else whole(found)
        return placed

    def steps(self, names: Sequence[str], code: Ints, row: Ints, told: Floats) -> pl.Series:
        """Int64 steps of ``names[code]`` in these rows of the entries that were placed last."""
        step: Floats = told[row]
        if self._counters and len(code):
            order = np.argsort(code, kind="stable")
            starts = np.flatnonzero(np.diff(code[order], prepend=-1))
            for mine in np.split(order, starts[1:]):
                axis = self._axis_of(names[int(code[mine[0]])], row[mine])
                if axis in self._counters:
                    step[mine] = self._counters[axis][row[mine]]
        return whole(pl.Series(step))

    def place_long(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows of ``metrics`` of an exported history, one entry after the other, on the axes of their metrics.

        Rows with the same ``_step`` in a row are one entry.
        """
        if frame.is_empty() or "step" not in frame.columns:
            return frame
        tags = frame["tag"]
        _, first, code = np.unique(tags.to_physical().to_numpy(), return_index=True, return_inverse=True)
        row = frame["step"].rle_id().to_numpy().astype(np.int64)
        told = np.full(int(row[-1]) + 1, np.nan)
        told[row] = frame["step"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        names = tags.gather(first).cast(pl.String).to_list()
        placed = self.place(names, code.astype(np.int64), row, frame["value"].to_numpy(), told)
        for name in ("epoch", "tokens"):
            if name in placed and name in frame.columns:
                placed[name] = frame[name].zip_with(frame[name].is_not_null(), placed[name])
        return frame.with_columns(**placed)

    def _named_counters(self, names: Sequence[str]) -> set[str]:
        defined = {*self._defined.values(), *self._globs.values()}
        return {n for n in names if not n.startswith(_INTERNAL) and (n in defined or flat(n) in _KNOWN)}

    def _first(self, kind: str, names: Sequence[str]) -> str | None:
        """The first tag that logs this axis, the same one in all parts of a history."""
        found = (n for n in (*self._last, *names) if canonical(n).metric == kind)
        return next(found, None)

    def _column(self, name: str, mine: NDArray[np.bool_], row: Ints, value: Floats, rows: int) -> Floats:
        """The value in each row, or the last one before it; NaN before the first."""
        column = np.full(rows, np.nan)
        column[row[mine]] = value[mine]
        filled = np.concatenate([[self._last.get(name, np.nan)], column])
        at = np.maximum.accumulate(np.where(np.isfinite(filled), np.arange(rows + 1), 0))
        filled = filled[at]
        self._last[name] = float(filled[-1])
        return filled[1:]

    def _axis_of(self, name: str, rows: Ints) -> str | None:
        if name not in self._chosen:
            known = (n for n in self._counters if flat(n) in _KNOWN)
            wanted = [] if name.startswith(_INTERNAL) else [self._given(name), *known]
            columns = ((n, self._counters[n][rows]) for n in wanted if n in self._counters)
            self._chosen[name] = next((n for n, x in columns if _counts(x)), None)
        return self._chosen[name]

    def _given(self, name: str) -> str | None:
        """The axis that the run defined for this metric; its own name goes before globs, these in order."""
        if name in self._defined:
            return self._defined[name]
        return next((axis for start, axis in self._globs.items() if name.startswith(start)), None)


def _rank(name: str) -> tuple[int, str]:
    return _KNOWN.get(flat(name), len(_KNOWN)), name


def _counts(x: Floats) -> bool:
    """Whether these are the steps of a metric: whole numbers that move on and never fall.

    Points before the axis was first logged have none, and then stay without a step; half of them at most.
    """
    known = x[np.isfinite(x)]
    if not len(known) or len(known) < 0.5 * len(x) or (known != np.floor(known)).any():
        return False
    if known[0] < 0 or known[-1] >= _EXACT:
        return False
    moves = np.diff(known)
    return not len(moves) or bool((moves >= 0).all() and np.mean(moves > 0) >= ADVANCING)
