"""Parameters that several sources of one run tell alike are told once."""

from __future__ import annotations

import polars as pl

_EXACT = 2.0**53
"""Below this size a float holds every whole number."""


def without_repeats(params: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``params`` of one run without those that a later one says too, in order.

    The same key with the same value in the same attempt and rank is one parameter; ``1`` and ``1.0`` are the same
    value. Different values stay, each with its source; the last of them stays the last.
    """
    number = pl.col("value").cast(pl.Float64, strict=False)
    told = pl.when(number.abs() < _EXACT).then(number.cast(pl.String)).otherwise("value")
    same = pl.struct("attempt", "rank", "key", told.alias("value"))
    return params.filter(same.is_last_distinct()) if len(params) > 1 else params
