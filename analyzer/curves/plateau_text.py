"""Words and numbers of the plateau pass: sizes in percent, one sentence for each kind of rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterrun.analyzer.curves.descent import Descent
from afterrun.analyzer.curves.flatness import Stretch
from afterrun.analyzer.curves.plateau_cause import Cause
from afterrun.analyzer.curves.rest import Lifted, Rest
from afterrun.analyzer.prose import change_pct, count, number, percent, place
from afterrun.analyzer.series import Series


def size(s: Series, improvement: float) -> float:
    """An improvement in percent: of the loss on a log scale, else of the range of the curve."""
    return -change_pct(-improvement) if s.scale == "log" else 100.0 * improvement


def change(s: Series, part: Stretch) -> str:
    """An improvement with its interval."""
    low, high = sorted((size(s, part.low), size(s, part.high)))
    return f"{percent(size(s, part.improvement))} [{number(low, 2)}, {number(high, 2)}]"


def measures(s: Series, part: Stretch, descent: Descent | None) -> dict[str, Any]:
    """Every number about a stretch, by name."""
    return {
        "points": part.end - part.start,
        "level": float(np.median(s.y[part.start : part.end])),
        "improvement_pct": size(s, part.improvement),
        "improvement_low_pct": size(s, part.low),
        "improvement_high_pct": size(s, part.high),
        "p_improving": part.p_improving,
        "stop_support": None if descent is None else descent.support,
        "shape": None if descent is None else descent.shape if descent.support > 0 else descent.smooth_shape,
        "earlier_fall_pct": None if descent is None else size(s, descent.fall),
    }


def rest_title(s: Series, rest: Rest, cause: Cause, values: dict[str, Any]) -> str:
    """One sentence about a loss at rest."""
    level = number(values["level"])
    share = f"{values['share_of_run_pct']:.0f} %"
    moved = change(s, rest.stretch)
    if rest.kind == "never moved":
        return f"{s.tag} never moved: improvement {moved} over {count(len(s.y), 'value')} around {level}; {cause.because}."
    at = place(s, float(s.xf[rest.stretch.start]))
    if rest.kind == "stalled":
        return f"{s.tag} stopped falling at {at}, at {level}: improvement {moved} in the remaining {share} of the run; {cause.because}."
    known = "" if cause.name != "unexplained" else " (cause not found)"
    return f"{s.tag} is flat at {level} from {at} on, {share} of the run{known}: {cause.because}."


def lifted_title(s: Series, lifted: Lifted) -> str:
    """One sentence about a flat stretch that a drop of the learning rate ended."""
    a, b = place(s, float(s.xf[lifted.start])), place(s, float(s.xf[lifted.end - 1]))
    ratio = number(lifted.lr_before / lifted.lr_after, 2)
    return (
        f"{s.tag} was flat from {a} until the learning rate dropped {ratio} x at {b}, "
        f"then fell {percent(size(s, lifted.fall))}: the drop could have come earlier."
    )


def moving_title(s: Series, last: Stretch, course: str, tolerance_pct: float) -> str:
    """One sentence about a loss that is not at rest, or not provably so."""
    over = f"over the last {count(last.end - last.start, 'value')}"
    if course == "improving":
        return f"No plateau: {s.tag} still fell {change(s, last)} {over}."
    if course == "rising":
        return f"No plateau: {s.tag} got worse {over} (improvement {change(s, last)})."
    return (
        f"No plateau shown: improvement of {s.tag} {over} is {change(s, last)}, "
        f"too uncertain to call it flat within {percent(tolerance_pct)}."
    )
