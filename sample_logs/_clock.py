"""A simulated clock, so that the script writes the same bytes every time.

Losses come from the training; times do not, because measured ones can never be repeated. A step is
given the durations of a small accelerator job: waiting for data and computing are drawn from log-normal
distributions with fixed seeds, the first step is longer, an evaluation stops the training for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

START_S = datetime(2026, 1, 12, 9, 0, tzinfo=UTC).timestamp()
"""When every sample run began, seconds since 1970."""

DATA_S = 0.003
COMPUTE_S = 0.090
EVALUATION_S = 0.8
START_UP_S = 6.0


@dataclass
class Clock:
    """Time of the simulated machine, in ``now_s``. Its draws are its own: they touch no training."""

    seed: int
    now_s: float = START_S
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def start(self) -> None:
        """Process start to first step."""
        self._pass(START_UP_S, 0.05)

    def stand_still(self, seconds: float) -> None:
        """Nothing runs for a while."""
        self.now_s += seconds

    def step(self) -> tuple[float, float]:
        """One training step: seconds in all, and the part spent waiting for data."""
        data_s = self._pass(DATA_S, 0.20)
        return data_s + self._pass(COMPUTE_S, 0.02), data_s

    def evaluate(self) -> float:
        """One pass over the validation split, in seconds."""
        return self._pass(EVALUATION_S, 0.05)

    def _pass(self, median_s: float, spread: float) -> float:
        seconds = median_s * float(np.exp(self.rng.normal(0, spread)))
        self.now_s = round(self.now_s + seconds, 6)
        return seconds
