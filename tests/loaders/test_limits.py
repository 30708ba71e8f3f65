"""Guards stop what they promise to stop, and nothing ordinary."""

from __future__ import annotations

import math

import pytest

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import (
    INFLATE_GRACE_BYTES,
    MAX_COLUMNS,
    MAX_INFLATE_RATIO,
    MAX_INFLATED_BYTES,
    check_columns,
    check_inflation,
    check_size,
    decode_json,
)


def test_size_names_the_source_and_the_limit() -> None:
    check_size("a.json", 10, 10)
    with pytest.raises(LimitError, match=r"a\.json: 11 bytes are over the limit of 10 bytes"):
        check_size("a.json", 11, 10)


def test_columns() -> None:
    check_columns("a.csv", MAX_COLUMNS)
    with pytest.raises(LimitError, match="columns"):
        check_columns("a.csv", MAX_COLUMNS + 1)


def test_inflation_by_ratio_only_after_a_grace() -> None:
    check_inflation("a.gz", 10, INFLATE_GRACE_BYTES)
    with pytest.raises(LimitError, match=f"more than {MAX_INFLATE_RATIO} to 1"):
        check_inflation("a.gz", 1000, INFLATE_GRACE_BYTES + 1)
    check_inflation("a.gz", INFLATE_GRACE_BYTES, INFLATE_GRACE_BYTES * MAX_INFLATE_RATIO)


def test_inflation_by_size() -> None:
    with pytest.raises(LimitError, match="over"):
        check_inflation("a.gz", MAX_INFLATED_BYTES, MAX_INFLATED_BYTES + 1)


def test_json_takes_bare_nan_and_long_integers() -> None:
    value = decode_json("x", '{"a": NaN, "b": -Infinity, "c": ' + "9" * 5000 + ', "d": 12}')
    assert math.isnan(value["a"])
    assert value["b"] == -math.inf
    assert value["c"] == math.inf
    assert value["d"] == 12
    assert isinstance(value["d"], int)


def test_json_nested_too_deep_is_a_limit() -> None:
    with pytest.raises(LimitError, match="nested too deep"):
        decode_json("x", "[" * 200_000)


def test_json_that_is_none_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        decode_json("x", "{")
