"""Words and numbers in figures: names made harmless, values a person can read, ticks on round numbers."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Sequence
from decimal import Decimal

MAX_NAME = 60
BOX = "□"

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that must not reach a figure: controls, direction marks, surrogates, unassigned."""


def display_name(name: str, limit: int = MAX_NAME) -> str:
    """A name as one short line: hidden characters removed, blanks single, cut in the middle beyond ``limit``."""
    shown = "".join(c if unicodedata.category(c) not in _HIDDEN else " " for c in name)
    shown = " ".join(shown.split()) or "(no name)"
    if len(shown) <= limit:
        return shown
    head = (limit - 1) // 2
    return f"{shown[:head]}…{shown[len(shown) - (limit - 1 - head) :]}"


def legible(text: str, stand_in: str | None = None) -> str:
    """The text with characters that no installed font can draw as boxes.

    Where they are more than a third of it, ``stand_in`` (``tag 1``) is clearer than a row of boxes.
    """
    from afterrun.plots.theme import glyphs  # noqa: PLC0415  # reads the fonts; only drawing needs it

    known = glyphs()
    lost = [c for c in text if ord(c) not in known and c != "\n"]
    if not lost:
        return text
    if stand_in is not None and 3 * len(lost) > len(text):
        return stand_in
    return "".join(BOX if c in lost else c for c in text)


def value_text(value: float) -> str:
    """Three significant digits; thousands separated; powers of ten as ``1e-4``. Not-a-number by name."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1e7 or size < 1e-3:
        return _power(value)
    if size >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    digits = max(0, 2 - math.floor(math.log10(size)))
    return f"{value:.{digits}f}".replace("-", "−")


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.1e}".split("e")
    mantissa = mantissa.removesuffix(".0").replace("-", "−")
    return f"{mantissa}e{int(exponent)}"


def step_text(x: float) -> str:
    """A step or an epoch: whole numbers with separators, else two decimals; powers of ten from 1e15 on."""
    if abs(x) >= 1e15:
        return _power(x)
    whole = float(x).is_integer() or abs(x) >= 1000
    return (f"{x:,.0f}" if whole else f"{x:,.2f}".rstrip("0").rstrip(".")).replace("-", "−")


def step_texts(ticks: Sequence[float]) -> list[str]:
    """Labels on an axis of steps: as ``step_text``, in millions (``12.5 M``) where these are shorter."""
    largest = max(abs(t) for t in ticks)
    gap = min((b - a for a, b in itertools.pairwise(ticks)), default=largest)
    if largest >= 1e15:
        return ["0" if t == 0 else _power_tick(t) for t in ticks]
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if largest >= max(size, 1e7) and gap >= size / 1000:
            return ["0" if t == 0 else f"{t / size:,.6g} {unit}".replace("-", "−") for t in ticks]
    return [step_text(t) for t in ticks]


def count_text(count: int, noun: str) -> str:
    """``1 point``, ``1,200 points``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent_text(percent: float) -> str:
    """A share in percent with two significant digits: ``4.2 %``, ``38 %``, ``0.07 %``."""
    size = abs(percent)
    if size >= 1e6:
        return f"{value_text(percent)} %"
    digits = 0 if size >= 10 or size == 0 else 1 if size >= 1 else min(4, 1 - math.floor(math.log10(size)))
    return f"{percent:,.{digits}f} %".replace("-", "−")


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten in [low, high]: as many as fit in ``most``."""
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return [low]
    raw = width / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    for step in (power, 2 * power, 5 * power, 10 * power):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [round(i * step, 12 - math.floor(math.log10(step))) for i in range(first, last + 1)]
    return [low]


def whole_ticks(low: float, high: float, most: int) -> list[float]:
    """``linear_ticks`` on whole numbers."""
    ticks = [t for t in linear_ticks(low, high, most) if float(t).is_integer()]
    return ticks or [float(math.ceil(low))]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Powers of ten in [low, high], with 2 and 5 (or 3) between them where there is room. Both ends > 0."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{f}e{e}") for e in exponents for f in factors]
        ticks = [t for t in ticks if low <= t <= high]
        if 2 <= len(ticks) <= most:
            return ticks
    if len(ticks) < 2:  # no decade to speak of
        return [t for t in linear_ticks(low, high, most) if t > 0] or [low]
    every = next((n for n in (2, 5, 10, 20, 50, 100, 200) if len(ticks) <= n * most), 500)
    return [t for e in exponents if e % every == 0 and low <= (t := float(f"1e{e}")) <= high]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Labels of ticks: decimals as the closest pair needs them, one notation for all."""
    sizes = [abs(t) for t in ticks if t]
    if not sizes:
        return ["0" for _ in ticks]
    if max(sizes) >= 1e7 or max(sizes) < 1e-3 or (min(sizes) < 1e-4 and max(sizes) / min(sizes) >= 100):
        return ["0" if t == 0 else _power_tick(t) for t in ticks]
    if _spans_decades(ticks):
        return [f"{t:,.10g}".replace("-", "−") for t in ticks]
    gap = min((abs(b - a) for a, b in itertools.pairwise(ticks)), default=sizes[0])
    digits = max(0, -math.floor(math.log10(gap) + 1e-9)) if gap > 0 else 0
    return [f"{t:,.{digits}f}".replace("-", "−") for t in ticks]


def _spans_decades(ticks: Sequence[float]) -> bool:
    return min(ticks) > 0 and max(ticks) / min(ticks) >= 4 and len(ticks) > 1 and not _even(ticks)


def _even(ticks: Sequence[float]) -> bool:
    gaps = [b - a for a, b in itertools.pairwise(ticks)]
    return max(gaps) - min(gaps) <= 1e-6 * max(gaps)


def _power_tick(value: float) -> str:
    mantissa, exponent = f"{Decimal(repr(float(value))).normalize():e}".split(
        "e"
    )  # the digits that tell it apart
    return f"{mantissa.replace('-', '−')}e{int(exponent)}"
