"""Numbers and units of Nsight Compute.

ncu scales units to the value (``Kbyte``, ``usecond`` in older, ``us`` in newer versions) and writes numbers in the locale of the
machine: ``10,776,576`` and ``33.42``, or ``10.776.576`` and ``33,42``. One file has one locale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

_BASE: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "nsecond": ("ns", 1.0),
        "ns": ("ns", 1.0),
        "usecond": ("ns", 1e3),
        "us": ("ns", 1e3),
        "msecond": ("ns", 1e6),
        "ms": ("ns", 1e6),
        "second": ("ns", 1e9),
        "s": ("ns", 1e9),
    }
)
_PREFIX: Mapping[str, float] = MappingProxyType({"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12})
_SCALED = re.compile(r"([KMGT]?)(byte|hz|inst|sector|cycle)(/.+)?", re.IGNORECASE)
_PER_TIME = re.compile(r"(.+)/(nsecond|ns|usecond|us|msecond|ms|second|s)")

_EUROPEAN = re.compile(r"-?\d{1,3}(?:\.\d{3})*,\d+|-?\d+,\d+|-?\d{1,3}(?:\.\d{3}){2,}")
_AMERICAN = re.compile(r"-?\d{1,3}(?:,\d{3})*\.\d+|-?\d+\.\d+|-?\d{1,3}(?:,\d{3}){2,}")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+")


def decimal_comma(texts: Iterable[str]) -> bool:
    """Whether a file writes the comma before the decimals, from all of its numbers.

    ``1,234`` alone is both; a number that only one locale can have decides, and the American one where none does.
    """
    european = american = 0
    for text in texts:
        if _EUROPEAN.fullmatch(text) and not _GROUPED.fullmatch(text):
            european += 1
        elif _AMERICAN.fullmatch(text):
            american += 1
    return european > american


def number(text: str, *, comma: bool) -> float | None:
    """A number of the file's locale; None for anything else (``n/a``, ``(256, 1, 1)``, names)."""
    plain = text.strip()
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        return None


def to_base(unit: str) -> tuple[str, float]:
    """Base unit and factor: time to ``ns``, sizes to ``byte``, frequencies to ``hz``, rates to per second; others stay.

    >>> to_base("Gbyte/s")
    ('byte/s', 1000000000.0)
    """
    unit = unit.strip()
    if unit in _BASE:
        return _BASE[unit]
    per = _PER_TIME.fullmatch(unit)
    if per:
        top, factor = to_base(per[1])
        seconds = _BASE[per[2]][1] / 1e9
        return ("hz", factor / seconds) if top == "cycle" else (f"{top}/s", factor / seconds)
    scaled = _SCALED.fullmatch(unit)
    if scaled:
        return f"{scaled[2].lower()}{scaled[3] or ''}", _PREFIX[scaled[1].lower()]
    return unit, 1.0
