"""MLPerf result lines: ``:::MLLOG {json}`` and, until v0.6, ``:::MLPv0.5.0 benchmark time (file:line) key: value``.

Every rank writes them, and some stand glued behind a progress bar. Losses and accuracies are metrics, intervals are
marks, all else that has a value is a setting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from afterrun.loaders.textlog.grammar import Axes, Clock, Field, Grammar, Number, Record, Skeleton
from afterrun.loaders.textlog.tokens import NUM

_START = re.compile(r":::(?:MLLOG|MLP(?:v[0-9.]+)?) ")
_OLD = re.compile(rf":::MLP\S* \S+ ({NUM}) \([^)]*\) (?P<key>\w+)(?:: (?P<value>.*))?")
_METRIC = re.compile(r"loss|accuracy|error|bleu|hit_rate|auc|_map\b|dice|wer\b", re.IGNORECASE)
_SETTING = re.compile(r"target|thresh|smoothing|scal|_opt_|opt_")
_MARKS = {
    "run_start": "start", "run_stop": "finish", "run_final": "finish", "eval_start": "eval", "checkpoint": "checkpoint",
}  # fmt: skip
_MILLI_NS, _SECOND_NS = 1_000_000, 1_000_000_000


class MlPerf(Grammar):
    """MLPerf's logging, old and new."""

    name = "mlperf"
    probes = (":::ml",)

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record for each entry."""
        begins = [m.start() for m in _START.finditer(line.text)]
        for begin, end in zip(begins, [*begins[1:], len(line.text)], strict=False):
            part = line.part(begin, end)
            if part.text.startswith(":::MLLOG"):
                yield from _entry(part)
            else:
                yield from _old_entry(part)

    def params(self, line: str) -> Iterable[tuple[str, str]]:
        """The setting that an entry tells."""
        for found in re.finditer(r":::MLLOG (\{.*\})", line):
            try:
                entry = json.loads(found[1])
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict) and isinstance(entry.get("value"), (str, int, float)):
                yield str(entry.get("key")), json.dumps(entry["value"])
        old = _OLD.search(_masked(line))
        if old and old["value"]:
            text = line[line.index(f" {old['key']}: ") + len(old["key"]) + 3 :].strip()
            yield old["key"], text if re.fullmatch(r"-?[0-9.]+(?:e-?[0-9]+)?", text) else json.dumps(text)


def _masked(line: str) -> str:
    """The time of an old entry as in its skeleton."""
    return re.sub(r"(:::MLP\S* \S+ )[0-9.]+", rf"\1{NUM}", line)


def _slots(text: str, first: int) -> str:
    """The text with every number replaced by its slot, so that what is parsed says where numbers stand."""
    parts = text.split(NUM)
    return "".join(f"{p}{first + i}" if i < len(parts) - 1 else p for i, p in enumerate(parts))


def _entry(part: Skeleton) -> Iterable[Record]:
    body = part.text.find("{")
    try:
        entry = json.JSONDecoder().raw_decode(_slots(part.text[body:], part.slot(body)))[0]
    except (ValueError, RecursionError):
        return
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
        return
    metadata = entry.get("metadata")
    meta: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    time = entry.get("time_ms")
    clock = Clock(since=time, unit_ns=_MILLI_NS) if isinstance(time, int) else None
    yield _record(entry["key"], entry.get("value"), meta, clock, str(meta.get("status", "")))


def _old_entry(part: Skeleton) -> Iterable[Record]:
    found = _OLD.match(part.text)
    if found is None:
        return
    clock = Clock(since=part.slot(found.start(1)), unit_ns=_SECOND_NS)
    value: Any = None
    if found["value"]:
        try:
            value = json.loads(_slots(found["value"], part.slot(found.start("value"))))
        except (ValueError, RecursionError):
            value = found["value"]
    meta = value if isinstance(value, dict) else {}
    status = str(meta.get("success", meta.get("status", "")))
    yield _record(found["key"], meta.get("value", value), meta, clock, status)


def _record(key: str, value: Any, meta: Mapping[str, Any], clock: Clock | None, status: str) -> Record:
    """One entry; whole numbers in ``value`` and ``meta`` are slots."""
    step = next((meta[k] for k in ("step_num", "iteration", "samples_count") if _is_slot(meta.get(k))), None)
    epoch = next((meta[k] for k in ("epoch_num", "epoch", "first_epoch_num") if _is_slot(meta.get(k))), None)
    axes = Axes(step=None if step is None else Number(step), epoch=None if epoch is None else Number(epoch))
    if key in _MARKS:
        kind = _MARKS[key]
        text = f"{key} {status}".strip()
        kind = "stop" if kind == "finish" and status.lower() in ("aborted", "false") else kind
        return Record(axes=axes, clock=clock, notice=(kind, text), sure=False)
    fields: list[Field] = []
    if _is_slot(value) and _METRIC.search(key) and not _SETTING.search(key):
        name = meta.get("metric")
        fields.append(
            Field(f"{key}/{name}" if isinstance(name, str) and NUM not in name else key, Number(value))
        )
    elif key == "tracked_stats" and isinstance(value, dict):
        fields += [Field(str(k), Number(v)) for k, v in value.items() if _is_slot(v)]
    if fields and _is_slot(meta.get("lr")):
        fields.append(Field("lr", Number(meta["lr"])))
    return Record(
        fields=tuple(fields),
        axes=axes,
        clock=clock,
        params=not fields and value is not None,
        sure=bool(fields),
    )


def _is_slot(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
