"""The machine-readable half of a report: ``findings.json`` and its schema, ``summary.csv``, ``data/*.parquet``.

Nothing here knows the clock, the machine or the order in which files were found: the same analysis
gives the same bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from afterrun.analyzer.finding import Finding, jsonable, onset_order
from afterrun.loaders.store import replacing
from afterrun.plots.report.summary import CurveSummary, RunSummary
from afterrun.plots.report.text import csv_cell

NON_FINITE = ("NaN", "Infinity", "-Infinity")
"""How numbers that JSON cannot hold are written."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """``findings.json``: every verdict of every pass, and the runs they are about."""

    version: int = 1
    findings: tuple[Finding, ...]
    """By run, code and onset."""
    runs: tuple[RunSummary, ...]
    """By name."""
    ledger: tuple[dict[str, Any], ...] = ()
    """GPU time by cause; empty where it was not computed."""


def write_text(path: Path, text: str) -> Path:
    """UTF-8 with ``\\n``; characters that are none (lone surrogates) as ``\\udc80`` in words."""
    with replacing(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    return path


def _utf8(x: Any) -> Any:
    """Every string as UTF-8 can hold it: bytes of file names that are none become ``\\udc80`` in words."""
    if isinstance(x, str):
        return x.encode("utf-8", "backslashreplace").decode()
    if isinstance(x, dict):
        return {_utf8(k): _utf8(v) for k, v in x.items()}
    return [_utf8(v) for v in x] if isinstance(x, list) else x


def findings_json(findings: Sequence[Finding], runs: Mapping[str, RunSummary]) -> bytes:
    """The document as strict JSON, one value a line so that two reports can be compared by ``diff``."""
    document = Document(
        findings=tuple(sorted(findings, key=_order)),
        runs=tuple(runs[name] for name in sorted(runs)),
    )
    plain = _utf8(jsonable(msgspec.to_builtins(document)))
    return msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n"


def _order(f: Finding) -> tuple[object, ...]:
    rank = -1 if f.rank is None else f.rank
    return (*onset_order(f), rank, f.status, f.title, msgspec.json.encode(jsonable(f.values), order="sorted"))


def findings_schema() -> dict[str, Any]:
    """The JSON Schema of ``findings.json``, made from the types that write it."""
    schema = msgspec.json.schema(Document)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "afterrun findings.json, version 1"
    document = schema["$defs"]["Document"]
    document["properties"]["version"] = {"const": 1}
    document["required"] = sorted({*document["required"], "version", "ledger"})
    _allow_non_finite(schema)
    return schema


def _allow_non_finite(node: Any) -> None:
    """Wherever a number may stand, the three strings may: the run recorded them."""
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        if child == {"type": "number"}:
            node[key] = {"anyOf": [child, {"enum": list(NON_FINITE)}]}
        elif isinstance(child, (dict, list)):
            _allow_non_finite(child)


def summary_csv(runs: Mapping[str, RunSummary]) -> str:
    """One row a run, by name. Text that a spreadsheet would run gets a leading apostrophe; numbers never do."""
    buffer = io.StringIO()
    rows = [_csv_row(runs[name]) for name in sorted(runs)]
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows([[_cell(row[c]) for c in CSV_COLUMNS] for row in rows])
    return buffer.getvalue()


CSV_COLUMNS = (
    "run",
    "state",
    "verdict",
    "outcome",
    "attempts",
    "points",
    "first_step",
    "last_step",
    "train_tag",
    "train_last",
    "train_best",
    "train_best_step",
    "held_out_tag",
    "held_out_last",
    "held_out_best",
    "held_out_best_step",
    "critical",
    "warning",
    "confirmed",
    "possible",
    "refuted",
    "abstained",
    "worst_finding",
    "wasted_gpu_s",
)


def _csv_row(s: RunSummary) -> dict[str, object]:
    return {
        "run": s.name,
        "state": s.state,
        "verdict": s.verdict,
        "outcome": s.outcome,
        "attempts": s.attempts,
        "points": s.points,
        "first_step": s.first_step,
        "last_step": s.last_step,
        **_csv_curve("train", s.train),
        **_csv_curve("held_out", s.held_out),
        **{k: s.severities.get(k, 0) for k in ("critical", "warning")},
        **{k: s.statuses.get(k, 0) for k in ("confirmed", "possible", "refuted", "abstained")},
        "worst_finding": s.worst,
        "wasted_gpu_s": s.wasted_gpu_s,
    }


def _csv_curve(name: str, c: CurveSummary | None) -> dict[str, object]:
    fields = ("tag", "last", "best", "best_step")
    return {f"{name}_{field}": getattr(c, field) if c is not None else None for field in fields}


def _cell(x: object) -> str:
    if x is None:
        return ""
    return csv_cell(x) if isinstance(x, str) else str(jsonable(x))
