"""A history as one JSON document: lists of equal length by name, or a list of row objects.

``json.dump(history.history, f)`` after a Keras ``fit`` writes the first, a loop that appends dictionaries and
dumps them at the end the second. The row is the epoch where nothing else says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from afterrun.loaders.errors import LimitError, UnreadableError
from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLosses, columns_of
from afterrun.loaders.jsonlog.table import JsonTable
from afterrun.loaders.limits import LENIENT_JSON, MAX_JSON_BYTES, check_size, decode_json
from afterrun.loaders.names import canonical
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import EPOCH_NAMES, STEP_NAMES, AxisColumns, AxisRule, flat
from afterrun.loaders.tables.cells import whole
from afterrun.loaders.tables.textblocks import decode_head, text_blocks

_NUMBER = r"(?:-?[0-9][0-9.eE+-]*|NaN|-?Infinity|null)"
_LIST = re.compile(rf'"((?:[^"\\]|\\.)*)"\s*:\s*\[\s*(?={_NUMBER}\s*[,\]]|\])')
_KEY = re.compile(rf'"((?:[^"\\]|\\.)*)"\s*:\s*(?={_NUMBER}\s*[,}}\]]|")')
_AXES = frozenset(STEP_NAMES) | frozenset(EPOCH_NAMES)
_ROW = re.compile(r"\{\s*\"")
_KINDS = frozenset({"loss", "quality"})


class JsonHistory(Loader):
    """One JSON document with a list a metric (`history.json` of Keras) or with a list of rows."""

    format = "json-history"
    family = "curves"
    generic = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """An object of lists of numbers, or a list of objects, with a loss or a quality among the names."""
        if path.suffix.lower() not in (".json", ".txt", ""):
            return False
        text = decode_head(head).strip("\0").lstrip()
        if text.startswith("{"):
            first = _LIST.search(text)
            names = [m[1] for m in _LIST.finditer(text)]
            return first is not None and not text[1 : first.start()].strip() and _is_curve(names, axis=False)
        if re.match(r"\[\s*\{", text):
            return _is_curve([m[1] for m in _KEY.finditer(text)], axis=True)
        return False

    def load(self, source: Source) -> Iterator[Batch]:
        """All rows. Raises ``LimitError`` over ``MAX_JSON_BYTES`` and ``UnreadableError`` without a row."""
        check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
        text = b"".join(block.data for block in text_blocks(source.path)).decode("utf-8", "afterrun-latin1")
        losses = JsonLosses()
        value, notes, damaged = _document(source.name, text.strip("\0 \t\r\n"))
        block = _by_name(value) if isinstance(value, Mapping) else _by_row(value, losses)
        if block is None:
            raise UnreadableError(f"{source.name}: the JSON holds no rows and no lists of one length")
        # without an axis, a list of numbers a metric has one value an epoch
        told = any(flat(n) in _AXES for n in block.numbers)
        table = JsonTable([block], losses, AxisRule(), None if told else _rows)
        yield from table.batches()
        if notes or damaged:
            yield Batch(damaged=damaged, notes=notes)


def _is_curve(names: Sequence[str], *, axis: bool) -> bool:
    kinds = {canonical(n).kind for n in names}
    return bool(kinds & _KINDS) and (not axis or any(flat(n) in _AXES for n in names))


def _document(name: str, text: str) -> tuple[object, tuple[str, ...], int]:
    """(value, notes, number of damaged parts); of a damaged document the rows or lists that decode."""
    try:
        return decode_json(name, text), (), 0
    except (ValueError, LimitError):
        if text.startswith("["):
            rows, bad = _salvaged_rows(text)
            return rows, (f"the JSON is damaged: {len(rows)} rows were read one by one",), bad
        lists = _salvaged_lists(text)
        return lists, ("the JSON is damaged: every list was read up to where it is whole",), 1


def _salvaged_rows(text: str) -> tuple[list[object], int]:
    rows: list[object] = []
    at, bad = 1, 0
    while (start := _ROW.search(text, at)) is not None:
        try:
            row, at = LENIENT_JSON.raw_decode(text, start.start())
            rows.append(row)
        except (ValueError, RecursionError):
            bad += 1
            at = start.end()
            later = re.compile(r"\}\s*,\s*(?=\{)").search(text, at)
            at = len(text) if later is None else later.end()
    return rows, max(bad, 1)


def _salvaged_lists(text: str) -> dict[str, list[float | None]]:
    number = re.compile(rf"\s*({_NUMBER})\s*(?=[,\]])")
    lists: dict[str, list[float | None]] = {}
    for start in _LIST.finditer(text):
        values: list[float | None] = []
        at = start.end()
        while (match := number.match(text, at)) is not None:
            value = LENIENT_JSON.decode(match[1]) if _is_number(match[1]) else None
            values.append(None if value is None else float(value))
            at = match.end()
            if text[at : at + 1] != ",":
                break
            at += 1
        lists.setdefault(start[1], values)
    return lists


def _is_number(text: str) -> bool:
    try:
        LENIENT_JSON.decode(text)
    except ValueError:
        return False
    return True


def _by_name(value: Mapping[str, object]) -> JsonBlock | None:
    """Lists of numbers as columns; shorter ones (a metric added late, a cut) end early."""
    lists = {k.strip(): v for k, v in value.items() if isinstance(v, list) and v}
    columns: dict[str, pl.Series] = {}
    rows = max(map(len, lists.values()), default=0)
    for name, cells in lists.items():
        read = [float(c) if isinstance(c, (int, float)) else None for c in cells]
        if any(r is not None for r in read):
            columns[name] = pl.Series([*read, *[None] * (rows - len(read))], dtype=pl.Float64)
    return JsonBlock(rows, columns) if columns else None


def _by_row(value: object, losses: JsonLosses) -> JsonBlock | None:
    rows = [r for r in value if isinstance(r, dict)] if isinstance(value, list) else []
    return columns_of(rows, losses) if rows else None


def _rows(block: JsonBlock) -> AxisColumns:
    epoch = pl.Series(np.arange(block.rows, dtype=np.float64))
    return AxisColumns(step=whole(epoch), epoch=epoch)
