"""How exactly a source wrote its numbers, told from the numbers themselves.

A log line says ``2.3457`` where the event file holds 2.34567...: the same value, rounded. How many digits a source
keeps is the most that any of its numbers has; a writer rounds all of them alike, to so many decimals or to so many
significant digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLED = 64
"""Numbers of a curve that are looked at, evenly spread."""

EXACT_DIGITS = 15
"""From so many significant digits on a number is a float64 written in full."""

SINGLE_DIGITS = 7
"""From so many on, a curve of float32 numbers is written in full."""


@dataclass(frozen=True, slots=True)
class Precision:
    """The most decimals and the most significant digits of any number; ``single`` where all are float32."""

    decimals: int
    digits: int
    single: bool

    @property
    def told(self) -> int:
        """Significant digits that tell two curves apart: those of float32 at most."""
        return min(self.digits, SINGLE_DIGITS)

    def tolerance(self, values: Floats) -> Floats:
        """How far the true value may lie from each written one: a unit of its last digit, which may be cut or rounded twice.

        Decimals and significant digits are both known, which of the two the writer fixed is not: the wider
        one counts.
        """
        size = np.where(np.isfinite(values), np.abs(values), 0.0)
        if self.digits >= EXACT_DIGITS:
            return size * 2.0**-51
        if self.single and self.digits >= SINGLE_DIGITS:
            return size * 2.0**-23
        with np.errstate(divide="ignore"):
            first = np.floor(np.log10(size))
        return np.maximum(10.0**-self.decimals, 10.0 ** (first - self.digits + 1))


def precision_of(values: Floats) -> Precision:
    """The precision of one curve; zeros and what is not finite say nothing about it."""
    told = values[np.isfinite(values) & (values != 0.0)]
    if not len(told):
        return Precision(decimals=EXACT_DIGITS, digits=1, single=False)
    sample = told[np.linspace(0, len(told) - 1, min(SAMPLED, len(told))).astype(np.int64)]
    with np.errstate(over="ignore", under="ignore"):
        narrow = sample.astype(np.float32)
    single = bool((narrow == sample).all())
    # the shortest text that reads as the number
    texts = (narrow if single else sample).astype(np.str_)
    decimals, digits = zip(*map(_digits, texts.tolist()), strict=True)
    return Precision(decimals=max(decimals), digits=max(digits), single=single)


def _digits(text: str) -> tuple[int, int]:
    """(decimals, significant digits) of a number; zeros at its end are none, for ``100.0`` may be exact or not."""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, part = mantissa.partition(".")
    part = part.rstrip("0")
    decimals = len(part) - int(exponent or 0)
    return decimals, len((whole + part).lstrip("0")) if part else len(whole.rstrip("0"))
