"""What early stopping would have done: patience rules and Prechelt's criteria, replayed on the record.

None of them is a verdict: with 3 % of evaluation noise GL_5 stops almost every healthy run of fifty
evaluations. They say where a run *would* have stopped and what that would have cost or saved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from afterrun.analyzer.stats import Array

PATIENCES = (1, 2, 3, 5, 10, 20)
"""Evaluations without improvement."""

MIN_DELTAS_PCT = (0.0, 0.1, 1.0)
"""Improvement that counts, in percent of the best value so far."""

STRIP = 5
"""Evaluations in a training strip (Prechelt 1998, section 2)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One rule replayed: where it stops and which evaluation it keeps. Indices into the evaluations."""

    patience: int
    min_delta_pct: float
    stop: int | None
    """None where the rule never fires."""
    kept: int


def replay(error: Array, patience: int, min_delta_pct: float) -> Stop:
    """Early stopping as Keras and the HF Trainer do it: improvement is strict, wait >= patience stops.

    ``error`` is the metric turned so that lower is better, in its own unit. The libraries take an
    absolute min_delta; here it is relative to the best so far so that one table serves every scale.
    """
    best, kept, wait = np.inf, 0, 0
    for i, e in enumerate(error.tolist()):
        margin = 0.0 if best == np.inf else min_delta_pct / 100.0 * abs(best)
        if e < best - margin:
            best, kept, wait = e, i, 0
        else:
            wait += 1
            if wait >= patience:
                return Stop(patience, min_delta_pct, i, kept)
    return Stop(patience, min_delta_pct, None, kept)


def patience_stops(error: Array) -> list[Stop]:
    """Every patience with every min_delta, in the order of the table."""
    return [replay(error, p, d) for p in PATIENCES for d in MIN_DELTAS_PCT]


def reduce_on_plateau(error: Array, *, patience: int = 10, threshold: float = 1e-4) -> int | None:
    """First evaluation at which ReduceLROnPlateau would lower the rate; None where it never would.

    torch's defaults: relative threshold, fires when the count of bad evaluations exceeds patience.
    """
    best, bad = np.inf, 0
    for i, e in enumerate(error.tolist()):
        if best == np.inf or e < best - threshold * abs(best):
            best, bad = e, 0
        else:
            bad += 1
            if bad > patience:
                return i
    return None


def prechelt(val: Array, train: Array) -> dict[str, int | None]:
    """First evaluation at which each criterion of Prechelt (1998) stops; None where it never does.

    ``val`` and ``train`` are errors > 0, one value an evaluation. GL_a: generalisation loss
    100 (E / min E - 1) > a. PQ_a: GL over training progress 1000 (mean / min - 1) of the last strip.
    UP_s: the error rose between the ends of s successive strips.
    """
    with np.errstate(over="ignore"):  # beyond the largest number is beyond every threshold
        gl = 100.0 * (val / np.minimum.accumulate(val) - 1.0)
    found: dict[str, int | None] = {f"GL_{a}": _first(gl > a) for a in (1, 2, 3, 5)}
    n = len(val)
    if n >= STRIP:
        strips = np.lib.stride_tricks.sliding_window_view(train, STRIP)
        with np.errstate(over="ignore"):
            progress = 1000.0 * (strips.mean(axis=1) / strips.min(axis=1) - 1.0)
        for a in (0.5, 0.75, 1.0, 2.0, 3.0):
            first = _first(gl[STRIP - 1 :] > a * progress)
            found[f"PQ_{a:g}"] = None if first is None else first + STRIP - 1
    ends = val[STRIP - 1 :: STRIP]
    rose = np.diff(ends) > 0
    for s in (2, 3, 4, 6, 8):
        first = None
        if len(rose) >= s:
            first = _first(np.asarray(np.lib.stride_tricks.sliding_window_view(rose, s).all(axis=1)))
        found[f"UP_{s}"] = None if first is None else (first + s + 1) * STRIP - 1
    return found


def _first(mask: npt.NDArray[np.bool_]) -> int | None:
    hits = np.flatnonzero(mask)
    return int(hits[0]) if len(hits) else None
