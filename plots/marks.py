"""Findings as marks on a figure: where they stand on its axis, and the few words that name them.

A mark never invents a number: where a finding does not carry a value, the words do without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from afterrun.analyzer.finding import Finding, rank_order
from afterrun.plots.spec import Mark
from afterrun.plots.text import count_text, display_name, step_text

ToAxis = Callable[[int], float]
"""From a recorded step to the horizontal axis of the figure."""

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


def marks_of(findings: Sequence[Finding], codes: Collection[str], to_x: ToAxis) -> tuple[Mark, ...]:
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
                made.append(_together(alike or [finding], to_x))
        else:
            made.append(_alone(finding, to_x))
    return tuple(made)


def _alone(finding: Finding, to_x: ToAxis) -> Mark:
    start, end = finding.where.step_start, finding.where.step_end
    if start is None:
        return _mark(finding, _words(finding, ""), "note", ())
    at = step_text(to_x(start))
    if finding.code in SPANS and end is not None and end > start:
        shaded = finding.code not in UNSHADED
        return _mark(finding, _words(finding, at), "span", (to_x(start), to_x(end)), shaded=shaded)
    return _mark(finding, _words(finding, at), "flag", (to_x(start),))


def _together(findings: Sequence[Finding], to_x: ToAxis) -> Mark:
    places = sorted({p for f in findings for p in _places(f)})
    worst = findings[0]
    if len(places) == 1:
        return _mark(worst, _words(worst, step_text(to_x(places[0]))), "points", (to_x(places[0]),))
    text = count_text(max(len(places), 1), _TOGETHER[worst.code])
    return _mark(worst, text, "points" if places else "note", tuple(to_x(p) for p in places))


def _places(finding: Finding) -> list[int]:
    """The steps of one finding: its own list where it has one, else its onset."""
    given = finding.values.get("spike_steps", finding.values.get("steps"))
    listed = [int(s) for s in given if _is_number(s)] if isinstance(given, (list, tuple)) else []
    start = finding.where.step_start
    return listed or ([start] if start is not None else [])


def _mark(finding: Finding, text: str, shape: Any, xs: tuple[float, ...], *, shaded: bool = False) -> Mark:
    certain = finding.status == "confirmed"
    return Mark(
        code=finding.code,
        text=text if certain else f"possible: {text}",
        shape=shape,
        xs=xs,
        role="quiet" if finding.severity == "info" else "accent",
        certain=certain,
        shaded=shaded,
    )


def _words(finding: Finding, at: str) -> str:
    if finding.code == "plateau":
        cause = finding.values.get("cause")
        return f"plateau: {display_name(_plain(cause), 28)}" if isinstance(cause, str) and cause else "plateau"
    if finding.code == "non-finite":
        kinds = {str(e.value).lower() for e in finding.evidence}
        word = "∞" if any("inf" in k for k in kinds) and not any("nan" in k for k in kinds) else "NaN"
        return f"{word} from {at}" if at else word
    words, before = _WORDS.get(finding.code, (_plain(finding.code), "at"))
    return f"{words} {before} {at}" if at and before else words


def _plain(code: str) -> str:
    return code.replace("-", " ").replace("_", " ")


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and x == x and abs(x) < 2**63
