"""The nine tables as files: what is written reads back, and damage is told."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.schema import SCHEMAS, Tables
from afterrun.loaders.store import KINDS, Kind, read_table, table_of, write_tables

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8) | st.sampled_from(
    ["", "=1+1", "'=x", "''-", "-0.5", "a,b", 'q"x', "two\nlines", "cr\rcr", "\ttab", "null", "NaN", " pad "]
)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    pl.Categorical: TEXT,
    pl.String: TEXT,
    pl.Int64: st.integers(-(2**63), 2**63 - 1),
    pl.Int32: st.integers(-(2**31), 2**31 - 1),
    pl.Float64: st.floats(),
    pl.Boolean: st.booleans(),
    pl.List: st.lists(st.floats(), max_size=3),
}


def a_row(table: str) -> st.SearchStrategy[dict[str, Any]]:
    columns = {c: st.none() | BY_TYPE[t.base_type()] for c, t in SCHEMAS[table].items()}
    return st.fixed_dictionaries({**columns, "run": TEXT})


@st.composite
def some_tables(draw: st.DrawFn) -> Tables:
    frames = {
        name: pl.DataFrame(draw(st.lists(a_row(name), max_size=3)), schema=SCHEMAS[name], orient="row")
        for name in ("metrics", "histograms", "runs", "params")
    }
    return Tables(**frames)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables=some_tables())
def test_tables_read_back_as_they_were(tmp_path: Path, kind: Kind, tables: Tables) -> None:
    for path, (name, frame) in zip(write_tables(tables, tmp_path, kind), tables.items(), strict=True):
        if frame.is_empty() and kind == "jsonl":
            assert path.read_bytes() == b""
            continue
        assert table_of(path, path.read_bytes()[:4096]) == name
        read, damaged = read_table(path, name)
        assert damaged == 0
        assert_frame_equal(read, frame, categorical_as_str=True)


def metrics(n: int = 3) -> Tables:
    rows = [
        {
            "run": "=cmd",
            "source": "a",
            "attempt": 1,
            "tag": "loss",
            "seq": i,
            "step": i,
            "value": v,
            "superseded": False,
        }
        for i, v in zip(range(n), [1.5, math.nan, -math.inf], strict=False)
    ]
    return Tables(metrics=pl.DataFrame(rows, schema=SCHEMAS["metrics"], orient="row"))


def test_csv_is_safe_in_a_spreadsheet_and_numbers_stay_numbers(tmp_path: Path) -> None:
    write_tables(metrics(), tmp_path, "csv")
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {r["run"] for r in rows} == {"'=cmd"}
    assert [r["value"] for r in rows] == ["1.5", "NaN", "-inf"]


def test_json_lines_are_strict(tmp_path: Path) -> None:
    write_tables(metrics(), tmp_path, "jsonl")

    def refuse(token: str) -> None:
        raise AssertionError(token)

    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [r["value"] for r in rows] == [1.5, "NaN", "-Infinity"]


def test_damaged_rows_cost_themselves(tmp_path: Path) -> None:
    for kind in ("csv", "jsonl"):
        write_tables(metrics(), tmp_path, kind)
        path = tmp_path / f"metrics.{kind}"
        path.write_text(path.read_text().replace("NaN", "x7", 1).replace('"x7"', "x7"))
        read, damaged = read_table(path, "metrics")
        assert (read["value"].to_list(), damaged) == ([1.5, -math.inf], 1), kind
    text = (tmp_path / "metrics.csv").read_text()
    (tmp_path / "metrics.csv").write_text(text[:-3] + '"open\n')
    read, damaged = read_table(tmp_path / "metrics.csv", "metrics")
    assert (read["value"].to_list(), damaged) == ([1.5], 2)


def test_columns_that_an_older_version_lacked_are_null(tmp_path: Path) -> None:
    frame = metrics().metrics.drop("low", "high").with_columns(pl.lit(1).alias("unheard_of"))
    frame.write_parquet(tmp_path / "metrics.parquet", metadata={"afterrun.table": "metrics"})
    read, _ = read_table(tmp_path / "metrics.parquet", "metrics")
    assert read.schema == SCHEMAS["metrics"]
    assert read["low"].null_count() == 3


def test_foreign_tables_are_none_of_ours(tmp_path: Path) -> None:
    frame = pl.DataFrame({"run": ["a"], "value": [1.0]})
    for name in ("metrics", "history"):
        frame.write_parquet(tmp_path / f"{name}.parquet")
        assert table_of(tmp_path / f"{name}.parquet", b"PAR1") is None
    assert table_of(tmp_path / "x.csv", b"run,source,value\n") is None
    assert table_of(tmp_path / "x.jsonl", b'{"run":1}\n') is None


def test_a_broken_parquet_file_is_told(tmp_path: Path) -> None:
    write_tables(metrics(), tmp_path)
    path = tmp_path / "metrics.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    assert table_of(path, b"PAR1") == "metrics"
    with pytest.raises(UnreadableError, match=r"metrics\.parquet: no table 'metrics' can be read"):
        read_table(path, "metrics")
