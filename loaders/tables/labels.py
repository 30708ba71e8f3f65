"""Columns of words that say what the numbers of a row are: the set it was measured on, or the name of the metric.

A table with ``epoch,phase,loss`` holds two curves in one column, told apart by ``phase``; one with
``step,metric,value`` holds all of them in one. Their tags become ``train/loss`` and whatever ``metric`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from afterrun.loaders.names import SPLIT_WORDS
from afterrun.loaders.tables.axes import flat
from afterrun.loaders.tables.cells import is_nothing

NAME_COLUMNS = (
    "metric",
    "tag",
    "metric_name",
    "name",
    "key",
    "variable",
    "series",
    "scalar",
    "measure",
    "quantity",
)
"""Names of the column that names metrics, most telling first."""

VALUE_COLUMNS = ("value", "metric_value", "val", "values")


@dataclass(frozen=True, slots=True)
class Labels:
    """Positions of the column that names the split, of the one that names the metric and of its values."""

    split: int | None = None
    name: int | None = None
    value: int | None = None

    def __bool__(self) -> bool:
        """Whether rows have a label."""
        return self.split is not None or self.name is not None


def plan_labels(names: Sequence[str], words: Mapping[int, Sequence[str]], numeric: Sequence[int]) -> Labels:
    """The label columns of a table. ``words``: the distinct words of the columns that hold words."""
    spelled = [flat(n) for n in names]
    value = _first(spelled, VALUE_COLUMNS, numeric)
    name = _first(spelled, NAME_COLUMNS, list(words)) if value is not None else None
    split = next((i for i, texts in words.items() if i != name and _names_splits(texts)), None)
    return Labels(split, name, None if name is None else value)


def row_labels(labels: Labels, cells: pl.DataFrame) -> pl.Series:
    """Label of each row, null where its cells are empty: ``train``, ``loss`` or ``train/loss``."""
    columns = [cells[str(i)] for i in (labels.split, labels.name) if i is not None]
    texts = [_text(c) for c in columns]
    if len(texts) == 1:
        return texts[0]
    told = pl.DataFrame({"split": texts[0], "name": texts[1]})
    named_so = {n: _says_split(n) for n in texts[1].unique().drop_nulls()}
    said = pl.col("name").replace_strict(named_so, default=False, return_dtype=pl.Boolean)
    prefix = pl.when(said).then(None).otherwise("split")
    return told.select(pl.concat_str(prefix, "name", separator="/", ignore_nulls=True)).to_series()


def labelled(
    frame: pl.DataFrame,
    values: Mapping[str, pl.Series],
    keep: NDArray[np.bool_],
    label: pl.Series,
    plain: set[str],
) -> pl.DataFrame:
    """A melted frame with the labels of its rows in its tags.

    ``values`` and ``keep`` are what was melted; tags in ``plain`` stay as they are. A value column is called by its
    label alone.
    """
    counts = keep * sum(c.is_not_null().to_numpy().astype(np.int64) for c in values.values())
    rows = pl.Series(np.repeat(np.arange(len(keep), dtype=np.uint32), counts))
    pairs = pl.DataFrame({"label": label.gather(rows), "tag": frame["tag"].cast(pl.String)})
    distinct = pairs.unique(maintain_order=True)
    new = [_tag(a, b, plain) for a, b in distinct.iter_rows()]
    table = distinct.with_columns(new=pl.Series(new, dtype=pl.Categorical))
    tags = pairs.join(table, on=["label", "tag"], how="left", nulls_equal=True, maintain_order="left")["new"]
    return frame.with_columns(tag=tags)


def _tag(label: str | None, tag: str, plain: set[str]) -> str:
    if label is None or tag in plain:
        return tag
    if flat(tag) in VALUE_COLUMNS:
        return label
    return tag if label.lower() in SPLIT_WORDS and _says_split(tag) else f"{label}/{tag}"


def _first(spelled: Sequence[str], wanted: Sequence[str], among: Sequence[int]) -> int | None:
    return next((i for name in wanted for i in among if spelled[i] == name), None)


def _names_splits(texts: Sequence[str]) -> bool:
    return bool(texts) and all(t.lower() in SPLIT_WORDS for t in texts)


def _says_split(tag: str) -> bool:
    """Whether a name has a word for a set in it."""
    return bool(SPLIT_WORDS.keys() & set(flat(tag).replace("/", "_").replace(".", "_").split("_")))


def _text(cells: pl.Series) -> pl.Series:
    """Stripped words of a column, null where it holds nothing."""
    if cells.dtype != pl.String:
        return pl.repeat(None, len(cells), dtype=pl.String, eager=True)
    stripped = cells.str.strip_chars()
    empty = [t for t in stripped.unique().drop_nulls() if is_nothing(t)]
    return stripped.replace(empty, None) if empty else stripped
