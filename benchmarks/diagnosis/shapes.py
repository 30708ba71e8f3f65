"""What curves are made of: descents, learning-rate schedules, noise. All arrays have one value a logged row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Dice = np.random.Generator

NOISES = ("white", "correlated", "heavy")


def noise(dice: Dice, n: int, sd: float, kind: str = "white") -> Floats:
    """Factors around 1 with relative standard deviation ``sd``.

    ``correlated``: AR(1) with a coefficient of 0.5 to 0.9; ``heavy``: Student's t with 4 degrees of freedom.
    """
    if kind == "heavy":
        e = np.clip(dice.standard_t(4, n) / math.sqrt(2), -6, 6)
    elif kind == "correlated":
        rho = dice.uniform(0.5, 0.9)
        weights = rho ** np.arange(math.ceil(math.log(1e-4) / math.log(rho)))
        e = np.convolve(dice.normal(size=n + len(weights) - 1), weights, "valid") * math.sqrt(1 - rho * rho)
    else:
        e = dice.normal(size=n)
    return np.exp(sd * e - sd * sd / 2)


def descent(dice: Dice, n: int) -> Floats:
    """From 1 towards 0: a power law, two exponentials, or a plateau of the start that breaks (a late descent)."""
    t = np.arange(n) / n
    tau = dice.uniform(0.03, 0.15)
    kind = dice.integers(3)
    if kind == 0:
        y = (1 + t / tau) ** -dice.uniform(0.5, 1.1)
    elif kind == 1:
        y = 0.8 * np.exp(-t / tau) + 0.2 * np.exp(-t / (4 * tau))
    else:
        y = 0.7 / (1 + np.exp((t - dice.uniform(0.05, 0.12)) / 0.015)) + 0.3 * np.exp(-t / (3 * tau))
    end = y[-1] * dice.uniform(0.7, 0.95)
    return np.asarray((y - end) / (y[0] - end))


def warmup(n: int, rows: int) -> Floats:
    """A straight line from nearly 0 to 1."""
    return np.minimum(1.0, (np.arange(n) + 1) / max(1, rows))


def _cosine(_: Dice, x: Floats) -> Floats:
    return 0.5 * (1 + np.cos(np.pi * x))


def _staircase(dice: Dice, x: Floats) -> Floats:
    return 0.1 ** np.searchsorted(np.sort(dice.uniform(0.4, 0.9, 2)), x, side="right").astype(np.float64)


def _stable_then_decay(dice: Dice, x: Floats) -> Floats:
    return np.clip((1 - x) / dice.uniform(0.1, 0.25), 0, 1)


def _restarts(dice: Dice, x: Floats) -> Floats:
    return 0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * ((x * dice.integers(2, 5)) % 1)))


SCHEDULES: Mapping[str, Callable[[Dice, Floats], Floats]] = {
    "constant": lambda _, x: np.ones(len(x)),
    "linear": lambda _, x: 1 - x,
    "cosine": _cosine,
    "cosine_floor": lambda _, x: 0.1 + 0.45 * (1 + np.cos(np.pi * x)),
    "staircase": _staircase,
    "stable_decay": _stable_then_decay,
    "restarts": _restarts,
}
"""Share of the peak over the share of the run after warm-up."""


def schedule(dice: Dice, n: int, kind: str) -> Floats:
    """A learning rate with a warm-up of 2 to 6 % of the run and a peak between 3e-5 and 3e-3."""
    peak = 10 ** dice.uniform(-4.5, -2.5)
    rows = max(2, int(n * dice.uniform(0.02, 0.06)))
    x = np.clip((np.arange(n) - rows) / max(1, n - rows), 0, 1)
    return np.asarray(peak * warmup(n, rows) * SCHEDULES[kind](dice, x))


def falls(lr: Floats) -> Ints:
    """Rows at which a schedule drops at once by half or more."""
    return np.flatnonzero(lr[1:] < 0.5 * lr[:-1]) + 1


def rises(lr: Floats) -> Ints:
    """Rows at which a schedule jumps up at once to twice its value or more, warm-up left out."""
    at = np.flatnonzero(lr[1:] > 2 * lr[:-1]) + 1
    return at[at > 0.1 * len(lr)]


def fading(n: int, at: int, rows: float) -> Floats:
    """0 before ``at``, 1 there, then falling by e every ``rows``."""
    t = np.arange(n) - at
    return np.where(t < 0, 0.0, np.exp(-np.maximum(t, 0) / max(rows, 1e-9)))


def ramp(n: int, at: int, end: int | None = None) -> Floats:
    """0 before ``at``, 1 from ``end`` (the last row) on, a straight line between."""
    end = n - 1 if end is None else end
    return np.clip((np.arange(n) - at) / max(1, end - at), 0.0, 1.0)
