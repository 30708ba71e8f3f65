from __future__ import annotations

import polars as pl
import pytest

from afterrun.loaders.errors import SchemaError
from afterrun.loaders.schema import LOADER_COLUMNS, SCHEMAS, Tables, conform, empty


def test_every_table_begins_with_the_same_key() -> None:
    for name, schema in SCHEMAS.items():
        assert list(schema)[:4] == ["run", "source", "attempt", "rank"], name


def test_conform_fills_what_was_not_recorded_with_null() -> None:
    frame = conform("metrics", pl.DataFrame({"tag": ["loss"], "value": [float("nan")], "step": [3]}))
    assert frame.schema == LOADER_COLUMNS["metrics"]
    row = frame.row(0, named=True)
    assert row["value"] != row["value"], "NaN is a recorded value and stays NaN"
    assert (row["step"], row["epoch"], row["wall_ns"]) == (3, None, None)


@pytest.mark.parametrize(
    ("table", "frame", "word"),
    [
        ("metrics", pl.DataFrame({"tag": ["a"]}), "value"),
        ("metrics", pl.DataFrame({"tag": ["a"], "value": [1.0], "colour": ["red"]}), "colour"),
        ("metrics", pl.DataFrame({"tag": ["a"], "value": ["many"]}), "metrics"),
        ("runs", pl.DataFrame({"path": ["a"]}), "runs"),
    ],
)
def test_conform_names_what_breaks_the_contract(table: str, frame: pl.DataFrame, word: str) -> None:
    with pytest.raises(SchemaError, match=word):
        conform(table, frame)


def test_tables_of_one_run() -> None:
    params = pl.DataFrame(
        {
            "run": ["a", "b"],
            "source": ["s", "s"],
            "attempt": [1, 1],
            "rank": [None, None],
            "key": ["lr", "lr"],
            "value": ["1", "2"],
        },
        schema=SCHEMAS["params"],
    )
    tables = Tables(params=params).validate()
    assert tables.of_run("b").params["value"].to_list() == ["2"]
    assert Tables.concat([tables, tables]).params.height == 4
    assert Tables.concat([]).metrics.is_empty()


def test_validate_names_the_table() -> None:
    with pytest.raises(SchemaError, match="marks"):
        Tables(marks=empty("params")).validate()
