"""Microseconds as decimal text to exact integer nanoseconds.

A float has 53 bits: at 1.7e15 microseconds since 1970 it steps by 250 ns, and kernels that follow one another
overlap or part. The text is parsed as a decimal instead, all values of a block at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

MAX_NS = 4 * 10**18
"""Times and lengths beyond this (the year 2096) are none, and sums of two of them stay within int64."""

MISSING = b"-"
"""A text that is no time."""

_DECIMAL = pl.Decimal(38, 3)
_SEPARATOR = "\x1f"
"""Stands in no JSON value, so that a line is one cell."""


def to_ns(texts: Sequence[bytes]) -> pl.Series:
    """Int64 nanoseconds of JSON values in microseconds, rounded to the nearest; null where one is no time.

    ``texts`` are raw JSON values: numbers, with fraction or exponent, or strings of such (as torch_npu writes
    them); none is empty.
    """
    if not texts:
        return pl.Series(dtype=pl.Int64)
    lines = b"\n".join(texts)
    if lines.count(b"\n") != len(texts) - 1:  # a value of several lines: an object, no time
        lines = b"\n".join([MISSING if b"\n" in bytes(text) else text for text in texts])
    table = pl.read_csv(
        lines.replace(b'"', b""),
        has_header=False,
        schema={"us": _DECIMAL},
        separator=_SEPARATOR,
        quote_char=None,
        ignore_errors=True,
        truncate_ragged_lines=True,
    )
    ns = (table["us"] * 1000).cast(pl.Int64, strict=False)
    least, most = ns.min(), ns.max()
    if least is not None and (least < -MAX_NS or most > MAX_NS):  # type: ignore[operator]  # integers
        ns = ns.to_frame("ns").select(pl.when(pl.col("ns").is_between(-MAX_NS, MAX_NS)).then("ns"))["ns"]
    return ns
