"""JSON lines: two ways give the same columns, and damage costs the lines it touches."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afterrun.loaders.jsonlog.lines import (
    GIVE_UP_AFTER,
    MAX_LIST_VALUES,
    JsonBlock,
    JsonLines,
    PlainBlocks,
)
from afterrun.loaders.limits import MAX_JSON_DEPTH
from afterrun.loaders.tables.ahead import ITEMS_AHEAD
from tests.support.loading import write


def blocks(path: Path, **how: Any) -> tuple[list[JsonBlock], JsonLines]:
    lines = JsonLines(path, **how)
    return list(lines.blocks()), lines


def cells(path: Path, **how: Any) -> dict[str, list[tuple[int, float | str]]]:
    """(row, value) by name; NaN as text, since it equals nothing."""
    found: dict[str, list[tuple[int, float | str]]] = {}
    at = 0
    for block in blocks(path, **how)[0]:
        for kind, columns in (("n", block.numbers), ("w", block.words)):
            for name, column in columns.items():
                rows = [(at + i, _plain(v)) for i, v in enumerate(column) if v is not None]
                if rows:
                    found.setdefault(f"{kind} {name}", []).extend(rows)
        at += block.rows
    return found


def _plain(value: Any) -> float | str:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def numbers(path: Path, name: str, **how: Any) -> list[float | None]:
    return [v for b in blocks(path, **how)[0] for v in b.numbers.get(name, pl.Series([None] * b.rows))]


# -- the two ways --------------------------------------------------------------------------------------

KEYS = st.sampled_from(["step", "loss", "lr", "a/b", " x", "é", "n", "t:u", ""])
TEXTS = st.sampled_from(
    ["a", "0.5", "nan", ":", ": ", ":null", "", "null", "ü", "[1]", "train", "1e3", "a,b"]
) | st.text(max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.floats(width=16) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)
ROWS = st.lists(st.dictionaries(KEYS, VALUES, max_size=5), min_size=1, max_size=8)
PLAIN_ROWS = st.lists(
    st.fixed_dictionaries(
        {"step": st.integers(0, 9)},
        optional={
            "loss": st.floats(allow_nan=False, allow_infinity=False),
            "mode": st.sampled_from(["train", "0.5", "a:b"]),
            "gone": st.none(),
            "in": st.fixed_dictionaries({}, optional={"x": st.integers(0, 3), "y": st.floats(0, 1)}),
            "map": st.lists(st.floats(0, 1), max_size=3),
        },
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS | PLAIN_ROWS, tight=st.booleans())
def test_both_ways_give_the_same_cells(tmp_path: Path, rows: list[dict[str, Any]], tight: bool) -> None:
    marks = (",", ":") if tight else (", ", ": ")
    text = "".join(json.dumps(r, separators=marks, ensure_ascii=len(rows) % 2 == 0) + "\n" for r in rows)
    path = write(tmp_path, text.encode("utf-8", "surrogatepass"), "log.jsonl")
    slow = cells(path, fast=False)
    assert cells(path) == slow
    assert cells(path, block_bytes=64) == slow


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=PLAIN_ROWS)
def test_clean_blocks_go_the_fast_way(rows: list[dict[str, Any]]) -> None:
    kept = [{k: v for k, v in r.items() if v not in ({}, [])} for r in rows]
    data = "".join(json.dumps(r) + "\n" for r in kept).encode()
    assert PlainBlocks().read(data) is not None


def test_names_that_come_up_late_are_read(tmp_path: Path) -> None:
    """polars drops names that its schema lacks; the count of keys tells."""
    rows = [{"step": i, "loss": 1.0} for i in range(500)] + [{"step": 500, "loss": 1.0, "val": 0.25}]
    path = write(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "log.jsonl")
    found, lines = blocks(path, block_bytes=1000)
    assert len(found) > ITEMS_AHEAD + 2
    assert found[-1].numbers["val"].drop_nulls().to_list() == [0.25]
    assert lines.losses.damaged == 0


def test_a_number_that_becomes_text_is_not_turned_into_text(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":"x"}\n{"a":7}\n{"a":[1]}\n{"a":{"b":2}}\n', "log.jsonl")
    assert cells(path) == {"w a": [(0, "x")], "n a": [(1, 7.0)], "n a[0]": [(2, 1.0)], "n a/b": [(3, 2.0)]}


def test_deep_objects_are_left_to_the_careful_way(tmp_path: Path) -> None:
    """polars ends the process on a thousand objects inside one another."""
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    path = write(tmp_path, f'{{"step":1}}\n{deep}\n{{"step":2}}\n', "log.jsonl")
    found, lines = blocks(path)
    assert numbers(path, "step") == [1.0, 2.0]
    assert (len(found), lines.losses.damaged) == (1, 1)
    shallow = '{"a":' * MAX_JSON_DEPTH + "1" + "}" * MAX_JSON_DEPTH
    path = write(tmp_path, f'{{"step":1}}\n{shallow}\n', "log.jsonl")
    assert numbers(path, "/".join("a" * MAX_JSON_DEPTH)) == [None, 1.0]


def test_files_that_are_never_clean_stop_being_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    plain = PlainBlocks.read
    monkeypatch.setattr(PlainBlocks, "read", lambda self, data: asked.append(data) or plain(self, data))
    path = write(tmp_path, '{"loss":NaN}\n' * 400, "log.jsonl")
    assert len(blocks(path, block_bytes=130)[0]) > 30
    assert len(asked) <= GIVE_UP_AFTER + ITEMS_AHEAD + 1


# -- values --------------------------------------------------------------------------------------------


def test_nested_names_and_lists(tmp_path: Path) -> None:
    path = write(tmp_path, '{"eval":{"bbox":{"AP":0.5}},"bbox":[0.25,null,0.75],"on":true}\n', "log.jsonl")
    assert cells(path) == {
        "n eval/bbox/AP": [(0, 0.5)],
        "n bbox[0]": [(0, 0.25)],
        "n bbox[2]": [(0, 0.75)],
        "n on": [(0, 1.0)],
    }


def test_non_finite_numbers_bare_and_as_text(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":NaN,"b":-Infinity}\n{"a":"Infinity","b":"nan"}\n{"a":1e999}\n', "log.jsonl")
    assert cells(path) == {
        "n a": [(0, "NaN"), (1, math.inf), (2, math.inf)],
        "n b": [(0, -math.inf), (1, "NaN")],
    }


def test_integers_beyond_any_type_are_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":' + "9" * 400 + '}\n{"a":18446744073709551616}\n', "log.jsonl")
    assert cells(path) == {"n a": [(0, math.inf), (1, 2.0**64)]}


@pytest.mark.parametrize("fast", [True, False])
def test_long_lists_are_left_out_and_named(tmp_path: Path, fast: bool) -> None:
    rows = [{"step": 1, "w": [0.5] * (MAX_LIST_VALUES + 1)}, {"step": 2, "w": [0.5]}]
    path = write(tmp_path, "".join(json.dumps(r) + "\n" for r in rows), "log.jsonl")
    found, lines = blocks(path, fast=fast)
    assert {n: c.to_list() for n, c in found[0].numbers.items()} == {"step": [1.0, 2.0], "w[0]": [None, 0.5]}
    assert list(lines.losses.notes()) == ["lists of more than 2000 values left out: w"]


# -- damage --------------------------------------------------------------------------------------------


def test_damaged_lines_are_counted_with_their_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":1}\noops\n{"a":2\n\n[3]\n{"a":4}\n5\n', "log.jsonl")
    _, lines = blocks(path)
    assert numbers(path, "a") == [1.0, 4.0]
    assert (lines.losses.damaged, lines.losses.bad.first) == (4, [2, 3, 5, 7])
    assert list(lines.losses.notes()) == ["4 lines without a whole JSON object left out: lines 2, 3, 5, 7"]


def test_a_cut_last_line_is_told_and_a_whole_one_without_line_end_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":1}\n{"a":2', "log.jsonl")
    _, lines = blocks(path)
    assert (numbers(path, "a"), lines.losses.half_line, lines.losses.damaged) == ([1.0], 2, 1)
    path = write(tmp_path, '{"a":1}\n{"a":2}', "log.jsonl")
    _, lines = blocks(path)
    assert (numbers(path, "a"), lines.losses.damaged) == ([1.0, 2.0], 0)


def test_a_row_written_after_a_cut_one_is_kept(tmp_path: Path) -> None:
    """Killed within a line, resumed without a line end; inner objects are no rows."""
    path = write(tmp_path, '{"step":1,"a":1}\n{"step":2,"in":{"a":5},"lo{"step":3,"a":3}\n', "log.jsonl")
    _, lines = blocks(path)
    assert cells(path) == {"n step": [(0, 1.0), (1, 3.0)], "n a": [(0, 1.0), (1, 3.0)]}
    assert lines.losses.bad.first == [2]


def test_several_objects_on_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a":1}{"a":2} {"a":3}\n{"a":4}\n', "log.jsonl")
    _, lines = blocks(path)
    assert numbers(path, "a") == [1.0, 2.0, 3.0, 4.0]
    assert (lines.losses.damaged, lines.losses.joined.first) == (0, [1])


def test_zero_bytes_and_foreign_encodings(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"a":1}\n' + bytes(100) + b'{"a":2}\n{"caf\xe9":3}\n', "log.jsonl")
    _, lines = blocks(path)
    assert cells(path) == {"n a": [(0, 1.0), (1, 2.0)], "n café": [(2, 3.0)]}
    assert (lines.losses.zero_filled, lines.losses.latin1, lines.losses.damaged) == (True, True, 0)
    for encoding in ("utf-8-sig", "utf-16"):
        path = write(tmp_path, '{"ä":1}\r\n{"ä":2}\r\n'.encode(encoding), "log.jsonl")
        assert numbers(path, "ä") == [1.0, 2.0]


def test_half_characters_in_names_and_words_are_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, r'{"\ud800":1,"w":"\udfff"}' + "\n", "log.jsonl")
    assert cells(path) == {"n ?": [(0, 1.0)], "w w": [(0, "?")]}


# -- mutants -------------------------------------------------------------------------------------------

MUTANTS = 150


def clean_rows(rng: random.Random) -> list[str]:
    rows = []
    for i in range(80):
        row: dict[str, Any] = {"step": i, "loss": rng.random(), "lr": rng.random() / 1000}
        if i % 7 == 0:
            row |= {"val": {"acc": rng.random()}, "per": [rng.random(), rng.random()]}
        if i % 11 == 0:
            row["norm"] = math.nan
        rows.append(json.dumps(row))
    return rows


def mutate(rng: random.Random, rows: list[str]) -> tuple[bytes, list[str]]:
    """Damaged bytes, and the rows whose whole line still stands there."""
    data = bytearray(("\n".join(rows) + "\n").encode())
    for _ in range(rng.randint(1, 4)):
        at, n = rng.randrange(len(data)), rng.randint(1, 60)
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = rng.randbytes(n)
        elif kind == 2:
            data[at : at + n] = bytes(min(n, len(data) - at))
        elif kind == 3:
            del data[at : at + n]
        elif kind == 4:
            data[at:at] = rng.choice([b'"', b"{", b"}", b"[", b",", b"\\", b"\n", b"NaN"])
        else:
            del data[max(at, len(data) // 2) :]
    standing = set(bytes(data).decode("latin-1").replace("\r", "\n").split("\n"))
    return bytes(data), [row for row in rows if row in standing]


def survive(folder: Path, mutants: int) -> tuple[int, int]:
    """(rows whose line stood whole, those of them that came out)."""
    rng = random.Random(5)
    whole = kept = 0
    for _ in range(mutants):
        data, standing = mutate(rng, clean_rows(rng))
        path = write(folder, data, "log.jsonl")
        found = cells(path)
        out = {(name, value) for name, rows in found.items() for _, value in rows}
        for line in standing:
            row = json.loads(line)
            whole += 1
            kept += all((f"n {k}", row[k]) in out for k in ("step", "loss", "lr"))
        assert cells(path, fast=False) == found
    return whole, kept


def test_mutants_keep_their_intact_rows(tmp_path: Path) -> None:
    whole, kept = survive(tmp_path, MUTANTS)
    assert whole > 0.8 * 80 * MUTANTS * 0.8
    assert kept >= 0.99 * whole


@pytest.mark.slow
def test_a_thousand_mutants_keep_their_intact_rows(tmp_path: Path) -> None:
    whole, kept = survive(tmp_path, 1000)
    assert kept >= 0.99 * whole


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300) | st.text(alphabet='{}[]",:aN1.\n\\', max_size=120).map(str.encode))
def test_any_bytes_raise_nothing(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data, "log.jsonl")
    assert cells(path) == cells(path, fast=False)


def test_names_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Polars infers fields in another order in each process; forty names in their order are no chance."""
    names = [f"m{i * 7 % 40}" for i in range(40)]
    row = {**dict.fromkeys(names, 1.5), "deep": {f"n{name}": 2.5 for name in reversed(names)}}
    path = write(tmp_path, "".join(json.dumps({"step": i, **row}) + "\n" for i in range(5)), "a.jsonl")
    (block,) = JsonLines(path).blocks()
    assert list(block.numbers) == ["step", *names, *(f"deep/n{name}" for name in reversed(names))]
