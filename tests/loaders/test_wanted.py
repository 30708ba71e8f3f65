"""Some tags instead of all: which are kept, that every format gives the same, and that CSV does not read the rest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afterrun
from afterrun.loaders.collect import LoadOptions, collect
from afterrun.loaders.names import Name
from afterrun.loaders.tables.narrowing import narrowed
from afterrun.loaders.tables.reader import RowBlock, TableReader
from afterrun.loaders.tables.wide import WideTable
from afterrun.loaders.wanted import Wanted
from tests.support.loading import write

ROWS = "".join(f"{i},{i // 10},{3 - i / 100!r},{4 - i / 100!r},{i / 7!r},0.001,r1\n" for i in range(400))
WIDE = "step,epoch,train/loss,val/loss,train/grad_norm,lr,host\n" + ROWS


# -- which tags -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("val/loss", ["val/loss"]),
        ("loss", ["train/loss", "val/loss"]),
        ("val/*", ["val/loss"]),
        ("*loss*", ["train/loss", "val/loss"]),
        ("epoch", ["epoch"]),
        ("LR", []),
    ],
)
def test_a_tag_a_glob_or_a_canonical_metric(pattern: str, kept: list[str]) -> None:
    wanted = Wanted((pattern,))
    assert [t for t in ("epoch", "train/loss", "val/loss", "lr") if wanted.keeps(t)] == kept


def test_brackets_of_a_tag_are_meant_as_they_stand() -> None:
    assert Wanted(("lr[0]",)).keeps("lr[0]")
    assert not Wanted(("lr[0]",)).keeps("lr[1]")


def test_a_meaning_given_by_the_user_counts() -> None:
    wanted = Wanted(("loss",), {"dev/xent": Name("loss", "val")})
    assert wanted.keeps("dev/xent")
    assert not wanted.keeps("dev/other")


def test_a_source_in_a_folder_has_the_folder_in_its_tags() -> None:
    assert Wanted(("val/acc",)).under("val/").keeps("acc")


def test_what_places_rows_is_read_but_not_kept() -> None:
    wanted = Wanted(("train/loss",))
    assert wanted.reads("epoch")
    assert not wanted.keeps("epoch")
    assert not wanted.reads("lr")


# -- the same from every format ---------------------------------------------------------------------------


def _csv(folder: Path) -> None:
    folder.mkdir()
    (folder / "metrics.csv").write_text(
        "step,epoch,loss,acc,lr\n1,0,3,0.1,0.5\n2,0,2,0.2,0.5\n3,1,1,0.3,0.25\n"
    )


def _json(folder: Path) -> None:
    folder.mkdir()
    names = ("step", "epoch", "loss", "acc", "lr")
    rows = [(1, 0, 3, 0.1, 0.5), (2, 0, 2, 0.2, 0.5), (3, 1, 1, 0.3, 0.25)]
    text = "".join(json.dumps(dict(zip(names, r, strict=True))) + "\n" for r in rows)
    (folder / "metrics.jsonl").write_text(text)


def _text(folder: Path) -> None:
    folder.mkdir()
    rows = [(1, 0, 3, 0.1, 0.5), (2, 0, 2, 0.2, 0.5), (3, 1, 1, 0.3, 0.25)]
    text = "".join(f"step={s} epoch={e} loss={x} acc={a} lr={r}\n" for s, e, x, a, r in rows)
    (folder / "train.log").write_text(text)


@pytest.mark.parametrize("make", [_csv, _json, _text])
def test_every_format_gives_the_wanted_rows_with_their_axes(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]  # one of the three above
    make(tmp_path / "run")
    metrics = afterrun.load(tmp_path, tags=["loss", "l?"]).metrics.sort("tag", "step")
    assert metrics.select("tag", "step", "epoch", "value").with_columns(
        pl.col("tag").cast(pl.String)
    ).rows() == [
        ("loss", 1, 0.0, 3.0),
        ("loss", 2, 0.0, 2.0),
        ("loss", 3, 1.0, 1.0),
        ("lr", 1, 0.0, 0.5),
        ("lr", 2, 0.0, 0.5),
        ("lr", 3, 1.0, 0.25),
    ]


def test_a_source_without_a_wanted_tag_is_read_not_empty(tmp_path: Path) -> None:
    _csv(tmp_path / "run")
    tables = collect([tmp_path], LoadOptions(tags=("nothing",))).tables
    assert tables.metrics.is_empty()
    assert tables.sources["status"].to_list() == ["read"]


# -- columns that are not read ------------------------------------------------------------------------------


def rows(path: Path, wanted: Wanted | None, block_bytes: int = 2_000) -> pl.DataFrame:
    reader = TableReader(path, block_bytes=block_bytes)
    frames = [
        b.frames["metrics"] for b in WideTable(reader, wanted=wanted).batches() if "metrics" in b.frames
    ]
    return pl.concat(frames).drop("seq")


def blocks(path: Path, *chosen: int) -> list[RowBlock]:
    return list(TableReader(path, block_bytes=2_000).blocks(lambda _: chosen))


@pytest.mark.parametrize("pattern", ["val/loss", "train/*", "lr", "*"])
@pytest.mark.parametrize(
    "change", ["none", "crlf", "short", "quoted", "header", "comment", "words", "no end"]
)
def test_rows_are_those_of_the_whole_table(tmp_path: Path, pattern: str, change: str) -> None:
    lines = WIDE.splitlines(keepends=True)
    if change == "crlf":
        lines = [line.replace("\n", "\r\n") for line in lines]
    elif change == "short":
        lines[201:202] = ["7,0,1\n"]
    elif change == "quoted":
        lines[201] = '200,20,"1,000",2.0,28.5,0.001,r1\n'
    elif change == "header":
        lines.insert(200, "step,epoch,val/loss,train/loss,train/grad_norm,lr,host\n")
    elif change == "comment":
        lines.insert(200, "# 1,2,3,4,5,6\n")
    elif change == "words":
        lines[201] = "200,20,n/a,2.0,,0.001,r1\n"
    elif change == "no end":
        lines[-1] = lines[-1].rstrip("\n")
    path = write(tmp_path, "".join(lines))
    wanted = Wanted((pattern,))
    every = rows(path, None)
    expected = every.filter(
        every["tag"].is_in([t for t in every["tag"].unique().to_list() if wanted.reads(t)])
    )
    assert rows(path, wanted).equals(expected)
    assert len(expected) >= 399


def test_other_columns_are_not_read_from_the_second_block_on(tmp_path: Path) -> None:
    found = blocks(write(tmp_path, WIDE), 0, 3)
    assert [list(b.cells.columns) for b in found] == [["0", "3"]]
    assert found[0].cells["3"].to_list() == [4 - i / 100 for i in range(400)]
    assert found[0].lines.tolist() == list(range(2, 402))


def test_line_numbers_go_on_behind_narrow_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, WIDE + "400,40,oops,x,0,0,r1\n" + "1,2,3,4,5,6,7,8,9\n")
    reader = TableReader(path, block_bytes=2_000)
    list(WideTable(reader, wanted=Wanted(("lr",))).batches())
    assert str(reader.losses.wide) == "line 403"


CELL = st.text(alphabet="0123456789.-e abz", max_size=70)


@given(
    st.integers(2, 9).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=12),
            st.sets(st.integers(0, n - 1), min_size=2).map(sorted),
        )
    ),
    st.sampled_from(",;|"),
)
def test_narrowing_is_cutting_and_choosing(table: tuple[list[list[str]], list[int]], delimiter: str) -> None:
    cells, chosen = table
    data = "".join(delimiter.join(row) + "\n" for row in cells).encode()
    found = narrowed(data, len(cells[0]), delimiter, chosen)
    assert found is not None
    text, starts = found
    assert text.decode() == "".join(delimiter.join(row[i] for i in chosen) + "\n" for row in cells)
    assert starts.tolist() == np.cumsum([0, *(len(delimiter.join(r)) + 1 for r in cells)])[:-1].tolist()


@pytest.mark.parametrize(
    "data",
    [
        b"1,2,3\n4,5\n6,7,8,9\n",  # as many delimiters as two a line
        b"1,2,3\n4,5,6",
        b'1,"2",3\n',
        b"#1,2,3\n",
        b"1,2\0,3\n",
        b"1,2,3\r\n",
        b"\n1,2,3\n",
        b"",
    ],
)
def test_what_is_not_plain_is_left_to_another_way(data: bytes) -> None:
    assert narrowed(data, 3, ",", (0, 1)) is None


def test_lines_of_tabs_are_blank_lines() -> None:
    assert narrowed(b"1\t2\t3\n\t\t\n", 3, "\t", (0, 1)) is None
    assert narrowed(b"1\t2\t3\n4\t\t\n", 3, "\t", (0, 2)) is not None
