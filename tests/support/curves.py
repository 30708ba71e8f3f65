"""Curves with a known answer: descents, schedules and noise from a seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def noise(rng: np.random.Generator, n: int, sd: float, rho: float = 0.0) -> Array:
    """AR(1) noise with marginal standard deviation ``sd``."""
    e = rng.normal(0.0, 1.0, n)
    for i in range(1, n):
        e[i] = rho * e[i - 1] + np.sqrt(1.0 - rho * rho) * e[i]
    return sd * e


def power_law(n: int, start: float = 8.0, floor: float = 2.0) -> Array:
    """A healthy descent that slows down smoothly."""
    return floor + (start - floor) * (1.0 + np.arange(n) / n / 0.05) ** -0.7


def wall(n: int, at: float, start: float = 8.0, level: float = 5.0) -> Array:
    """A descent that reaches ``level`` at the share ``at`` of the run and stays there."""
    left = 1.0 - np.clip(np.arange(n) / n / at, 0.0, 1.0)
    return level + (start - level) * left**2


def constant_lr(n: int, peak: float = 3e-4, warmup: int = 10) -> Array:
    """Warm-up and then the peak to the end."""
    return peak * np.minimum(1.0, (np.arange(n) + 1) / warmup)


def cosine_lr(n: int, peak: float = 3e-4, warmup: int = 10) -> Array:
    """Warm-up and then half a cosine to zero."""
    t = np.clip((np.arange(n) - warmup) / (n - warmup), 0.0, 1.0)
    return constant_lr(n, peak, warmup) * 0.5 * (1.0 + np.cos(np.pi * t))


def linear_lr(n: int, planned: int, peak: float = 3e-4) -> Array:
    """A straight line to zero at ``planned`` points, and zero after that."""
    return peak * np.clip(1.0 - np.arange(n) / planned, 0.0, 1.0)
