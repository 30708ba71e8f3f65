"""Names of an export: numbers of strings that stand in one table, ``StringIds``."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from afterrun.loaders.traces.nsys.store import Store

UNNAMED = "(unnamed)"
"""What a row is called whose name the export does not hold."""


class Names:
    """The strings of an export by their number."""

    def __init__(self, store: Store) -> None:
        frames = list(store.chunks("StringIds", ["id"], ["value"]))
        schema = {"id": pl.Int64, "value": pl.String}
        table = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
        self._table = table.drop_nulls().unique("id", keep="first")

    def of(self, ids: pl.Series) -> pl.DataFrame:
        """The strings of these numbers: ``id`` and ``value``, those that are known, each once."""
        wanted = ids.drop_nulls().unique().alias("id").to_frame()
        return wanted.join(self._table, on="id", how="inner").sort("id")


def joined(frame: pl.DataFrame, key: str, table: pl.DataFrame, fill: Mapping[str, str]) -> pl.DataFrame:
    """The frame with the columns of a small table, row by row; texts become dictionary codes, what is missing is filled."""
    texts = [pl.col(c).cast(pl.Categorical) for c in fill]
    out = frame.join(table.with_columns(texts), on=key, how="left", maintain_order="left")
    return out.with_columns(pl.col(c).fill_null(value) for c, value in fill.items())


def constant(value: str) -> pl.Expr:
    """One text for all rows, as a dictionary code."""
    return pl.lit(value, dtype=pl.Categorical)
