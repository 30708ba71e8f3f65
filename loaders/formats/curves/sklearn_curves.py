"""Tables of scikit-learn's ``learning_curve``: scores of training and test by the number of training samples.

As CSV with columns such as ``train_size``, ``train_score_mean``, ``train_score_std``, or one column a fold; as
JSON with the three arrays that the function returns. The step is the number of samples. A mean has the band of
its standard deviation; where only folds are given, their mean and standard deviation are computed (population,
as the examples of scikit-learn draw it) and stand beside the folds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from afterrun.loaders.errors import LimitError, UnreadableError
from afterrun.loaders.limits import MAX_JSON_BYTES, check_size, decode_json
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisColumns, flat
from afterrun.loaders.tables.cells import numbers, whole
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.reader import TableReader
from afterrun.loaders.tables.textblocks import decode_head
from afterrun.loaders.tables.wide import melt

_SIZE = re.compile(
    r"(?:train(?:ing)?_(?:set_)?(?:sizes?|examples|samples)(?:_abs)?|n_train(?:ing)?_samples|n_samples)"
)
_SCORE = re.compile(
    r"(?P<split>train(?:ing)?|test|val(?:id(?:ation)?)?|cv|cross_validation)_(?:scores?|mean|std|accuracy|loss|error)\w*(?:\[\d+\])?"
    r"|(?:mean|std|avg)_(?P<split2>train(?:ing)?|test|val\w*)_scores?|split\d+_(?P<split3>train|test)_scores?"
)
_STD = re.compile(r"(?:^std_|_std(?=_|$)|_std$)")
_FOLD = re.compile(r"^split\d+_|(?:_?(?:fold|cv|split)?_?\d+|\[\d+\])$")
_JSON_SIZE = re.compile(r'"(train_sizes(?:_abs)?)"\s*:\s*\[')


class SklearnLearningCurve(Loader):
    """A learning curve of scikit-learn: scores by the number of training samples, as CSV or JSON."""

    format = "sklearn-learning-curve"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """A column of training sizes beside scores of training or test, and no epoch or step."""
        text = decode_head(head).lstrip()
        if text.startswith("{"):
            return _JSON_SIZE.search(text) is not None and "_score" in text
        layout = peek(head)
        if layout is None:
            return False
        names = [flat(n) for n in layout.names]
        sized = sum(1 for n in names if _SIZE.fullmatch(n))
        return sized == 1 and any(_SCORE.fullmatch(n) for n in names) and not {"epoch", "step"} & set(names)

    def load(self, source: Source) -> Iterator[Batch]:
        """All rows in one batch. Raises ``UnreadableError`` where there are no sizes."""
        with source.path.open("rb") as file:
            is_json = file.read(1 << 12).lstrip()[:1] == b"{"
        columns, damaged, notes = _from_json(source) if is_json else _from_table(source)
        size = next((n for n in columns if _SIZE.fullmatch(flat(n))), None)
        if size is None:
            raise UnreadableError(f"{source.name}: no column of training sizes")
        sizes = columns.pop(size)
        rows = len(sizes)
        values, bands, computed = _aggregated(columns)
        if not values:
            raise UnreadableError(f"{source.name}: no column of scores")
        axes = AxisColumns(step=whole(sizes))
        frame = melt(values, axes, np.ones(rows, dtype=np.bool_), 0, bands)
        if computed:
            notes = (*notes, f"computed from folds: {', '.join(computed)}")
        yield Batch(
            frames={"metrics": frame},
            damaged=damaged,
            notes=(*notes, "the step is the number of training samples"),
        )


Columns = dict[str, pl.Series]


def _from_table(source: Source) -> tuple[Columns, int, tuple[str, ...]]:
    reader = TableReader(source.path)
    parts: dict[str, list[pl.Series]] = {}
    words: dict[str, int] = {}
    comma = reader.layout.decimal_comma
    for block in reader.blocks():
        for name, cells in zip(block.names, block.cells, strict=True):
            read, mask = numbers(cells, decimal_comma=comma)
            parts.setdefault(name, []).append(read)
            words[name] = words.get(name, 0) + (0 if mask is None else int(mask.sum()))
    columns = {name: pl.concat(p) for name, p in parts.items()}
    rows = max(map(len, columns.values()), default=0)
    columns = {n: c for n, c in columns.items() if len(c) == rows and c.null_count() < rows}
    bad = {n: words[n] for n in columns if words[n]}
    notes = [f"{n!r}: cells without a number left out: {count}" for n, count in bad.items()]
    return columns, reader.losses.damaged + sum(bad.values()), (*reader.losses.notes(), *notes)


def _from_json(source: Source) -> tuple[Columns, int, tuple[str, ...]]:
    check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
    try:
        value = decode_json(source.name, source.path.read_text("utf-8-sig", "replace"))
    except (ValueError, LimitError) as error:
        raise UnreadableError(f"{source.name}: the JSON is damaged") from error
    columns: Columns = {}
    sizes = value.get("train_sizes") or value.get("train_sizes_abs") or [] if isinstance(value, dict) else []
    for name, cells in value.items() if isinstance(value, dict) else ():
        if not isinstance(cells, list) or len(cells) != len(sizes):
            continue
        folds = max((len(c) for c in cells if isinstance(c, list)), default=0)
        if not folds:
            columns[name] = pl.Series([_number(c) for c in cells], dtype=pl.Float64)
        for i in range(folds):
            inner = [_number(c[i]) if isinstance(c, list) and i < len(c) else None for c in cells]
            columns[f"{name}[{i}]"] = pl.Series(inner, dtype=pl.Float64)
    return columns, 0, ()


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _aggregated(
    columns: Mapping[str, pl.Series],
) -> tuple[Columns, dict[str, tuple[pl.Series, pl.Series]], list[str]]:
    """(values by tag, bands of the means, tags that were computed from folds)."""
    values = dict(columns)
    bands: dict[str, tuple[pl.Series, pl.Series]] = {}
    for name, column in columns.items():
        spread = next(
            (columns[s] for s in columns if _STD.search(s) and _without_std(s) == _without_mean(name)), None
        )
        if spread is not None and not _STD.search(name):
            bands[name] = (column - spread, column + spread)
    folds: dict[str, list[pl.Series]] = {}
    for name, column in columns.items():
        if _FOLD.search(name) and _SCORE.fullmatch(flat(name)):
            folds.setdefault(_FOLD.sub("", name), []).append(column)
    computed = []
    for name, parts in folds.items():
        if len(parts) > 1 and not any(_without_mean(n) == _without_mean(name) for n in columns):
            grid = pl.DataFrame([p.alias(str(i)) for i, p in enumerate(parts)])
            mean = grid.select(pl.mean_horizontal(pl.all())).to_series()
            spread = pl.Series(grid.to_numpy().std(axis=1))
            values = {name: mean, **values}
            bands[name] = (mean - spread, mean + spread)
            computed.append(name)
    return values, bands, computed


def _without_std(name: str) -> str:
    return _bare(_STD.sub("", flat(name)))


def _without_mean(name: str) -> str:
    return _bare(re.sub(r"(?:^mean_|^avg_|_mean(?=_|$))", "", flat(name)))


def _bare(name: str) -> str:
    return re.sub(r"_scores?$", "", name)
