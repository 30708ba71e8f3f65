"""Which columns of a wide table say where a row lies: step, epoch, tokens, wall clock.

Decided by name and by content on the first block of rows, so that the same file always gives the same
axes. Nothing is invented: where no column orders the rows, they have no step and keep their order alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.tables.cells import clock_unit_ns, moment, moments, whole

STEP_NAMES = (
    "global_step", "trainer/global_step", "train/global_step", "step", "train_step", "training_step",
    "iteration", "iter", "iterations", "iters", "it", "time/total_timesteps", "total_timesteps",
    "timesteps_total", "misc/total_timesteps", "timestepssofar", "num_timesteps", "timesteps", "timestep",
    "total_steps", "env_steps", "env_step", "num_env_steps_sampled", "training_iteration", "_step",
)  # fmt: skip
"""Names that count steps of the run, most telling first (blanks and dashes as ``_``, any case)."""

SOFT_STEP_NAMES = (
    "steps", "update", "updates", "num_updates", "batch", "batches", "batch_idx", "minibatch", "episode", "episodes",
    "round", "rounds", "generation",
)  # fmt: skip
"""Names that may count steps: taken where nothing better is there and the column hardly ever falls."""

EPOCH_NAMES = (
    "epoch", "trainer/epoch", "train/epoch", "epoch_id", "epoch_num", "epoch_number", "epoch_idx", "current_epoch",
    "_epoch", "epochs",
)  # fmt: skip

TOKEN_NAMES = (
    "num_input_tokens_seen", "tokens", "num_tokens", "total_tokens", "tokens_seen", "consumed_tokens", "train/tokens",
    "throughput/total_tokens",
)  # fmt: skip

WALL_NAMES = (
    "wall_time", "walltime", "wall", "timestamp", "_timestamp", "time", "datetime", "date_time", "date", "ts",
    "created_at", "unix_time", "time_stamp",
)  # fmt: skip

_BATCH_NAMES = frozenset({"batch", "batches", "batch_idx", "minibatch"})
_INDEX_NAME = re.compile(r"Unnamed: 0(\.1)?")

_MOSTLY = 0.9
_REPEATED = 1 / 3


@dataclass(frozen=True, slots=True)
class AxisRule:
    """Names to look for, most telling first; a dialect narrows them to what it writes."""

    step: tuple[str, ...] = STEP_NAMES
    soft_step: tuple[str, ...] = SOFT_STEP_NAMES
    epoch: tuple[str, ...] = EPOCH_NAMES
    tokens: tuple[str, ...] = TOKEN_NAMES
    wall: tuple[str, ...] = WALL_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisPlan:
    """Positions of the axis columns, None where there is none.

    ``step_is_epoch``: the epoch column also counts the steps. ``clock``: nanoseconds of one unit of the
    wall column, 0 where it holds dates as text. ``index``: a column that only numbers the rows.
    """

    step: int | None = None
    epoch: int | None = None
    tokens: int | None = None
    wall: int | None = None
    clock: int = 0
    index: int | None = None
    step_is_epoch: bool = False
    notes: tuple[str, ...] = ()

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of all axis columns."""
        return tuple(i for i in (self.step, self.epoch, self.tokens, self.wall, self.index) if i is not None)


@dataclass(frozen=True, slots=True)
class AxisColumns:
    """The axis columns of some rows: Int64, Float64, Int64, Int64 nanoseconds; None: not in the file."""

    step: pl.Series | None = None
    epoch: pl.Series | None = None
    tokens: pl.Series | None = None
    wall_ns: pl.Series | None = None


