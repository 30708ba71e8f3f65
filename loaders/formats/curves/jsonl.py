"""Any other JSON lines that look like the log of a training run.

Prefers refusing over inventing: a file is taken where its rows have an axis and something along it, or all
numbers and a metric among them. Data sets, conversations, tables with one row a run, and messages of services
are left to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.jsonlog.lines import JsonLines
from afterrun.loaders.jsonlog.peek import Peek, peek_rows
from afterrun.loaders.jsonlog.table import SPLIT_KEYS, JsonTable
from afterrun.loaders.names import canonical
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import EPOCH_NAMES, SOFT_STEP_NAMES, STEP_NAMES, flat

_AXES = frozenset(STEP_NAMES) | (frozenset(EPOCH_NAMES) - {"epochs"})
_SOFT_AXES = frozenset(SOFT_STEP_NAMES)
_KINDS = frozenset({"loss", "quality", "rate", "gradient", "throughput", "time"})
_STRONG_KINDS = frozenset({"loss", "quality"})

_DATA = re.compile(
    r"^(?:text|prompts?|messages?|instruction|content|input|output|question|answers?|completion|response|conversations?|"
    r"chosen|rejected|document|sentences?|tokens_ids|input_ids|url|image|audio|label|labels|title|body|code|context)(?:[/\[]|$)",
    re.IGNORECASE,
)
_RUN_NAME = re.compile(
    r"^(?:run|run_?name|run_?id|name|trial(?:_?(?:id|name))?|experiment\w*|model(?:_?name)?|id|job|config|task)$"
)
_SETTING = re.compile(
    r"^(?:batch_?size|seed|(?:n|num|max)_?epochs?|epochs|hidden\w*|n\w*_?layers|dropout|weight_decay|optimizer|model|dataset)$"
)
_SUFFIXES = frozenset({".jsonl", ".ndjson", ".json", ".log", ".txt", ""})
_LINES_SUFFIXES = frozenset({".jsonl", ".ndjson"})
_SUMMARIES = frozenset({"wandb-summary.json", "wandb-metadata.json"})


class Jsonl(Loader):
    """Generic JSON lines: an object a row; every number is a tag, nested names are joined by `/`."""

    format = "jsonl"
    family = "curves"
    generic = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """Objects a line with an axis and numbers along it, or with a metric among numbers only."""
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES or path.name in _SUMMARIES:
            return False
        peek = peek_rows(head)
        return peek is not None and _looks_like_curves(peek, lines=suffix in _LINES_SUFFIXES)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; axes are found by name and content (``afterrun.loaders.tables.axes``)."""
        lines = JsonLines(source.path)
        yield from JsonTable(lines.blocks(), lines.losses).batches()


def _looks_like_curves(peek: Peek, *, lines: bool) -> bool:
    names = {n: flat(n) for n in peek.numbers}
    axes = {n for n, spelled in names.items() if spelled in _AXES}
    soft = {n for n, spelled in names.items() if spelled in _SOFT_AXES} - axes
    kinds = {canonical(n).kind for n in names if n not in axes | soft}
    if any(_DATA.match(n) for n in peek.words.keys() | peek.containers) and not (
        axes and kinds & _STRONG_KINDS
    ):
        return False
    if peek.rows == 1 and not peek.cut and not lines and any(_SETTING.match(s) for s in names.values()):
        return False
    if axes or (soft and kinds & _KINDS):
        return len(names) > 1
    words = {n for n in peek.words if n.lower() not in SPLIT_KEYS}
    settings = any(_SETTING.match(s) or _RUN_NAME.match(s) for s in names.values())
    return bool(kinds & _STRONG_KINDS) and not words and not settings and (lines or peek.rows > 1)
