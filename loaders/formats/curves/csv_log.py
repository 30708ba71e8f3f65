"""Any other CSV or TSV that looks like the log of a training run.

Prefers refusing over inventing: a table is taken only where a column counts steps or epochs, or where a
column is named like a metric and all cells are numbers. Where a column of words tells the split of a row, or the name
of its metric, that goes into the tags (``afterrun.loaders.tables.labels``). Counters, profiler reports, exports of
monitoring systems, tables with one row a run, and data sets are left to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from afterrun.loaders.names import SPLIT_WORDS
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import EPOCH_NAMES, SOFT_STEP_NAMES, STEP_NAMES, flat, is_wall_name
from afterrun.loaders.tables.cells import is_nothing, moment, number
from afterrun.loaders.tables.delimited import Layout, peek
from afterrun.loaders.tables.labels import plan_labels
from afterrun.loaders.tables.wide import load_wide

_AXES = frozenset(STEP_NAMES) | (frozenset(EPOCH_NAMES) - {"epochs"})
_SOFT_AXES = frozenset(SOFT_STEP_NAMES) | {"epochs"}

_METRIC = re.compile(
    r"(?<![a-z])(?:loss(?:es)?|acc|accuracy|reward|rewards|lr|learning[ _-]?rate|perplexity|ppl|grad[ _-]?norm|"
    r"rmse|mse|mae|error|err|auc|f1|m?iou|dice|m?ap(?:50)?|bleu|wer|cer|psnr|ssim|fid|nll|elbo|bpb|"
    r"entropy|kl|rew|return|fitness)(?![a-z])"
)
_STRONG = re.compile(
    r"(?<![a-z])(?:loss(?:es)?|acc|accuracy|reward|rewards|lr|learning[ _-]?rate|perplexity|ppl|grad[ _-]?norm)(?![a-z])"
)

_FOREIGN = re.compile(
    r"\[%\]|\[mib\]|\[w\]|\[mhz\]|utilization[._](?:gpu|memory)|\(ns\)$|^time \(%\)$|"  # GPU tools
    r"^(?:kernel name|metric (?:name|value|unit)|section name|gpuid|timestampus|_measurement|_field|_value)$|"
    r"__m(?:in|ax)$|"  # the band of a W&B panel export
    r"^(?:state|nodelist|jobid|reqcpus|jobname)$|"  # run tables, Slurm
    r"[{}<>]|://|^version https"
)
_RUN_NAME = re.compile(
    r"^(?:run|run[ _]?name|run[ _]?id|name|trial(?:[ _]?(?:id|name))?|experiment(?:[ _]?(?:id|name))?|"
    r"model(?:[ _]?name)?|id|job|config)$"
)
_SETTING = re.compile(
    r"^(?:batch[ _]?size|seed|n?u?m?_?epochs|hidden\w*|n\w*_?layers|dropout|weight[ _]decay|optimizer|model|dataset)$"
)
_TABLE_SUFFIXES = frozenset({".csv", ".tsv"})
_PLAIN_SUFFIXES = _TABLE_SUFFIXES | {".log", ".txt", ""}
_DISTINCT_ROWS = 3


class CsvLog(Loader):
    """Generic CSV/TSV: a header of names, then rows of numbers; every numeric column is a tag."""

    format = "csv"
    family = "curves"
    generic = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A header with an axis or a metric in it over rows that are mostly numbers."""
        layout = peek(head)
        return layout is not None and _looks_like_curves(layout, path.suffix.lower())

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; axes are found by name and content (``afterrun.loaders.tables.axes``)."""
        yield from load_wide(source.path, wanted=source.wanted)


def _looks_like_curves(layout: Layout, suffix: str) -> bool:
    names = [n.lower() for n in layout.names]
    if any(_FOREIGN.search(n) for n in names) or any(c.startswith("#group") for c in layout.comments):
        return False
    spelled = [flat(n) for n in layout.names]
    axis = any(s in _AXES for s in spelled)
    soft = any(s in _SOFT_AXES for s in spelled)
    metric = any(_METRIC.search(s.replace("_", " ")) for s in spelled)
    if not layout.sample:
        return suffix in _TABLE_SUFFIXES and axis and (metric or len(names) > 1)
    long = (axis or soft) and _names_its_metrics(layout)
    share, words, rows = _numeric_share(layout)
    if long or share <= 0.5 or rows == 0 or _one_row_a_run(layout):
        return long
    if len(names) == 1:
        return suffix in _PLAIN_SUFFIXES and bool(_STRONG.search(spelled[0].replace("_", " "))) and not words
    if axis or (soft and metric):
        return _has_values(layout)
    strong = any(_STRONG.search(s.replace("_", " ")) for s in spelled)
    return strong and not words and not any(_SETTING.match(n) for n in names)


def _numeric_share(layout: Layout) -> tuple[float, int, int]:
    """Share of numbers among cells that hold something, number of words, rows that are mostly numbers.

    Words for a split take no share.
    """
    numeric = words = rows = splits = 0
    clocks = {i for i, name in enumerate(layout.names) if is_wall_name(name)}
    for row in layout.sample:
        held = [(i, c) for i, c in enumerate(row[: len(layout.names)]) if not is_nothing(c)]
        cells = [c for i, c in held if i not in clocks or moment(c) is None]  # a time is no word
        read = sum(1 for c in cells if number(c, decimal_comma=layout.decimal_comma) is not None)
        numeric += read
        words += len(cells) - read
        splits += sum(1 for c in cells if c.strip().lower() in SPLIT_WORDS)
        rows += bool(cells) and read * 2 >= len(cells)
    return numeric / max(numeric + words - splits, 1), words, rows


def _names_its_metrics(layout: Layout) -> bool:
    """Whether the table is long: a column of words names the metric of each row, another holds its value."""
    columns = [_column(layout, i) for i in range(len(layout.names))]
    filled = {i: cells for i, cells in enumerate(columns) if cells}
    read = {
        i: [number(c, decimal_comma=layout.decimal_comma) is not None for c in cells]
        for i, cells in filled.items()
    }
    words = {i: cells for i, cells in filled.items() if not any(read[i])}
    return plan_labels(layout.names, words, [i for i in filled if all(read[i])]).name is not None


def _column(layout: Layout, i: int) -> Sequence[str]:
    return [row[i] for row in layout.sample if len(row) > i and not is_nothing(row[i])]


def _has_values(layout: Layout) -> bool:
    """Whether two columns or more hold numbers: an axis and something along it."""
    filled = 0
    for i in range(len(layout.names)):
        cells = _column(layout, i)
        filled += any(number(c, decimal_comma=layout.decimal_comma) is not None for c in cells)
    return filled > 1


def _one_row_a_run(layout: Layout) -> bool:
    """Whether a column of run names never repeats itself: a summary, not a curve."""
    for i, name in enumerate(layout.names):
        if _RUN_NAME.match(name.lower()):
            cells = _column(layout, i)
            words = [c for c in cells if number(c) is None]
            if len(words) >= _DISTINCT_ROWS and len(set(words)) == len(words):
                return True
    return False
