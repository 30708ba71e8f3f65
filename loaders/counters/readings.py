"""What samplers write into a cell: a number and maybe its unit, a state, or nothing.

``92 %``, ``25073MiB``, ``33.09 W``, ``(300Mhz)``, ``P8``, ``16x``, ``0x0000000000000004``. ``[N/A]``, ``N/A``, ``[Not Supported]``,
``[Unknown Error]``, ``ERR!``, ``-`` and other words are *not recorded*: no reading.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

_NUMBER = r"[-+]?(?:[0-9]+(?:[.,][0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_UNIT = r"[A-Za-z%°µ][A-Za-z%°µ/]*"
_PATTERN = rf"\s*\(?({_NUMBER})\s*({_UNIT})?\)?\s*"
_READING = re.compile(_PATTERN)
_COLUMN = f"^{_PATTERN}$"
_SQUARE = re.compile(r"(.*?)\s*\[([^\[\]]*)\]\s*")
_ROUND = re.compile(r"(.*?)\s*\((%|°?C|W|mW|V|mV|B|[KMG]i?B|[kMG]?[Hh]z|RPM|s)\)\s*")
_HEX = re.compile(r"\s*0x([0-9a-fA-F]{1,16})\s*")
_STATE = re.compile(r"\s*P([0-9]{1,2})\s*")


LONGEST_LINE = 4096
"""Rows of monitors, lines of drawn tables and of reports are shorter; a longer line is none, and costs no time."""


class Reading(NamedTuple):
    """A number and the unit written behind it, empty where there is none."""

    value: float
    unit: str


def reading(text: str) -> Reading | None:
    """The number of a cell and its unit; None where nothing was recorded.

    >>> reading("92 %")
    Reading(value=92.0, unit='%')
    """
    found = _READING.fullmatch(text)
    return Reading(float(found[1].replace(",", ".")), found[2] or "") if found else None


def readings(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Numbers (Float64, null where nothing was recorded) and units (String, empty where none) of a text column."""
    parts = cells.str.extract_groups(_COLUMN).struct
    numbers = parts.field("1").str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    return numbers, parts.field("2").fill_null("")


def label(text: str) -> tuple[str, str]:
    """Name and unit of a column: ``utilization.gpu [%]``, ``GPU use (%)``; an empty unit where none is told."""
    name = text.strip()
    found = _SQUARE.fullmatch(name) or _ROUND.fullmatch(name)
    return (found[1], found[2].strip()) if found and found[1] else (name, "")


def mask(text: str) -> float | None:
    """A bit mask in hexadecimal; None where it is none."""
    found = _HEX.fullmatch(text)
    return float(int(found[1], 16)) if found else None


def performance_state(text: str) -> float | None:
    """The number of ``P8``; None where it is none."""
    found = _STATE.fullmatch(text)
    return float(found[1]) if found else None
