"""Findings as marks on a figure: where they stand on its axis, and the few words that name them.

A mark never invents a number: where a finding does not carry a value, the words do without it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterrun.analyzer.finding import Finding, rank_order
from afterrun.analyzer.series import Series
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.text import count_text, display_name
from afterrun.plots.content.layers import Axis, hours, same_count
from afterrun.plots.spec import Mark


@dataclass(frozen=True, slots=True)
class Placer:
    """From the steps of findings to the horizontal axis of a figure that shows ``curves``."""

    axis: Axis
    curves: Sequence[Series]
    view: RunView

    def place(self, step: int, finding: Finding) -> float | None:
        """Where it happened; None where the finding counts something that this axis does not know."""
        lead = self.axis.lead
        s = self._subject(finding) or lead
        if self.axis.kind == "step" and (s.tag in {c.tag for c in self.curves} or same_count(lead, s)):
            return float(step)
        if not s.has_step:
            return None
        if self.axis.kind in ("epoch", "hours") and self.axis.of(s) is not s.x:
            return float(np.interp(step, s.x, self.axis.of(s)))
        if self.axis.kind == "step" and s.wall_ns is not None and lead.wall_ns is not None:
            at = np.interp(step, s.x, hours(s.wall_ns, 0))
            return float(np.interp(at, hours(lead.wall_ns, 0), lead.x))
        return None

    def shows(self, finding: Finding) -> bool:
        """Whether the curve that the finding is about is one of those drawn, as far as it says."""
        s = self._subject(finding)
        return s is None or s.tag in {c.tag for c in self.curves}

    def _subject(self, finding: Finding) -> Series | None:
        tag = finding.values.get("val_tag", finding.values.get("tag"))
        return next((s for s in self.view.lead if s.tag == tag), None)


SPANS = frozenset(
    {
        "plateau",
        "lr-dead",
        "still-improving",
        "noisy",
        "oscillation",
        "zero-loss",
        "not-learning",
        "overtrained",
        "gap-growing",
        "val-drift",
        "collapse",
    }
)
"""Findings about a stretch of steps; all others are about one place."""

UNSHADED = frozenset({"noisy", "still-improving", "overtrained", "not-learning", "gap-growing"})
"""Stretches named by a bar only: a tint over most of the panel would hide more than it shows."""

SEVERAL = 3
"""From this many findings of one code on, places are named together."""

_WORDS = {
    "overfit": ("overfits", "from"),
    "divergence": ("diverges", "from"),
    "collapse": ("collapses", "from"),
    "restart": ("restart", "at"),
    "incomplete": ("cut short", "at"),
    "spike": ("spike", "at"),
    "lr-jump": ("lr jumps", "at"),
    "no-warmup": ("no warm-up", ""),
    "lr-dead": ("lr ≈ 0", "from"),
    "still-improving": ("still improving", ""),
    "overtrained": ("trained past the best", ""),
    "noisy": ("noisy", ""),
    "zero-loss": ("loss is exactly 0", "from"),
    "val-drift": ("validation drifts", "from"),
    "gap-growing": ("gap grows", "from"),
}
"""Words for a code, and the word before its place; other codes are their own words."""

_TOGETHER = {"spike": "spike", "restart": "restart"}


def marks_of(findings: Sequence[Finding], codes: Collection[str], placer: Placer) -> tuple[Mark, ...]:
    """Marks of the confirmed and possible findings with one of these codes, worst first."""
    shown = sorted(
        (f for f in findings if f.code in codes and f.status in ("confirmed", "possible")), key=rank_order
    )
    made: list[Mark] = []
    grouped: set[str] = set()
    for finding in shown:
        alike = [f for f in shown if f.code == finding.code and f.where.step_start is not None]
        if finding.code == "spike" or (finding.code in _TOGETHER and len(alike) >= SEVERAL):
            if finding.code not in grouped:
                grouped.add(finding.code)
                made.append(_together(alike or [finding], placer))
        else:
            made.append(_alone(finding, placer))
    return tuple(made)


def _alone(finding: Finding, placer: Placer) -> Mark:
    start, end = finding.where.step_start, finding.where.step_end
    x = None if start is None else placer.place(start, finding)
    if x is None:
        return _mark(finding, _words(finding, "", placer), "note", ())
    words = _words(finding, placer.axis.say(x), placer)
    x_end = placer.place(end, finding) if end is not None and finding.code in SPANS else None
    if x_end is not None and x_end > x:
        return _mark(finding, words, "span", (x, x_end), shaded=finding.code not in UNSHADED)
    return _mark(finding, words, "flag", (x,))


def _together(findings: Sequence[Finding], placer: Placer) -> Mark:
    found = {x for f in findings for step in _places(f) if (x := placer.place(step, f)) is not None}
    places, worst = tuple(sorted(found)), findings[0]
    if len(places) == 1:
        return _mark(worst, _words(worst, placer.axis.say(places[0]), placer), "points", places)
    count = len(places) or sum(max(len(_places(f)), 1) for f in findings)
    return _mark(worst, count_text(count, _TOGETHER[worst.code]), "points" if places else "note", places)


def _places(finding: Finding) -> list[int]:
    """The steps of one finding: its own list where it has one, else its onset."""
    given = finding.values.get("spikes")
    listed = [int(s) for s in given if _is_number(s)] if isinstance(given, (list, tuple)) else []
    start = finding.where.step_start
    return listed or ([start] if start is not None else [])


def _mark(finding: Finding, text: str, shape: Any, xs: tuple[float, ...], *, shaded: bool = False) -> Mark:
    certain = finding.status == "confirmed"
    return Mark(
        code=finding.code,
        text=text if certain else f"{text} (possible)",
        shape=shape,
        xs=xs,
        role="quiet" if finding.severity == "info" else "accent",
        certain=certain,
        shaded=shaded,
    )


def _words(finding: Finding, at: str, placer: Placer) -> str:
    values = finding.values
    if finding.code == "plateau":
        cause = values.get("cause")
        return (
            f"plateau, {display_name(_plain(cause), 28)}" if isinstance(cause, str) and cause else "plateau"
        )
    if finding.code == "non-finite":
        word = "∞" if values.get("infinite") and values.get("infinite") == values.get("non_finite") else "NaN"
        where = "" if placer.shows(finding) else f" in {display_name(str(values.get('tag')), 24)}"
        before = "from" if values.get("recovered_step") is None else "at"
        return f"{word}{where} {before} {at}" if at else f"{word}{where}"
    words, before = _WORDS.get(finding.code, (_plain(finding.code), "at"))
    return f"{words} {before} {at}" if at and before else words


def _plain(code: str) -> str:
    return code.replace("-", " ").replace("_", " ")


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) < 2**63
