"""``trainer_state.json`` of the Hugging Face ``Trainer``.

``log_history`` is a list of flat objects: training rows (``loss``, ``learning_rate``, ``grad_norm``), evaluation
rows (``eval_*``, several on one step where there are groups), a final row (``train_runtime`` ...), and what
custom trainers add. ``step`` and ``epoch`` of a row are its axes; tags are the keys as written. NaN and
infinities stand bare in the file. The file is rewritten whole at each checkpoint.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import LENIENT_JSON, MAX_JSON_BYTES, MAX_JSON_DEPTH, check_size, decode_json
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.cells import is_nothing, number
from afterrun.loaders.tables.textblocks import decode_head, encoding_of

PARAM_KEYS = (
    "best_global_step", "best_metric", "best_model_checkpoint", "eval_steps", "global_step", "is_hyper_param_search",
    "logging_steps", "max_steps", "num_train_epochs", "save_steps", "train_batch_size", "trial_name",
)  # fmt: skip
"""Top-level scalars that become parameters; of a path only its last part."""

_NAME = "trainer_state.json"
_STEP_LIMIT = 2**63
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_SCALAR = re.compile(r'"(\w+)"\s*:\s*("(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null)')
_NEXT_ROW = re.compile(r"\}\s*,\s*(?=\{)")
_GAP = re.compile(r"[\s,]*")


@dataclass(slots=True)
class _State:
    """What was found in one file."""

    scalars: Mapping[str, Any] = field(default_factory=dict)
    rows: list[Any] = field(default_factory=list)
    damaged: int = 0
    notes: list[str] = field(default_factory=list)


class HfTrainer(Loader):
    """The state file of the Hugging Face Trainer, whole, cut or damaged."""

    format = "hf-trainer"
    family = "curves"
    snapshot = True

    def sniff(self, path: Path, head: bytes) -> bool:
        """A JSON object with ``log_history`` near its beginning, or any object by the Trainer's file name."""
        text = decode_head(head).strip().strip("\0")
        if path.name == _NAME:
            return not text or text.startswith("{")
        return text.startswith("{") and '"log_history"' in text

    def load(self, source: Source) -> Iterator[Batch]:
        """All rows in one batch. Raises ``LimitError`` over ``MAX_JSON_BYTES``."""
        check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
        text, notes = _text(source.path)
        if not text.strip().strip("\0"):
            yield Batch(notes=("the file holds no text",), status="empty")
            return
        state = _read(source.name, text)
        rows = _Rows()
        for row in state.rows:
            rows.add(row)
        frames = {"metrics": rows.frame()} if rows.values else {}
        frames |= _params(state.scalars)
        finish = _finish(state.scalars, rows)
        if finish is not None:
            frames["marks"] = finish
        all_notes = [*notes, *state.notes, *rows.notes()]
        yield Batch(frames=frames, damaged=state.damaged + rows.damaged, notes=tuple(all_notes))


def _text(path: Path) -> tuple[str, list[str]]:
    data = path.read_bytes()
    encoding = encoding_of(data[:256])
    if encoding.startswith("utf-16"):
        return data.decode(encoding, "replace").removeprefix("\ufeff"), []
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        return data.decode("latin-1"), ["bytes that are not UTF-8 were read as Latin-1"]


def _read(name: str, text: str) -> _State:
    """The state, decoded as one value or, where that fails, row by row."""
    try:
        value = decode_json(name, text)
    except (ValueError, LimitError):
        return _salvage(text)
    if not isinstance(value, dict):
        return _State(damaged=1, notes=["the file is JSON, but no object"])
    history = value.get("log_history", [])
    if not isinstance(history, list):
        return _State(value, damaged=1, notes=["log_history is no list"])
    return _State(value, history)


def _salvage(text: str) -> _State:
    """Rows of a cut or damaged file, each decoded on its own; a bad one costs itself."""
    start = _HISTORY.search(text)
    if start is None:
        return _State(_scalars(text), damaged=1, notes=["the JSON is damaged and holds no log_history"])
    rows: list[Any] = []
    at, bad, closed = start.end(), 0, False
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if at >= len(text):
            break
        if text[at] == "]":
            closed = True
            break
        try:
            row, at = LENIENT_JSON.raw_decode(text, at)
            rows.append(row)
        except (ValueError, RecursionError):
            bad += 1
            later = _NEXT_ROW.search(text, at)
            at = _end_of_list(text, at) if later is None else later.end()
    note = (
        f"the JSON is damaged: {len(rows)} rows of log_history were read one by one, {bad} could not be"
        if closed
        else f"the file ends within log_history: the {len(rows)} whole rows before the cut were read"
    )
    outside = text[: start.start()] + (text[at:] if closed else "")
    return _State(_scalars(outside), rows, max(bad, 1), [note])


