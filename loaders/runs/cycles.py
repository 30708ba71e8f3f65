"""Whether a counter that begins again counts within epochs, or the training was started again in the same file.

Both look alike: blocks of rows, each beginning at the same low step. They are told apart by what else the file
says, the first of these that speaks deciding:

1. the epoch of the rows grows from block to block: a counter of batches; it falls back: a new start;
2. something else that runs on (tokens, elapsed time, a logged epoch, the step of a tag that never falls) grows
   over the whole file: a counter of batches; it falls back with the step: a new start;
3. where there are at least ``MIN_BLOCKS`` blocks of equal length, the level of the losses (or scores, or, where there
   are neither, of all tags): it goes on where the block before ended, or is back at where the first one began;
4. then the wall clock: a pause between blocks twice as long as the block before is a new start, one no longer than
   two rows are apart is none.

Where nothing speaks, blocks of equal length count as epochs and others as new starts. For equal blocks that is the
side on which an error hides nothing: all rows stay in the curve, in the order they were written, none is taken for
lost work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MIN_BLOCKS = 3
"""Equal blocks, all from the same step, from which their regularity alone is telling."""
MIN_ROWS = 3
"""Rows of such a block."""
LENGTH_RATIO = 1.2
"""Longest to shortest of blocks that count as equally long; the last one may be shorter."""
RETURNS = 0.5
"""Share of the way back to its first level that a curve makes at the beginning of a block, from which it began anew."""
CLEAR_OF_NOISE = 3.0
"""Standard deviations of the noise by which two levels must differ to be told apart."""
LONG_PAUSE = 2.0
"""A pause this many times as long as the block before it is a new start."""
SHORT_PAUSE = 2.0
"""A pause at most this many times as long as the longest time between two rows of a block is none."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One tag in write order. ``starts`` are the indices of its blocks, 0 among them; NaN: not recorded."""

    seq: Ints
    step: Ints
    value: Floats
    epoch: Floats
    wall_ns: Floats
    starts: Ints

    def blocks(self, column: Floats) -> list[Floats]:
        """A column block by block."""
        return np.split(column, self.starts[1:])


@dataclass(frozen=True, slots=True)
class Running:
    """Something that only grows during a training. ``returns``: falling back means something, too."""

    seq: Ints
    value: Floats
    returns: bool = True


def within_epochs(curve: Curve, running: Sequence[Running]) -> bool | None:
    """Whether the counter counts within epochs by evidence that decides alone (1 and 2); None: nothing speaks.

    A counter that begins a block far above its first step goes on from a checkpoint.
    """
    firsts = curve.step[curve.starts]
    if int(firsts.max()) > int(curve.step[0] + np.median(np.abs(np.diff(curve.step)))):
        return False
    last, first = curve.epoch[curve.starts[1:] - 1], curve.epoch[curve.starts[1:]]
    verdict = _majority(first > last, first < last)
    for other in running:
        if verdict is None:
            verdict = _goes_on(curve, other)
    return verdict


def looks_regular(curve: Curve) -> bool:
    """Whether the blocks begin at one step and are equally long, the last one maybe cut."""
    lengths = np.diff(np.append(curve.starts, len(curve.step)))
    whole = lengths[:-1]
    if len(lengths) < MIN_BLOCKS or int(whole.min()) < MIN_ROWS:
        return False
    same_start = bool((curve.step[curve.starts] == curve.step[0]).all())
    longest = int(lengths.max())
    return same_start and longest <= LENGTH_RATIO * int(whole.min())


def level_returns(curves: Sequence[Curve]) -> bool | None:
    """Whether curves are back at their first level at the beginning of each block (3); None: not to be told."""
    shares = [s for s in map(_share_back, curves) if s is not None]
    return None if not shares else bool(np.median(shares) >= RETURNS)


def pauses(curve: Curve) -> bool | None:
    """Whether the clock stops between blocks for as long as a block takes (4); None: not to be told."""
    walls = curve.blocks(curve.wall_ns)
    if np.isnan(curve.wall_ns).any() or any(len(w) < 2 for w in walls[:-1]):
        return None
    gaps = np.array([b[0] - a[-1] for a, b in pairwise(walls)])
    spans = np.array([w[-1] - w[0] for w in walls[:-1]])
    longest = max(float(np.diff(w).max()) for w in walls if len(w) > 1)
    return _majority((gaps > 0) & (gaps >= LONG_PAUSE * spans), gaps <= SHORT_PAUSE * longest)


def _majority(yes: npt.NDArray[np.bool_], no: npt.NDArray[np.bool_]) -> bool | None:
    """The side that more than half of the falls are on."""
    if 2 * np.count_nonzero(yes) > len(yes):
        return True
    return False if 2 * np.count_nonzero(no) > len(no) else None


def _goes_on(curve: Curve, other: Running) -> bool | None:
    """Whether another count grows from block to block of a curve, or falls back with it."""
    cuts = np.searchsorted(other.seq, curve.seq[curve.starts[1:]])
    blocks = [b[np.isfinite(b)] for b in np.split(other.value, cuts)]
    known = [(a, b) for a, b in pairwise(blocks) if len(a) and len(b)]
    if 2 * len(known) <= len(cuts):
        return None
    under = np.array([b.min() < a.max() for a, b in known])
    grows = np.array([b.max() > a.max() for a, b in known])
    verdict = _majority(grows & ~under, under)
    return verdict if verdict or other.returns else None


def _share_back(curve: Curve) -> float | None:
    """How far a curve goes back to its first level at the beginning of a block: 0 not at all, 1 wholly."""
    blocks = [b[np.isfinite(b)] for b in curve.blocks(curve.value)]
    if any(len(b) < MIN_ROWS for b in blocks[:-1]) or not len(blocks[-1]):
        return None
    bends = np.concatenate([np.abs(np.diff(b, 2)) for b in blocks])
    noise = 1.4826 * float(np.median(bends)) / np.sqrt(6)  # sd of a second difference is sqrt(6) sd
    first = _edge(blocks[0], end=False)
    shares = []
    for before, block in pairwise(blocks):
        way = first - _edge(before, end=True)
        if abs(way) > CLEAR_OF_NOISE * noise:
            shares.append((_edge(block, end=False) - _edge(before, end=True)) / way)
    return float(np.median(shares)) if 2 * len(shares) >= len(blocks) - 1 else None


def _edge(block: Floats, *, end: bool) -> float:
    """Level at the beginning or the end of a block: of up to three rows, so that one odd row does not matter."""
    few = min(3, max(1, len(block) // 4))
    return float(np.median(block[-few:] if end else block[:few]))
