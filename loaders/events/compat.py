"""Event files through tbparse: slow, another pair of eyes.

tbparse stops without a word at the first bad checksum and keeps the scalars of TF2 apart as tensors, so
afterrun reads event files itself (``formats/curves/tensorboard``); this is what it is held against.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl


def read_with_tbparse(path: Path) -> pl.DataFrame:
    """Scalars of one event file as ``tag``, ``step``, ``wall_s``, ``value``; those of TF2 are not among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas deprecations inside tbparse
        from tbparse import SummaryReader  # noqa: PLC0415  # brings pandas and tensorboard, 0.4 s

        found = SummaryReader(str(path), extra_columns={"wall_time"}).scalars
    columns = {"tag": pl.String, "step": pl.Int64, "wall_time": pl.Float64, "value": pl.Float64}
    rows = {name: found[name].tolist() if name in found else [] for name in columns}
    return pl.DataFrame(rows, schema=columns).rename({"wall_time": "wall_s"})
