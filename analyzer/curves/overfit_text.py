"""One sentence for each verdict of the overfit pass."""

from __future__ import annotations

import numpy as np

from afterrun.analyzer.curves.generalisation import Assessment, measures
from afterrun.analyzer.curves.matching import Matched
from afterrun.analyzer.prose import change_pct, count, number, percent, place

NEAR_ZERO = 0.1
"""A training loss below has nothing left to learn."""


def few_title(m: Matched) -> str:
    """What the few evaluations say, without a verdict."""
    if len(m.val) < 2:
        return ""
    best = int(np.argmin(m.val_cost))
    where = place(m.pair.val, float(m.x[best]))
    return f" (best {number(float(m.val[best]))} at {where}, last {number(float(m.val[-1]))})"


def _rise(found: Assessment) -> str:
    value = found.size(found.turn.height)
    if found.val.scale == "log":
        return f"rose {percent(value)}"
    if found.val.scale == "logit":
        return f"fell {number(value, 2)} points"
    return f"got worse by {number(value)}"


def _lowest(found: Assessment) -> str:
    m, best = found.matched, found.turn.best
    value = measures(found)["smoothed_best_value"]
    return f"{number(value)} at {place(found.val, float(m.x[best]))}"


def _train(found: Assessment) -> str:
    m, leg = found.matched, found.train
    tag = m.pair.train.tag
    if leg.at_floor:
        end = number(float(m.train[-1]))
        near = m.pair.train.scale == "logit" or float(m.train[-1]) < NEAR_ZERO
        # a perplexity of 20 may be a hundredth of its start and is still no zero
        return f"{tag} had nothing left to learn ({end})" if near else f"{tag} stands still ({end})"
    if leg.course == "unclear":
        return f"{tag} is too noisy to tell its course"
    if m.pair.train.scale == "log":
        change = change_pct(leg.change)
        return f"{tag} {'fell' if change < 0 else 'rose'} {percent(abs(change))}"
    return f"{tag} went from {number(float(m.train[found.turn.best]))} to {number(float(m.train[-1]))}"


def overfit_title(found: Assessment) -> str:
    """The held-out curve turned while training went on."""
    m = found.matched
    end = place(found.val, float(m.x[-1]))
    remarks = "".join(f" ({remark})" for remark in m.remarks)
    return f"{found.val.tag} {_rise(found)} from its best level, {_lowest(found)}, to {end} while {_train(found)}{remarks}."


def jump_title(found: Assessment) -> str:
    """The held-out curve went to another level at once."""
    m, at = found.matched, found.turn.best + 1
    levels = f"from {number(float(m.val[at - 1]))} to {number(float(m.val[at]))}"
    end = f"stayed there to the end ({count(found.turn.after, 'evaluation')})"
    return f"{found.val.tag} jumped {levels} at {place(found.val, float(m.x[at]))} and {end} while {_train(found)}: it jumped, it did not drift."


def drift_title(found: Assessment, cause: str) -> str:
    """The held-out curve turned, and not because of training."""
    why = (
        "both got worse: a divergence"
        if cause == "divergence"
        else "training stood still: drift of the validation side"
    )
    return f"No overfitting: {found.val.tag} {_rise(found)} from its best level, {_lowest(found)}, but {_train(found)}; {why}."


def healthy_title(found: Assessment, min_after: int) -> str:
    """The held-out curve did not surely turn."""
    m, turn = found.matched, found.turn
    n = len(m.val)
    if turn.after < min_after:
        return f"No overfitting: {found.val.tag} was still at its best near the end ({_lowest(found)}, {turn.after} of {n} evaluations before the end)."
    if turn.rise <= found.least_rise:
        return f"No overfitting: {found.val.tag} stayed at its best level, {_lowest(found)}, for the last {turn.after} of {n} evaluations."
    return (
        f"No overfitting shown: {found.val.tag} ends {number(found.size(turn.height), 2)} {found.unit} from its best level, {_lowest(found)}, "
        f"which its noise or an uneven course explains (p = {number(turn.p_up, 2)})."
    )
