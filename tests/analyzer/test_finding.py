"""Findings: the JSON contract both ways, and the two orders."""

from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.analyzer.finding import (
    Effect,
    Evidence,
    Finding,
    Where,
    decode,
    encode,
    jsonable,
    onset_order,
    rank_order,
)


def make(code: str = "spike", **changes: object) -> Finding:
    base: dict[str, object] = {
        "code": code,
        "status": "confirmed",
        "severity": "warning",
        "run": "r",
        "title": "A sentence.",
    }
    return Finding(**{**base, **changes})  # type: ignore[arg-type]  # fields are given by name


def test_json_keeps_every_field() -> None:
    finding = make(
        attempt=2,
        rank=0,
        where=Where(step_start=10, step_end=20, t_start_ns=1, t_end_ns=2, device=3),
        effect=Effect(value=1.5, low=1.0, high=2.0, unit="%", method="counted"),
        evidence=(Evidence(source="a.csv", tag="loss", step=10, value=2.5, line=7, note="peak"),),
        parameters={"z_min": 7.0},
        wasted_gpu_s=12.0,
        advice=("first", "second"),
        values={"spikes": [10, 20], "inner": {"x": None}},
        figures=("curves",),
        missing=("an input",),
    )
    assert decode(encode([finding])) == [finding]


def test_non_finite_numbers_are_strings_in_strict_json() -> None:
    values = {"nan": math.nan, "up": math.inf, "down": [-math.inf], "array": np.array([1.0, math.nan])}
    data = encode([make(values=values)])
    parsed = json.loads(data, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert parsed[0]["values"] == {
        "nan": "NaN",
        "up": "Infinity",
        "down": ["-Infinity"],
        "array": [1.0, "NaN"],
    }
    assert decode(data)[0].values["nan"] == "NaN"


def test_numpy_scalars_become_plain_numbers() -> None:
    assert jsonable({"a": np.int64(3), "b": np.float64(0.5), 4: (np.bool_(True),)}) == {
        "a": 3,
        "b": 0.5,
        "4": [True],
    }


def test_encoding_is_deterministic_and_decoding_strict() -> None:
    findings = [make(), make("divergence")]
    assert encode(findings) == encode(findings)
    with pytest.raises(msgspec.ValidationError):
        decode(b'[{"code": "spike", "status": "maybe", "severity": "info", "run": "r", "title": "t"}]')
    with pytest.raises(msgspec.ValidationError):
        decode(b'[{"code": "spike"}]')


def test_schema_names_every_field_and_state() -> None:
    (schema,), components = msgspec.json.schema_components([Finding])
    finding = components["Finding"]
    assert schema == {"$ref": "#/$defs/Finding"}
    assert set(finding["properties"]) == {
        "code", "status", "severity", "run", "attempt", "rank", "where", "title", "effect", "evidence",
        "parameters", "wasted_gpu_s", "advice", "values", "figures", "missing",
    }  # fmt: skip
    assert set(finding["required"]) == {"code", "status", "severity", "run", "title"}
    assert set(finding["properties"]["status"]["enum"]) == {"confirmed", "possible", "refuted", "abstained"}
    assert set(finding["properties"]["severity"]["enum"]) == {"critical", "warning", "info"}
    assert set(components["Where"]["properties"]) == {
        "step_start",
        "step_end",
        "t_start_ns",
        "t_end_ns",
        "device",
    }


def test_findings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        make().title = "another"  # type: ignore[misc]  # that is the point


@pytest.mark.parametrize(
    ("status", "severity", "alarm"),
    [
        ("confirmed", "critical", True),
        ("confirmed", "warning", True),
        ("possible", "warning", True),
        ("confirmed", "info", False),
        ("possible", "info", False),
        ("refuted", "info", False),
        ("abstained", "info", False),
    ],
)
def test_what_counts_as_an_alarm(status: str, severity: str, *, alarm: bool) -> None:
    assert make(status=status, severity=severity).is_alarm is alarm


def test_onset_order_is_run_code_attempt_onset_with_unknown_onsets_last() -> None:
    late, early = make(where=Where(step_start=20)), make(where=Where(step_start=5))
    unknown, zero = make(), make(where=Where(step_start=0))
    other_code, other_run = make("divergence"), make(run="q")
    second = make(attempt=2, where=Where(step_start=1))
    mixed = [second, unknown, late, other_code, early, zero, other_run]
    assert sorted(mixed, key=onset_order) == [other_run, other_code, zero, early, late, unknown, second]


def test_rank_order_is_status_then_severity_then_cost() -> None:
    worst = make(severity="critical")
    dear, cheap = make(wasted_gpu_s=100.0), make(wasted_gpu_s=1.0)
    maybe = make(status="possible", severity="critical")
    unseen, fine = make(status="abstained", severity="info"), make(status="refuted", severity="info")
    assert sorted([fine, unseen, maybe, cheap, dear, worst], key=rank_order) == [
        worst,
        dear,
        cheap,
        maybe,
        unseen,
        fine,
    ]


numbers = st.one_of(st.none(), st.integers(-(2**53), 2**53), st.floats(), st.text(max_size=5), st.booleans())
trees = st.recursive(
    numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=4), trees, max_size=4))
def test_any_values_survive_the_round_trip(values: dict[str, object]) -> None:
    (back,) = decode(encode([make(values=values)]))
    assert back.values == jsonable(values)
    assert decode(encode([back])) == [back]
