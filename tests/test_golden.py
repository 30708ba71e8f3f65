"""Golden cases: what is read from small logs of every format, and what is said about them.

Findings of new passes that find nothing need no new expected files: an alarm must be expected, every other
answer is compared where the case names it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from afterrun.loaders.discover import discover
from afterrun.loaders.registry import loaders
from tests.support.golden import EXPECTED, EXPECTED_FINDINGS, cases, observed, to_text
from tests.support.golden_inputs import write

MAX_INPUT_BYTES = 20_000

CASES = pytest.mark.parametrize("case", cases(), ids=lambda p: p.name)


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@CASES
def test_case_is_as_expected(case: Path) -> None:
    document, findings = observed(case)
    expected = load(case / EXPECTED_FINDINGS)
    named = {(f["run"], f["code"]) for f in expected}
    claims = ("confirmed", "possible")
    assert document == load(case / EXPECTED)
    assert [f for f in findings if f["status"] in claims or (f["run"], f["code"]) in named] == expected


@CASES
def test_input_is_small(case: Path) -> None:
    assert sum(p.stat().st_size for p in (case / "input").rglob("*") if p.is_file()) < MAX_INPUT_BYTES


def test_inputs_are_what_the_script_writes(tmp_path: Path) -> None:
    write(tmp_path)
    written = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    # the bytes of a Parquet file depend on the version of its writer
    written = [p for p in written if p.suffix != ".parquet"]
    assert written
    folder = Path(__file__).parent / "golden"
    assert [p for p in written if (folder / p).read_bytes() != (tmp_path / p).read_bytes()] == []


def test_every_format_has_a_case() -> None:
    claimed = {f.loader.format for case in cases() for f in discover(case / "input") if f.loader is not None}
    assert {x.format for x in loaders()} - claimed == set()


def test_expected_text_is_json_with_one_entry_a_line() -> None:
    value = {"a": [], "b": [{"c": 1, "d": {"e": "ä"}}, {"c": 2, "d": {}}], "f": 1.5}
    text = to_text(value)
    assert json.loads(text) == value
    assert text.splitlines()[3] == '    {"c": 1, "d": {"e": "ä"}},'
