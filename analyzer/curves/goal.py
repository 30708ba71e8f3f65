"""How far a run was meant to go, and how far it went: planned steps or epochs against the recorded axis."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from afterrun.analyzer.series import Series
from afterrun.analyzer.stats import Array
from afterrun.analyzer.view import RunView

Unit = Literal["steps", "epochs"]

STEP_KEYS = (
    "max_steps",
    "num_training_steps",
    "total_train_steps",
    "train_iters",
    "max_iters",
    "max_iter",
    "num_iterations",
    "total_iterations",
    "total_iters",
    "total_steps",
    "num_steps",
    "train_steps",
    "max_update",
    "max_updates",
    "max_train_steps",
)
"""Last part of a parameter's name that plans steps, the most binding first."""

EPOCH_KEYS = (
    "num_train_epochs",
    "max_epochs",
    "max_epoch",
    "epochs",
    "num_epochs",
    "n_epochs",
    "total_epochs",
    "train_epochs",
)

REACHED_KEYS = ("global_step",)
"""Steps a state file says were made: exact where the log has every tenth only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One planned length and what was reached of it."""

    key: str
    unit: Unit
    planned: float
    reached: float
    tolerance: float
    """Distance from the plan that the recording interval and the counting from 0 leave open."""

    @property
    def met(self) -> bool:
        """Whether the plan was carried out, as far as the record can tell."""
        return self.reached >= self.planned - self.tolerance

    @property
    def missing_pct(self) -> float:
        """Part of the plan that was not done, in percent."""
        return 100.0 * max(0.0, 1.0 - self.reached / self.planned)


def goals(view: RunView, s: Series | None) -> list[Goal]:
    """All planned lengths of the run that the record can be held against; ``s`` is its main curve."""
    found = []
    steps = _planned(view, STEP_KEYS)
    if steps is not None:
        reached = _reached_step(view, s)
        if reached is not None:
            found.append(_goal("steps", steps, *reached))
    epochs = _planned(view, EPOCH_KEYS)
    if epochs is not None and s is not None and not (found and _steps_win(found[0].key, epochs[0])):
        axis = _epochs(view, s, epochs[1])
        if axis is not None:
            found.append(_goal("epochs", epochs, float(axis[-1]), _grain(axis)))
    return found


def _steps_win(steps: str, epochs: str) -> bool:
    """Whether both are arguments of the Hugging Face Trainer, where max_steps overrides num_train_epochs."""
    return _last_part(steps) == "max_steps" and _last_part(epochs) == "num_train_epochs"


def _last_part(name: str) -> str:
    return name.rsplit(".", 1)[-1].lower().replace("-", "_")


def _goal(unit: Unit, planned: tuple[str, float], reached: float, tolerance: float) -> Goal:
    return Goal(key=planned[0], unit=unit, planned=planned[1], reached=reached, tolerance=tolerance)


def _planned(view: RunView, keys: tuple[str, ...]) -> tuple[str, float] | None:
    """The first of these parameters that holds a number above 0 (-1 and 0 mean: not set)."""
    by_name = {_last_part(name): name for name in reversed(view.params)}
    for key in keys:
        value = _number(view.params.get(by_name.get(key, "")))
        if value is not None and value > 0:
            return by_name[key], value
    return None


def _number(text: str | None) -> float | None:
    try:
        value = json.loads(text or "null")
        number = (
            float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
        )
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _reached_step(view: RunView, s: Series | None) -> tuple[float, float] | None:
    """(highest step, tolerance): from the state file where it says so, else from the curves."""
    told = [v for k in REACHED_KEYS if (v := _number(view.params.get(k))) is not None]
    if told:
        return max(told), 0.0
    if s is None or not s.has_step:
        return None
    last = max(float(c.x[-1]) for c in view.lead if c.has_step and c.split in (s.split, "none"))
    return last, _grain(s.x)


def _epochs(view: RunView, s: Series, planned: float) -> Array | None:
    """Epochs of the recorded points: the epoch column, else the step where it can only be an epoch."""
    found = [c.epoch for c in view.lead if c.epoch is not None and len(c.epoch)]
    finite = [np.maximum.accumulate(e[np.isfinite(e)]) for e in found]
    finite = [e for e in finite if len(e)]
    if finite:
        return max(finite, key=lambda e: float(e[-1]))
    one_each = s.has_step and len(s) > 1 and bool((np.diff(s.x) == 1.0).all())
    return s.x if one_each and s.x[-1] <= planned else None


def _grain(axis: Array) -> float:
    """How much may lie after the last record: one recording interval, and 1 where counting began at 0.

    A whole-numbered axis of neighbours that begins at 1 or later leaves nothing open: its last record
    is the last step or epoch itself.
    """
    apart = np.diff(axis)
    ahead = apart[apart > 0]
    interval = float(np.median(ahead)) if len(ahead) else 0.0
    whole = bool((axis == np.floor(axis)).all())
    if whole and interval <= 1.0:
        return 1.0 if axis[0] == 0 else 0.0
    return interval * (1.0 - 1e-9)
