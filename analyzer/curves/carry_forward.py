"""Evaluations that were made once and written on every row until the next one.

Some loggers repeat the last validation value on each row (or epoch) until a new one exists. Read
naively such a column shows plateaus and five times the evaluations that took place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.series import Series, surviving
from afterrun.analyzer.stats import Array

MIN_BLOCKS = 4
"""Fewer blocks of repeats prove nothing: a metric may stand still by itself."""

REGULAR_SHARE = 0.9
"""Share of the inner blocks whose length must be a multiple of the usual one."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Where the real evaluations are in a carried-forward column."""

    rows: npt.NDArray[np.int64]
    """Index of the first row of each evaluation."""
    length: int
    """Rows that one evaluation fills."""


def find_repeats(value: Array) -> Repeats | None:
    """The real evaluations behind a column that repeats each value exactly in blocks of one length.

    None for an ordinary column. Blocks at both ends may be cut; a block of a multiple of the usual
    length is several evaluations with the same result.
    """
    n = len(value)
    if n < 2 * MIN_BLOCKS:
        return None
    starts = np.flatnonzero(np.append(True, value[1:] != value[:-1]))
    lengths = np.diff(np.append(starts, n))
    inner = lengths[1:-1]
    if len(lengths) < MIN_BLOCKS or not len(inner):
        return None
    usual = int(np.median(inner))
    if usual < 2 or np.count_nonzero(inner == usual) < MIN_BLOCKS - 2:
        return None
    if (
        np.count_nonzero(inner % usual == 0) < REGULAR_SHARE * len(inner)
        or max(lengths[0], lengths[-1]) > usual
    ):
        return None
    rows = np.concatenate([np.arange(a, a + size, usual) for a, size in zip(starts, lengths, strict=True)])
    return Repeats(rows=rows.astype(np.int64), length=usual)


def real_points(s: Series) -> tuple[Series, int | None]:
    """(the series with one point for each evaluation, rows that one evaluation filled or None).

    An ordinary series comes back as it is.
    """
    repeats = find_repeats(s.value)
    if repeats is None:
        return s, None
    rows = repeats.rows
    thinned = replace(
        s,
        x=s.x[rows],
        value=s.value[rows],
        wall_ns=None if s.wall_ns is None else s.wall_ns[rows],
        epoch=None if s.epoch is None else s.epoch[rows],
        attempt=s.attempt[rows],
        frame=surviving(s.frame)[rows.tolist()],
    )
    return thinned, repeats.length
