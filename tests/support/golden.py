"""Golden cases: what is read from ``tests/golden/<case>/input`` and what is said about it, as JSON to review.

A new case is a new folder with an ``input``; ``make golden`` writes its expected files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from afterrun.analyzer.finding import jsonable
from afterrun.analyzer.inventory import inventory
from afterrun.analyzer.pipeline import analyse
from afterrun.loaders.collect import collect

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED, EXPECTED_FINDINGS = "expected.json", "expected-findings.json"

RUN_KEYS = ("run", "grouped_by", "attempts", "outcome", "sources", "metrics", "params", "marks")
SOURCE_KEYS = ("path", "format", "status", "rows", "damaged")
"""What is kept of ``inspect --json``: no sentences, which may be worded better any day."""


def cases() -> list[Path]:
    """Folders of all cases, in the order of their names."""
    return sorted(p.parent for p in GOLDEN.glob("*/input"))


def observed(case: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(reduced inspect document, findings) of a case, as its expected files hold them."""
    collection = collect([case / "input"])
    analysis = analyse(collection)
    assert analysis.faults == ()
    findings = [
        {
            "run": f.run,
            "code": f.code,
            "status": f.status,
            "severity": f.severity,
            "onset": f.where.step_start,
        }
        for f in analysis.findings
    ]
    return _reduced(inventory(collection)), jsonable(findings)


def _reduced(document: dict[str, Any]) -> dict[str, Any]:
    runs = [
        {**{k: run[k] for k in RUN_KEYS}, "sources": [{k: s[k] for k in SOURCE_KEYS} for s in run["sources"]]}
        for run in document["runs"]
    ]
    return {"runs": runs, "unclaimed": [u["path"] for u in document["unclaimed"]]}


def to_text(value: Any, indent: str = "") -> str:
    """JSON with everything on one line that holds no further table: a metric, a source, a finding a line."""
    deeper = indent + "  "
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(x, (dict, list)) and x for x in inside):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        if not any(isinstance(x, list) for x in value.values()):
            return json.dumps(value, ensure_ascii=False)
        rows = [f"{deeper}{json.dumps(k)}: {to_text(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + to_text(x, deeper) for x in value) + f"\n{indent}]"


def main() -> None:
    """Write the expected files of every case again."""
    for case in cases():
        for name, content in zip((EXPECTED, EXPECTED_FINDINGS), observed(case), strict=True):
            (case / name).write_text(to_text(content) + "\n", "utf-8")


if __name__ == "__main__":
    main()