def _end_of_list(text: str, at: int) -> int:
    """Where the list of rows closes after a damaged last row; the end of the text where it does not."""
    close = re.compile(r"\}\s*\]").search(text, at)
    return close.end() - 1 if close else len(text)


def _scalars(text: str) -> dict[str, Any]:
    """Known top-level scalars by pattern, for a file that does not decode; the first of a key counts."""
    found: dict[str, Any] = {}
    for match in _SCALAR.finditer(text):
        if match[1] in PARAM_KEYS and match[1] not in found:
            try:
                found[match[1]] = LENIENT_JSON.decode(match[2])
            except ValueError:
                continue
    return found


class _Rows:
    """Rows of ``log_history`` as columns of ``metrics``."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.steps: list[int | None] = []
        self.epochs: list[float | None] = []
        self.tokens: list[int | None] = []
        self.values: list[float] = []
        self.damaged = 0
        self.final_step: int | None = None
        self._skipped: Counter[str] = Counter()

    def add(self, row: object) -> None:
        """One entry; one that is no object, or whose step is no whole number, is damaged."""
        if not isinstance(row, dict):
            self.damaged += 1
            return
        step = _whole(row["step"]) if row.get("step") is not None else None
        if step is None and row.get("step") is not None:
            self.damaged += 1
            return
        epoch = _number(row.get("epoch"))
        epoch = epoch if epoch is not None and math.isfinite(epoch) else None
        tokens = _whole(row.get("num_input_tokens_seen"))
        if (
            "train_runtime" in row and "loss" not in row
        ):  # rows of training have it too where tokens are counted
            self.final_step = step
        for key, value in row.items():
            read = _number(value)
            if read is None:
                if value is not None and not (isinstance(value, str) and is_nothing(value)):
                    self._skipped[key] += 1
                continue
            self.tags.append(key)
            self.steps.append(step)
            self.epochs.append(epoch)
            self.tokens.append(tokens)
            self.values.append(read)

    def frame(self) -> pl.DataFrame:
        """Everything added so far, numbered in write order."""
        return pl.DataFrame(
            {
                "tag": pl.Series(self.tags, dtype=pl.String),
                "seq": pl.int_range(len(self.tags), eager=True),
                "step": pl.Series(self.steps, dtype=pl.Int64),
                "epoch": pl.Series(self.epochs, dtype=pl.Float64),
                "tokens": pl.Series(self.tokens, dtype=pl.Int64),
                "value": pl.Series(self.values, dtype=pl.Float64),
            }
        )

    def notes(self) -> Iterator[str]:
        """What was left out, by key."""
        if self.damaged:
            yield f"{self.damaged} rows of log_history are no objects or have no numeric step"
        if self._skipped:
            keys = ", ".join(f"{k} ({n})" for k, n in self._skipped.most_common(8))
            yield f"values that are no numbers were left out: {keys}"


def _number(value: object) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    return number(value.strip()) if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    """A whole number within int64; floats count where they are whole."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if -_STEP_LIMIT <= value < _STEP_LIMIT else None


def _params(scalars: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    found: dict[str, str] = {}
    for key in PARAM_KEYS:
        value = scalars.get(key)
        if key == "best_model_checkpoint" and isinstance(value, str):
            value = re.split(r"[/\\]", value.rstrip("/\\"))[-1]
        if isinstance(value, (str, int, float)):
            found[key] = json.dumps(value)
    found |= {k: json.dumps(v) for k, v in _flatten("trial_params", scalars.get("trial_params"))}
    return {"params": pl.DataFrame({"key": [*found], "value": [*found.values()]})} if found else {}


def _flatten(prefix: str, value: object, depth: int = 0) -> Iterator[tuple[str, str | int | float]]:
    """Scalars of a nested object with dotted keys."""
    if isinstance(value, dict) and depth < MAX_JSON_DEPTH:
        for key, inner in value.items():
            yield from _flatten(f"{prefix}.{key}", inner, depth + 1)
    elif isinstance(value, (str, int, float)):
        yield prefix, value


def _finish(scalars: Mapping[str, Any], rows: _Rows) -> pl.DataFrame | None:
    """The ``finish`` mark: all steps were made, or ``train()`` returned and logged its final row.

    A final row that is not at the last step belongs to an earlier call before a resume.
    """
    step, planned = _whole(scalars.get("global_step")), _whole(scalars.get("max_steps"))
    if step is None:
        return None
    if planned is not None and 0 < planned <= step:
        text = f"global_step {step} reached max_steps {planned}"
    elif rows.final_step == step:
        text = f"the trainer logged its final row at step {step}"
    else:
        return None
    return pl.DataFrame({"step": [step], "kind": ["finish"], "text": [text]})
