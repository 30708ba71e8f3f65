"""Where a training loss came to rest: never moved, ran into a wall, or has been flat for long."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from afterrun.analyzer.curves.changepoints import straight_pieces
from afterrun.analyzer.curves.descent import Descent, fit_descent
from afterrun.analyzer.curves.flatness import Stretch, span_of, stretch
from afterrun.analyzer.curves.lr_schedule import Schedule
from afterrun.analyzer.curves.matching import match
from afterrun.analyzer.finding import Status
from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView

FIRST_SEEN = 0.2
"""A record that begins later than this share of its last step does not show how the run started."""

TENTHS = 10

MIN_REST_POINTS = 10


Kind = Literal["never moved", "stalled", "flat for long", "flat at the end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A training loss at rest."""

    kind: Kind
    status: Status
    stretch: Stretch
    onset_low: float | None = None
    onset_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A flat stretch [start, end) that a drop of the learning rate ended."""

    start: int
    end: int
    lr_before: float
    lr_after: float
    fall: float
    """How much the loss fell within the next tenth of the run, on the work scale."""


def descent_of(view: RunView, s: Series) -> Descent | None:
    """Shape of the training loss, with the held-out curves of the same metric as further witnesses."""
    curves = [(s.xf, s.cost)]
    for pair in view.pairs:
        if pair.train.tag != s.tag or pair.val.scale != s.scale:
            continue
        matched = match(pair)
        if not isinstance(matched, str) and matched.axis != "wall clock":
            curves.append((matched.x, matched.val_cost))
    return fit_descent(curves, s.scale)


def never_moved(s: Series, no_progress: float, tolerance: float) -> Stretch | None:
    """The whole curve if it surely gained less than ``no_progress`` at any time; None otherwise.

    Also None where it surely gained more than ``tolerance``: a slow improvement is one.
    Not answered where values change sign (nothing says what little is) or where the start is missing.
    """
    if s.scale == "raw" or (s.has_step and s.xf[0] > FIRST_SEEN * s.xf[-1]):
        return None
    whole = stretch(s)
    if whole.low > tolerance or whole.high > no_progress or whole.low < -no_progress:
        return None
    edges = np.linspace(0, len(s.y), TENTHS + 1).astype(int)
    levels = [float(np.median(s.cost[a:b])) for a, b in itertools.pairwise(edges)]
    first = float(s.cost[0]) - 4.0 * s.sigma  # a fall within the first few values moved, too
    return whole if max(levels[0], first) - min(levels) < no_progress else None


def stalled(
    s: Series, descent: Descent, schedule: Schedule | None, *, min_share: float, high_lr: float
) -> Stretch | None:
    """The points after the end of an abrupt descent, if at least ``min_share`` of the run with a high rate."""
    start = int(np.searchsorted(s.xf, descent.end))
    if len(s.y) - start < MIN_REST_POINTS:
        return None
    share = (float(s.xf[-1]) - descent.end) / max(float(s.xf[-1] - s.xf[0]), 1e-12)
    if schedule is not None:
        share *= schedule.share_above(high_lr, descent.end, float(s.xf[-1]))
    return stretch(s, start) if share >= min_share else None


def flat_since(s: Series, tolerance: float, end: int | None = None, first: int = 0) -> Stretch | None:
    """The longest run of straight pieces up to ``end`` that is proven flat as a whole; None if none is."""
    end = len(s.y) if end is None else end
    if end - first < MIN_REST_POINTS:
        return None
    for piece in straight_pieces(s.cost[first:end]):
        start = first + piece.start
        if end - start < MIN_REST_POINTS:
            break
        found = stretch(s, start, end)
        if found.course(tolerance) == "flat":
            skip = _still_above(s, found, tolerance)
            return stretch(s, start + skip, end) if 0 < skip < end - start - MIN_REST_POINTS else found
    return None


def _still_above(s: Series, flat: Stretch, tolerance: float) -> int:
    """Points at the start of a stretch that lie above its level: the slope does not see a few of them."""
    u = s.cost[flat.start : flat.end]
    limit = float(np.median(u)) + max(4.0 * s.sigma, tolerance * span_of(s))
    return int(np.argmax(u <= limit))


def lifted_by_drops(s: Series, schedule: Schedule, tolerance: float, min_share: float) -> Sequence[Lifted]:
    """Flat stretches of at least ``min_share`` of the points that ended with a drop of the learning rate.

    The loss must fall by more than three standard errors within the next tenth of the run.
    """
    found: list[Lifted] = []
    first = 0
    for drop in schedule.drops:
        at = int(np.searchsorted(s.xf, drop.x))
        flat = flat_since(s, tolerance, at, first)
        first = at
        if flat is None or at - flat.start < max(MIN_REST_POINTS, min_share * len(s.y)):
            continue
        after = s.cost[at : at + max(MIN_REST_POINTS, len(s.y) // 10)]
        before = s.cost[flat.start : at]
        late = after[len(after) // 2 :]
        if len(late) < 3:
            continue
        fall = float(np.median(before) - np.median(late))
        se = 1.2533 * s.sigma * math.sqrt(1.0 / len(before) + 1.0 / len(late))
        if fall > 3.0 * se and fall > tolerance:
            found.append(
                Lifted(start=flat.start, end=at, lr_before=drop.before, lr_after=drop.after, fall=fall)
            )
    return found
