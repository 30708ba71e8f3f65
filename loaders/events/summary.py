"""Hyper-parameters and session marks of event files.

Sources: tensorboard/plugins/hparams/{plugin_data,api}.proto, google/protobuf/struct.proto,
tensorflow/core/util/event.proto (SessionLog).
"""

from __future__ import annotations

import json
import math

from afterrun.loaders.protowire import BYTES, FIXED64, VARINT, Field, WireError, fields, float64, text

JSON_DEPTH = 20
"""Hyper-parameters nested deeper are taken for damage."""

_SESSION = {1: "start", 2: "finish", 3: "checkpoint"}


def hparams(view: memoryview, content: tuple[int, int]) -> dict[str, str]:
    """Name -> JSON text of each hyper-parameter in the ``session_start_info`` of plugin ``hparams``.

    Other records of that plugin (the experiment's ranges, the end of a session) hold none.
    """
    found = {}
    for part in fields(view, *content):
        if part.number != 3 or part.wire != BYTES:
            continue
        for entry in fields(view, part.at, part.end):
            if entry.number == 1 and entry.wire == BYTES:
                name, value = _entry(view, entry, 0)
                found[name] = json.dumps(value, ensure_ascii=False)
    return found


def _entry(view: memoryview, entry: Field, depth: int) -> tuple[str, object]:
    """One pair of a map from names to ``google.protobuf.Value``."""
    name, value = "", None
    for part in fields(view, entry.at, entry.end):
        if part.number == 1:
            name = text(view, part.at, part.end)
        elif part.number == 2 and part.wire == BYTES:
            value = _json(view, part, depth)
    return name, value


def _json(view: memoryview, item: Field, depth: int) -> object:
    """A ``google.protobuf.Value``. Non-finite numbers are named, whole ones written without a point."""
    if depth > JSON_DEPTH:
        raise WireError("nested too deep")
    value: object = None
    for part in fields(view, item.at, item.end):
        if part.number == 2 and part.wire == FIXED64:
            value = _number(float64(view, part.at))
        elif part.number == 3 and part.wire == BYTES:
            value = text(view, part.at, part.end)
        elif part.number == 4 and part.wire == VARINT:
            value = bool(part.value)
        elif part.number == 5 and part.wire == BYTES:
            entries = [x for x in fields(view, part.at, part.end) if x.number == 1 and x.wire == BYTES]
            value = dict(_entry(view, entry, depth + 1) for entry in entries)
        elif part.number == 6 and part.wire == BYTES:
            items = [x for x in fields(view, part.at, part.end) if x.number == 1 and x.wire == BYTES]
            value = [_json(view, x, depth + 1) for x in items]
    return value


def _number(number: float) -> float | int | str:
    if math.isfinite(number):
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def session(view: memoryview, part: Field) -> tuple[str, str] | None:
    """Kind of mark and text of a ``SessionLog``: the path of a checkpoint, or a message."""
    kind, words = None, ""
    for item in fields(view, part.at, part.end):
        if item.number == 1 and item.wire == VARINT:
            kind = _SESSION.get(item.value)
        elif item.number in (2, 3) and item.wire == BYTES:
            words = text(view, item.at, item.end)
    return None if kind is None else (kind, words)
