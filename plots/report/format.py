"""Numbers in tables and facts: as in the sentences of the findings (``analyzer.prose``), with a dash for null."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from afterrun.analyzer import prose

DASH = "–"
"""Not recorded. Never a zero."""


def number(x: float | str | None, digits: int = 4) -> str:
    """A value at ``digits`` significant digits: ``0.8113``, ``12,346``, ``3.200e-05``, ``NaN``."""
    if x is None or isinstance(x, str):
        return DASH if x is None else x
    return prose.number(x, digits)


def count(n: int | None) -> str:
    """A whole number with thousands: ``6,400``."""
    return DASH if n is None else f"{n:,}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """``1 run``, ``12 runs``; ``many`` where an s is not enough."""
    return prose.count(n, one, many)


def compact(x: float, unit: str = "") -> str:
    """A large number in three digits: ``842``, ``1.24 k``, ``18.2 MB``; ``unit`` follows the prefix."""
    if not math.isfinite(x):
        return number(x)
    size, prefix = abs(x), ""
    for name in ("k", "M", "G", "T"):
        if size < 999.5:
            break
        size /= 1000.0
        prefix = name
    body = f"{size:.0f}" if size >= 99.95 or not prefix else f"{size:.3g}"
    return f"{'-' if x < 0 else ''}{body} {prefix}{unit}".rstrip()


def duration(seconds: float | None) -> str:
    """A stretch of time: ``42 s``, ``4 min``, ``2 h 03 min``."""
    return DASH if seconds is None else prose.duration(seconds)


def gpu_time(seconds: float | None) -> str:
    """GPU time: ``9.1 GPU-h``; under a tenth of an hour ``3.2 GPU-min``."""
    return DASH if seconds is None else prose.gpu_time(seconds)


def instant(ns: int | None) -> str:
    """A moment, to the minute, in UTC: ``2023-11-14 22:13 UTC``."""
    if ns is None:
        return DASH
    try:
        return datetime.fromtimestamp(ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return f"{count(ns)} ns"


def interval(value: float | None, low: float | None, high: float | None, unit: str = "") -> str:
    """A value with its interval: ``18.2 % (15.1 to 21.4) above the best``; without one just the value.

    An interval of no width says nothing that the value does not.
    """
    if value is None:
        return DASH
    head, _, rest = unit.partition(" ")
    counted = low is None or high is None or low == high
    between = "" if counted else f"({number(low, 3)} to {number(high, 3)})"
    return " ".join(part for part in (number(value, 3), head, between, rest) if part)


def steps(first: int | None, last: int | None) -> str:
    """A stretch of steps: ``step 6,400``, ``steps 6,400 to 51,200``."""
    if first is None:
        return DASH
    if last is None or last == first:
        return f"step {count(first)}"
    return f"steps {count(first)} to {count(last)}"