def flat(name: str) -> str:
    """A column name as the lists above spell it."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def is_wall_name(name: str) -> bool:
    """Whether a column of this name may hold moments."""
    return flat(name) in WALL_NAMES or "time" in name.lower() or "date" in name.lower()


def holds_moments(texts: Sequence[str]) -> bool:
    """Whether the words of a column are dates with times."""
    return bool(texts) and sum(moment(t) is not None for t in texts) >= _MOSTLY * len(texts)


def plan_axes(
    names: Sequence[str],
    values: Mapping[int, pl.Series],
    moment_columns: Sequence[int],
    rule: AxisRule,
    order: NDArray[np.int64] | None = None,
) -> AxisPlan:
    """The axes of a table. ``values``: Float64 columns by position; ``moment_columns``: dates as text.

    ``order``: rows of one curve after the other, where a column of words tells several curves apart.
    """
    spelled = [flat(n) for n in names]
    written = {i: s.to_numpy() for i, s in values.items()}
    numeric = written if order is None else {i: column[order] for i, column in written.items()}
    epoch = _pick(spelled, numeric, rule.epoch)
    notes: list[str] = []
    step = _step(spelled, numeric, epoch, rule)
    axes = {i for i in (step, epoch) if i is not None}
    if step is not None and epoch is not None and _restarts_each_epoch(numeric, step, epoch, axes):
        notes.append(f"{names[step]!r} starts again in every epoch, so it is no step; rows keep their order")
        step, within = None, True
    else:
        within = False
    index = _row_index(names, written)
    step_is_epoch = False
    if step is None and epoch is not None and not within:
        step_is_epoch = _counts_steps(numeric, epoch)
        if not step_is_epoch:
            notes.append(
                f"no column counts steps and {names[epoch]!r} stays the same over rows or has fractions"
            )
    elif step is None and epoch is None and index is not None:
        step = index
        notes.append("steps are those of the unnamed index column")
    elif step is None and epoch is None:
        notes.append("no column counts steps or epochs; rows keep their order")
    wall, clock = _wall(spelled, values, moment_columns, rule)
    return AxisPlan(
        step=step,
        epoch=epoch,
        tokens=_pick(spelled, numeric, rule.tokens),
        wall=wall,
        clock=clock,
        index=index,
        step_is_epoch=step_is_epoch,
        notes=tuple(notes),
    )


def axis_columns(plan: AxisPlan, values: Mapping[int, pl.Series], wall_text: pl.Series | None) -> AxisColumns:
    """Axis columns of one block by a plan made before. ``wall_text``: the column of dates, if that is it."""
    epoch = None if plan.epoch is None else values[plan.epoch].fill_nan(None)
    step = None if plan.step is None else whole(values[plan.step])
    if plan.step_is_epoch and epoch is not None:
        step = whole(epoch)
    wall = None
    if plan.wall is not None and plan.clock:
        wall = moments(values[plan.wall], plan.clock)
    elif wall_text is not None:
        wall = pl.Series([None if t is None else moment(t) for t in wall_text.to_list()], dtype=pl.Int64)
    tokens = None if plan.tokens is None else whole(values[plan.tokens])
    return AxisColumns(step, epoch, tokens, wall)


Numeric = Mapping[int, NDArray[np.float64]]


def _finite(column: NDArray[np.float64]) -> NDArray[np.float64]:
    return column[np.isfinite(column)]


def _pick(spelled: Sequence[str], numeric: Numeric, wanted: Sequence[str]) -> int | None:
    """The first wanted column with a number in it."""
    places: dict[str, int] = {}
    for i, have in enumerate(spelled):
        if have in wanted and i in numeric and len(_finite(numeric[i])):
            places.setdefault(have, i)
    return next((places[name] for name in wanted if name in places), None)


def _step(spelled: Sequence[str], numeric: Numeric, epoch: int | None, rule: AxisRule) -> int | None:
    """The column that counts steps: whole numbers, and hardly ever falling where the name is vague."""
    for name in (*rule.step, *rule.soft_step):
        i = _pick(spelled, numeric, (name,))
        if i is None:
            continue
        column = _finite(numeric[i])
        if np.mean(column == np.floor(column)) < _MOSTLY:
            continue
        if name in rule.soft_step and _wanders(numeric[i], None if epoch is None else numeric[epoch]):
            continue
        if name in _BATCH_NAMES and epoch is not None and not np.ptp(_finite(numeric[epoch])):
            continue  # a batch number within the one epoch seen so far
        return i
    return None


def _wanders(column: NDArray[np.float64], epoch: NDArray[np.float64] | None) -> bool:
    """Whether a column falls often, other than where the epoch moves on: a measure, not a counter."""
    rows = np.isfinite(column) if epoch is None else np.isfinite(column) & np.isfinite(epoch)
    falling = np.diff(column[rows]) < 0
    if epoch is not None:
        falling &= np.diff(epoch[rows]) <= 0
    return len(falling) > 0 and float(np.mean(falling)) > 1 - _MOSTLY


def _restarts_each_epoch(numeric: Numeric, step: int, epoch: int, axes: set[int]) -> bool:
    """Whether steps fall back wherever the epoch moves on, in every column with rows in two epochs.

    Looked at for each column apart: train and validation rows may count differently.
    """
    verdicts = []
    for i, column in numeric.items():
        if i in axes:
            continue
        rows = ~np.isnan(column) & np.isfinite(numeric[step]) & np.isfinite(numeric[epoch])
        rising = np.diff(numeric[epoch][rows]) > 0
        if rising.any():
            falling = np.diff(numeric[step][rows]) < 0
            verdicts.append((falling & rising).sum() > 0.5 * rising.sum())
    return bool(verdicts) and all(verdicts)


def _counts_steps(numeric: Numeric, epoch: int) -> bool:
    """Whether the epoch column can be the step: whole numbers, one row an epoch in every column."""
    epochs = _finite(numeric[epoch])
    if np.any(epochs != np.floor(epochs)):
        return False
    for i, column in numeric.items():
        own = _finite(numeric[epoch][~np.isnan(column)]) if i != epoch else epochs[:0]
        if len(own) > 1 and np.mean(np.diff(own) == 0) > _REPEATED:
            return False
    return True


def _row_index(names: Sequence[str], numeric: Numeric) -> int | None:
    """The unnamed first column that data frames write: 0, 1, 2, ... without a gap."""
    column = numeric.get(0)
    if column is None or not _INDEX_NAME.fullmatch(names[0]) or np.isnan(column).any():
        return None
    return 0 if column[0] in (0, 1) and bool(np.all(np.diff(column) == 1)) else None


def _wall(
    spelled: Sequence[str], values: Mapping[int, pl.Series], moment_columns: Sequence[int], rule: AxisRule
) -> tuple[int | None, int]:
    """The column that holds moments, and the nanoseconds of its unit (0: text)."""
    for name in rule.wall:
        for i, have in enumerate(spelled):
            if have != name:
                continue
            if i in moment_columns:
                return i, 0
            unit_ns = clock_unit_ns(values[i]) if i in values else None
            if unit_ns is not None:
                return i, unit_ns
    return (moment_columns[0], 0) if moment_columns else (None, 0)
