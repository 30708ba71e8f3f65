"""Logs of fairseq with JSON rows: ``[time][train_inner][INFO] - {...}`` (hydra) or ``time | INFO | train_inner | {...}``.

All numbers are text. ``num_updates`` is the step, ``update`` the epoch with its fraction. Rows of the channels
``train`` and ``valid`` put their name before each name themselves (``valid_loss``). Other lines are no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLosses, columns_of
from afterrun.loaders.jsonlog.table import JsonTable
from afterrun.loaders.limits import LENIENT_JSON
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisColumns
from afterrun.loaders.tables.cells import moment, whole
from afterrun.loaders.tables.textblocks import decode, decode_head, split_lines, text_blocks

_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d+)?"
_ROW = re.compile(
    rf"(?:\[({_TIME})\]\[(\w[\w.-]*)\]\[INFO\] - |({_TIME}) \| INFO \| (\w[\w.-]*) \| )(\{{\".*)", re.ASCII
)
_FAIRSEQ = re.compile(
    rf"^(?:\[{_TIME}\]\[fairseq[\w.]*\]\[\w+\] - |{_TIME} \| \w+ \| fairseq[\w.]* \| )", re.MULTILINE
)
_CHANNELS = frozenset({"train_inner", "train", "valid", "test", "train_epoch"})


class FairseqJson(Loader):
    """The log of a fairseq training with ``log_format: json``."""

    format = "fairseq-json"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """A line of fairseq's own loggers, or a JSON row of its channels (``train_inner``, ``valid``)."""
        text = decode_head(head)
        if _FAIRSEQ.search(text):
            return "'log_format': 'json'" in text or "log_format='json'" in text or _row(text) is not None
        return _row(text) is not None

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the rows; ``num_updates`` is the step."""
        losses = JsonLosses()
        yield from JsonTable(_blocks(source.path, losses), losses, make_axes=_axes).batches()


def _row(text: str) -> str | None:
    """The channel of the first row in a text, None where there is none."""
    return next((c for m in _ROW.finditer(text) if (c := m[2] or m[4]) in _CHANNELS), None)


def _blocks(path: Path, losses: JsonLosses) -> Iterator[JsonBlock]:
    for text in text_blocks(path):
        losses.too_long += text.too_long
        decoded, latin1 = decode(text.data)
        losses.latin1 |= latin1
        lines = split_lines(decoded)
        rows: list[Mapping[str, object]] = []
        clocks: list[int | None] = []
        for i, line in enumerate(lines):
            found = _ROW.search(line)
            if found is None or (found[2] or found[4]) not in _CHANNELS:
                continue
            row = _decoded(found[5])
            if row is not None:
                rows.append(row)
                clocks.append(moment(found[1] or found[3]))
            elif text.cut and i == len(lines) - 1:
                losses.half_line = text.first_line + i
            else:
                losses.bad.add(text.first_line + i)
        if rows:
            yield replace(columns_of(rows, losses), wall_ns=pl.Series(clocks, dtype=pl.Int64))


def _decoded(text: str) -> Mapping[str, object] | None:
    try:
        value, _ = LENIENT_JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _axes(block: JsonBlock) -> AxisColumns:
    """``update`` is finer than ``epoch``; the rows of each channel call their updates by its name."""
    step = _first(block, ("num_updates", "train_num_updates", "valid_num_updates", "test_num_updates"))
    epoch = _first(block, ("update", "epoch"))
    return AxisColumns(
        step=None if step is None else whole(step),
        epoch=None if epoch is None else epoch.fill_nan(None),
        wall_ns=block.wall_ns,
    )


def _first(block: JsonBlock, names: tuple[str, ...]) -> pl.Series | None:
    """The first of these columns that a row has a value in."""
    there = [block.numbers[n].alias(n) for n in names if n in block.numbers]
    return pl.select(pl.coalesce(there)).to_series() if there else None
