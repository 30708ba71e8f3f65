"""Numbers as people read them in one sentence: thousands separated, three digits, a unit beside each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afterrun.analyzer.series import Series


def number(x: float | None, digits: int = 3) -> str:
    """``x`` with ``digits`` significant digits, thousands separated; ``not recorded`` for None."""
    if x is None:
        return "not recorded"
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "inf" if x > 0 else "-inf"
    if x == 0:
        return "0"
    if x == int(x) or abs(x) >= 10**digits:
        return f"{x:,.0f}" if abs(x) < 1e12 else f"{x:.{digits - 1}e}"
    size = math.floor(math.log10(abs(x)))
    return f"{x:.{digits - 1}e}" if size < -4 else f"{x:,.{max(digits - 1 - size, 0)}f}"


def percent(x: float) -> str:
    """A share or change given in percent: two significant digits below 10, whole numbers above, huge ones as powers."""
    if abs(x) >= 1e5:
        return f"{x:.1e} %"
    return f"{x:.0f} %" if abs(x) >= 10 else f"{number(x, 2)} %"


def change_pct(log_ratio: float) -> float:
    """A difference on the log scale in percent: 100 (exp(d) - 1)."""
    return 100.0 * math.expm1(min(log_ratio, 700.0))


def place(s: Series, x: float) -> str:
    """A point on the axis of a curve: its step, or its number in write order where no step is recorded."""
    return f"step {int(x):,}" if s.has_step else f"point {int(x) + 1:,}"


def count(n: int, word: str, plural: str | None = None) -> str:
    """``1 point``, ``2 points``."""
    return f"{n:,} {word if n == 1 else plural or word + 's'}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever is readable."""
    if seconds < 120:
        return f"{number(seconds, 2)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def span_time(ns: float) -> str:
    """Nanoseconds in the unit a person would choose: ns, us, ms, s, min, h."""
    for unit, size in (("ns", 1e3), ("us", 1e6), ("ms", 1e9)):
        if abs(ns) < size:
            return f"{number(ns / size * 1e3)} {unit}"
    return duration(ns / 1e9)


def gpu_time(gpu_s: float) -> str:
    """GPU-seconds as GPU-hours, as GPU-minutes below a tenth of an hour, as they are below a minute."""
    if gpu_s < 60:
        return f"{number(gpu_s, 2)} GPU-s"
    return f"{number(gpu_s / 3600, 2)} GPU-h" if gpu_s >= 360 else f"{number(gpu_s / 60, 2)} GPU-min"
