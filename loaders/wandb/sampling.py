"""Whether an export of W&B history holds all rows or a sample of them.

``run.history()`` returns 500 rows by default, drawn anew at each call, whatever the run logged; charts and other
calls have limits of their own. A full history has every step from first to last, or steps at equal distances.
Source: https://github.com/wandb/wandb/issues/1783
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE_ROWS = frozenset({500, 1000, 1500, 10_000})
"""Row limits of the API and of charts."""

LONGER = 2.0
"""The steps must reach at least so many times the number of rows."""


def sampled_note(steps: NDArray[np.float64]) -> str | None:
    """The sentence to say where the ``_step`` column of an export looks drawn at random, else None."""
    known = np.unique(steps[np.isfinite(steps)])
    if len(steps) not in SAMPLE_ROWS or known.size < 3:
        return None
    reach = float(known[-1]) + 1  # W&B counts its steps from 0
    gaps = np.diff(known)
    if reach < LONGER * len(steps) or np.all(gaps == gaps[0]):
        return None
    return f"looks sampled ({len(steps):,} rows over {reach:,.0f} steps, irregular gaps)"
