"""What one cell of a text table says: a number, a moment, nothing, or words.

The grammar of numbers is the same cell by cell (``number``) and column by column (``numbers``): the
column form lets polars cast what is plain and asks ``number`` about the rest only.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

NOTHING = frozenset({"", "none", "null", "na", "n/a", "<na>", "#n/a", "-", "--", "?"})
"""Lower-case spellings of *not recorded*. ``nan`` is not among them: a run can record NaN."""

_PLAIN = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_COMMA_DECIMAL = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)?,[0-9]+(?:[eE][+-]?[0-9]+)?")
_WRAPPED = re.compile(
    r"(?:tensor|array|np\.float(?:16|32|64)|jnp\.float32)?[(\[]+([^()\[\],\s]+)(?:,[^()\[\]]*)?[)\]]+"
)
_TRUTH = {"true": 1.0, "false": 0.0}

SECOND_NS = 1_000_000_000
_EPOCH_FIRST_S, _EPOCH_LAST_S = 946_684_800, 4_102_444_800  # 2000-01-01 to 2100-01-01 UTC
_UNITS_NS = (SECOND_NS, 1_000_000, 1_000, 1)
_EXACT = 2.0**53


def number(text: str, *, decimal_comma: bool = False) -> float | None:
    """The number one stripped cell holds; None where it holds none (words, or nothing).

    Takes signs, exponents, ``nan``/``inf``/``infinity`` in any case, thousands as ``1,234``, a trailing
    per-cent sign (``12.5%`` is 12.5), ``true``/``false``, and printed tensors (``tensor(0.25)``).
    An exponent too large for a float is an infinity of that sign, as in any C reader.
    With ``decimal_comma`` the comma is the decimal point and a point may only group thousands.
    """
    text = text.rstrip("%").rstrip() if text.endswith("%") else text
    if decimal_comma:
        if _COMMA_DECIMAL.fullmatch(text):
            return float(text.replace(".", "").replace(",", "."))
        return float(text) if _PLAIN.fullmatch(text) and "." not in text else _TRUTH.get(text.lower())
    if _PLAIN.fullmatch(text):
        return float(text)
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped and _PLAIN.fullmatch(wrapped[1]):
        return float(wrapped[1])
    return _TRUTH.get(text.lower())


def is_nothing(text: str) -> bool:
    """Whether a cell says that nothing was recorded."""
    return text.strip().lower() in NOTHING


def numbers(cells: pl.Series, *, decimal_comma: bool = False) -> tuple[pl.Series, pl.Series | None]:
    """Numbers of a column (Float64, null where there is none) and a mask of its words, None if it has none.

    ``cells`` are Float64 already (a plain block) or String, not yet stripped. A cell that is neither a
    number nor nothing is a word: True in the mask.
    """
    if cells.dtype == pl.Float64:
        return cells, None
    stripped = cells.str.strip_chars()
    values = pl.repeat(None, len(cells), dtype=pl.Float64, eager=True)
    if not decimal_comma:
        values = stripped.cast(pl.Float64, strict=False)
    open_cells = values.is_null() & stripped.is_not_null() & (stripped != "")
    if not open_cells.any():
        return values, None
    rest = stripped.filter(open_cells)
    texts = rest.unique(maintain_order=True).to_list()
    found = {t: number(t, decimal_comma=decimal_comma) for t in texts}
    read = rest.replace_strict(texts, [found[t] for t in texts], return_dtype=pl.Float64)
    values = values.scatter(open_cells.arg_true(), read)
    words = {t for t in texts if found[t] is None and not is_nothing(t)}
    if not words:
        return values, None
    return values, stripped.is_in(list(words)).fill_null(False) & values.is_null()


def whole(values: pl.Series) -> pl.Series:
    """Int64 where a float is an exact whole number, null elsewhere."""
    exact = values.is_finite() & (values == values.floor()) & (values.abs() < _EXACT)
    return pl.select(pl.when(exact.fill_null(False)).then(values).cast(pl.Int64)).to_series()


def clock_unit_ns(values: pl.Series) -> int | None:
    """Nanoseconds of one unit where all finite values are moments between 2000 and 2100, else None.

    Seconds, milliseconds, microseconds and nanoseconds since 1970 lie three orders of magnitude apart,
    so the size alone tells the unit. Relative times (0, 1.5, 3600) are no moments.
    """
    finite = values.drop_nulls().drop_nans()
    if finite.is_empty():
        return None
    low, high = float(finite.min()), float(finite.max())  # type: ignore[arg-type]  # numbers: Float64
    for unit_ns in _UNITS_NS:
        scale = SECOND_NS / unit_ns
        if low >= _EPOCH_FIRST_S * scale and high < _EPOCH_LAST_S * scale:
            return unit_ns
    return None


def moments(values: pl.Series, unit_ns: int) -> pl.Series:
    """Int64 nanoseconds of moments since 1970 in units of ``unit_ns``; null outside 2000 to 2100.

    Seconds with a fraction are split before scaling, so that no precision is lost on the way.
    """
    scale = SECOND_NS // unit_ns
    raw: NDArray[np.float64] = values.fill_null(np.nan).to_numpy()
    with np.errstate(invalid="ignore"):
        inside = (raw >= _EPOCH_FIRST_S * scale) & (raw < _EPOCH_LAST_S * scale)
    kept = np.where(inside, raw, 0.0)
    units = np.floor(kept)
    ns = units.astype(np.int64) * unit_ns + np.rint((kept - units) * unit_ns).astype(np.int64)
    return pl.Series(ns, dtype=pl.Int64).set(pl.Series(~inside), None)


def moment(text: str) -> int | None:
    """Nanoseconds UTC of one ISO date and time (also with ``/`` or ``,``), None where it is none.

    A time without an offset counts as UTC. Moments outside 2000 to 2100 are none, as in ``moments``.
    """
    plain = text.strip().replace("/", "-").replace(",", ".")
    if ":" not in plain:  # a bare date orders nothing within a run
        return None
    try:
        when = datetime.fromisoformat(plain)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    delta = when - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = delta.days * 86_400 + delta.seconds
    if not _EPOCH_FIRST_S <= seconds < _EPOCH_LAST_S:
        return None
    return seconds * SECOND_NS + delta.microseconds * 1_000
