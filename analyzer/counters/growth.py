"""Whether memory grows without end: the floor after frees, block by block (algorithms section 13).

Used memory saws up and down with every step and evaluation. What a leak raises is the floor, so each of ``BLOCKS``
equal stretches gives its minimum, and the floors are tested for a rise. Growth that slows down (caches that fill) is
told from growth that goes on by the slope of the last third against the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterrun.analyzer.counters.series import CounterSeries
from afterrun.analyzer.stats import trend

WARM_UP = 0.1
"""Share of the record that is left out at its start: loading, first allocations."""

BLOCKS = 24
MIN_BLOCK = 3
"""Fewest samples in a block."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Rise of the floor. ``per_s`` bytes a second (a sample, without a clock); ``late`` the slope of the last third over the whole slope."""

    first: float
    last: float
    rise: float
    per_s: float
    low_per_s: float
    high_per_s: float
    p: float
    late: float
    samples: int


def growth(s: CounterSeries) -> Growth | None:
    """The growth of a series of bytes; None where it is too short."""
    work = s.part(int(WARM_UP * len(s)))
    size = len(work) // BLOCKS
    if size < MIN_BLOCK:
        return None
    used = size * BLOCKS
    floors = work.value[:used].reshape(BLOCKS, size).min(axis=1)
    at = work.seconds[:used].reshape(BLOCKS, size).mean(axis=1)
    per_block = float(at[-1] - at[0]) / (BLOCKS - 1) or 1.0
    found = trend(floors, confidence=0.99)
    third = BLOCKS // 3
    overall = found.slope * (BLOCKS - 1)
    late = float(np.polyfit(np.arange(third), floors[-third:], 1)[0]) * (BLOCKS - 1)
    return Growth(
        first=float(np.median(floors[:3])),
        last=float(np.median(floors[-3:])),
        rise=float(np.median(floors[-3:]) - np.median(floors[:3])),
        per_s=found.slope / per_block,
        low_per_s=found.low / per_block,
        high_per_s=found.high / per_block,
        p=found.p_up,
        late=late / overall if overall > 0 else 0.0,
        samples=len(work),
    )
