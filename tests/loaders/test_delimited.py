"""The tolerant splitter: layout, encodings, line ends, quotes, damage, and one result by both ways."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afterrun.loaders.errors import LimitError, UnreadableError
from afterrun.loaders.tables.cells import numbers
from afterrun.loaders.tables.delimited import layout_of, peek, split_cells, unique_names
from afterrun.loaders.tables.plain import plain_cells
from afterrun.loaders.tables.reader import TableReader
from afterrun.loaders.tables.textblocks import BLOCK_BYTES, encoding_of, split_lines, text_blocks
from tests.support.loading import write

Table = dict[str, list[float | None]]


def read_table(path: Path, **options: object) -> tuple[Table, TableReader, list[int]]:
    """Numbers by column, the reader with its books, and the line number of each row."""
    reader = TableReader(path, **options)  # type: ignore[arg-type]  # options of the reader
    table: Table = {}
    lines: list[int] = []
    for block in reader.blocks():
        for name, cells in zip(block.names, block.cells, strict=True):
            values, _ = numbers(cells, decimal_comma=reader.layout.decimal_comma)
            table.setdefault(name, []).extend(values.to_list())
        lines += block.lines.tolist()
    return table, reader, lines


# --- lines and encodings


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_line_ends(tmp_path: Path, end: str) -> None:
    path = write(tmp_path, end.join(["step,loss", "0,2.5", "1,1.5", ""]))
    table, _, lines = read_table(path)
    assert table == {"step": [0.0, 1.0], "loss": [2.5, 1.5]}
    assert lines == [2, 3]


def test_mixed_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, "step,loss\n0,4\r\n1,3\r2,2\r\r\n3,1\n")
    table, _, lines = read_table(path)
    assert table["loss"] == [4.0, 3.0, 2.0, 1.0]
    assert lines == [2, 3, 4, 5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "step,größe loss\r\n0,2.5\r\n1,1.5\r\n".encode(encoding))
    table, reader, _ = read_table(path)
    assert table == {"step": [0.0, 1.0], "größe loss": [2.5, 1.5]}
    assert not reader.losses.latin1


def test_latin1_is_read_and_noted(tmp_path: Path) -> None:
    path = write(tmp_path, "step,größe\n0,2.5\n".encode("latin-1"))
    table, reader, _ = read_table(path)
    assert table == {"step": [0.0], "größe": [2.5]}
    assert list(reader.losses.notes()) == ["bytes that are not UTF-8 were read as Latin-1"]


def test_one_bad_byte_leaves_other_names_alone(tmp_path: Path) -> None:
    path = write(tmp_path, "step,größe,x\n".encode() + b"0,1,\xff\n1,2,3\n")
    table, reader, _ = read_table(path)
    assert table["größe"] == [1.0, 2.0]
    assert table["x"] == [None, 3.0]
    assert any("Latin-1" in n for n in reader.losses.notes())


def test_encoding_by_mark_or_by_zeros() -> None:
    assert encoding_of(b"\xef\xbb\xbfa,b") == "utf-8-sig"
    assert encoding_of("step,loss".encode("utf-16-le")) == "utf-16-le"
    assert encoding_of("step,loss".encode("utf-16-be")) == "utf-16-be"
    assert encoding_of(b"step,loss\n\0\0\0\0\0\0\0\0\0\0") == "utf-8"


@given(st.lists(st.text(alphabet="ab,\r\n", max_size=6), max_size=30), st.integers(1, 9))
def test_blocks_hold_all_lines_once(pieces: list[str], size: int) -> None:
    """Whatever the block size, the same lines come out with the same numbers."""
    text = "".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), text)
        seen: list[tuple[int, str]] = []
        for block in text_blocks(path, size):
            lines = split_lines(block.data.decode())
            lines = lines[:-1] if not block.cut else lines
            seen += [(block.first_line + i, line) for i, line in enumerate(lines)]
    expected = [(i + 1, line) for i, line in enumerate(split_lines(text))]
    assert seen == [x for x in expected if x[1] or x[0] < len(expected)]


def test_a_line_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afterrun.loaders.tables.textblocks.MAX_LINE_BYTES", 100)
    path = write(tmp_path, "step,loss\n0,3\n" + "9" * 1000 + "\n1,2\n2,1\n")
    table, reader, lines = read_table(path, block_bytes=64)
    assert table["loss"] == [3.0, 2.0, 1.0]
    assert lines == [2, 4, 5]
    assert reader.losses.too_long == 1
    assert reader.losses.damaged == 1


# --- layout


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiter_by_content(delimiter: str) -> None:
    layout = layout_of([delimiter.join(row) for row in (["step", "loss"], ["0", "2.5"], ["1", "1.5"])])
    assert layout is not None
    assert (layout.delimiter, layout.names) == (delimiter, ("step", "loss"))


def test_decimal_comma_beside_semicolons(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "step;loss;lr\n0;2,5;1e-3\n1;1,25;1,5e-3\n"))
    assert reader.layout.delimiter == ";"
    assert reader.layout.decimal_comma
    assert table == {"step": [0.0, 1.0], "loss": [2.5, 1.25], "lr": [0.001, 0.0015]}


def test_a_comma_within_names_is_no_delimiter(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "step;loss, total\n0;2,5\n1;1,25\n"))
    assert reader.layout.delimiter == ";"
    assert table["loss, total"] == [2.5, 1.25]


def test_thousands_beside_a_tab_are_no_decimals(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "step\ttokens\n0\t1,024\n1\t2,048\n"))
    assert not reader.layout.decimal_comma
    assert table["tokens"] == [1024.0, 2048.0]


def test_excel_separator_line(tmp_path: Path) -> None:
    table, _, lines = read_table(write(tmp_path, "sep=;\nstep;loss\n0;2.5\n"))
    assert table == {"step": [0.0], "loss": [2.5]}
    assert lines == [3]


def test_preamble_and_commented_header(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "My training\nstep,loss\n0,2.5\n1,1.5\n"))
    assert table["loss"] == [2.5, 1.5]
    assert reader.layout.preamble == 1
    table, _, _ = read_table(write(tmp_path, "# step, loss\n0,2.5\n1,1.5\n"))
    assert table == {"step": [0.0, 1.0], "loss": [2.5, 1.5]}


def test_no_header_is_no_table(tmp_path: Path) -> None:
    assert layout_of(["0,2.5", "1,1.5"]) is None
    for text in ("", "\n\n", "0,2.5\n1,1.5\n"):
        with pytest.raises(UnreadableError, match="no header line"):
            TableReader(write(tmp_path, text))


def test_too_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afterrun.loaders.limits.MAX_COLUMNS", 3)
    with pytest.raises(LimitError, match="4 columns"):
        TableReader(write(tmp_path, "a,b,c,d\n1,2,3,4\n"))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("a", "b"), ("a", "b")),
        (("", "loss"), ("Unnamed: 0", "loss")),
        (("loss", "loss", "loss"), ("loss", "loss.1", "loss.2")),
        (("loss", "loss", "loss.1"), ("loss", "loss.2", "loss.1")),
        (("", ""), ("Unnamed: 0", "Unnamed: 1")),
    ],
)
def test_unique_names(labels: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert unique_names(labels) == names


@given(st.lists(st.sampled_from(["", "a", "a.1", "a.2", "Unnamed: 0", "b"]), max_size=12))
def test_names_are_unique_whatever_comes(labels: list[str]) -> None:
    names = unique_names(labels)
    assert len(set(names)) == len(labels)
    assert all(names)


def test_a_header_cut_by_the_head_keeps_its_whole_names() -> None:
    names = ["epoch", "step", *(f"layers.{i}.attention.weight/grad_norm" for i in range(200))]
    head = ",".join(names).encode()[:4096]
    layout = peek(head)
    assert layout is not None
    assert layout.cut
    assert layout.names == tuple(names[: len(layout.names)])
    assert len(layout.names) == head.count(b",")


def test_binary_is_no_table() -> None:
    assert peek(bytes(range(256)) * 8) is None
    assert peek(b"") is None
    assert peek(b"\0" * 4096) is None


# --- cells


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("a,b", ["a", "b"]),
        ('"a","b"', ["a", "b"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"say ""hi""",c', ['say "hi"', "c"]),
        (' "a" , b', ["a", " b"]),
        ('a"b,c', ['a"b', "c"]),
        ('"a"b,c', ['"a"b', "c"]),
        ("a,,", ["a", "", ""]),
        ('"",', ["", ""]),
    ],
)
def test_split_cells(line: str, cells: list[str]) -> None:
    assert split_cells(line, ",") == (cells, False)


def test_an_open_quote_is_told() -> None:
    assert split_cells('1,"a,b', ",") == (["1", "a,b"], True)


@given(st.lists(st.text(alphabet='ab,"; \n', max_size=6), min_size=1, max_size=6))
def test_quoted_cells_come_back(cells: list[str]) -> None:
    line = ",".join('"' + c.replace('"', '""') + '"' for c in cells)
    assert split_cells(line, ",") == (cells, False)


def test_quoted_cell_over_lines(tmp_path: Path) -> None:
    path = write(tmp_path, 'step,note,loss\n0,"first\nline, two",3\n1,plain,2\n')
    table, reader, lines = read_table(path)
    assert table["loss"] == [3.0, 2.0]
    assert lines == [2, 4]
    assert reader.losses.damaged == 0


def test_quoted_cell_over_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, 'step,note,loss\n0,"one\ntwo\nthree\nfour",3\n1,plain,2\n')
    for size in (20, 24, 30, 40):
        table, _, lines = read_table(path, block_bytes=size)
        assert (table["loss"], lines) == ([3.0, 2.0], [2, 6])


def test_a_stray_quote_costs_its_row_only(tmp_path: Path) -> None:
    path = write(tmp_path, 'step,loss\n0,3\n1,"2\n2,1\n3,0.5\n')
    table, _, _ = read_table(path)
    assert table["loss"] == [3.0, None, 1.0, 0.5]


def test_a_stray_quote_in_the_header_costs_one_name(tmp_path: Path) -> None:
    table, _, _ = read_table(write(tmp_path, 'step,"loss,acc\n0,3,0.5\n1,2,0.75\n'))
    assert table == {"step": [0.0, 1.0], '"loss': [3.0, 2.0], "acc": [0.5, 0.75]}


def test_blank_and_comment_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "# made by hand\nstep,loss\n\n0,3\n   \n# resumed\n1,2\n\n")
    table, _, lines = read_table(path)
    assert table["loss"] == [3.0, 2.0]
    assert lines == [4, 7]


def test_empty_is_null_and_nan_is_nan(tmp_path: Path) -> None:
    table, _, _ = read_table(write(tmp_path, "step,a,b\n0,,nan\n1, ,0\n"))
    assert table["a"] == [None, None]
    assert str(table["b"]) == "[nan, 0.0]"


# --- damage


def test_rows_wider_than_the_header_are_given_up(tmp_path: Path) -> None:
    path = write(tmp_path, "step,loss\n0,3\n1,2,0.1,0.2\n2,1\n")
    table, reader, _ = read_table(path)
    assert table == {"step": [0.0, 2.0], "loss": [3.0, 1.0]}
    assert list(reader.losses.notes()) == [
        "1 row with more cells (4) than the header has names (2) left out: line 3"
    ]


def test_short_rows_lack_their_last_cells(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "step,a,b\n0,3,1\n1,2\n2,1,0\n"))
    assert table == {"step": [0.0, 1.0, 2.0], "a": [3.0, 2.0, 1.0], "b": [1.0, None, 0.0]}
    assert reader.losses.damaged == 0


def test_a_few_short_rows_on_end_are_meant(tmp_path: Path) -> None:
    """A writer that grew a column later: three rows of the old width among forty."""
    old, new = [f"{i},{i}.5" for i in range(3)], [f"{i},{i}.5,1" for i in range(3, 40)]
    table, reader, _ = read_table(write(tmp_path, "\n".join(["step,a,b", *old, *new, ""])))
    assert table["a"] == [i + 0.5 for i in range(40)]
    assert table["b"] == [None] * 3 + [1.0] * 37
    assert reader.losses.damaged == 0


def test_a_lone_short_row_among_many_is_given_up(tmp_path: Path) -> None:
    """Nobody knows which of its cells is missing, so none may stand under a name."""
    rows = [f"{i},{i}.5,1" for i in range(40)]
    rows[20] = "20,1"
    table, reader, lines = read_table(write(tmp_path, "\n".join(["step,a,b", *rows, ""])))
    assert len(lines) == 39
    assert 22 not in lines
    assert table["a"] == [i + 0.5 for i in range(40) if i != 20]
    assert list(reader.losses.notes()) == [
        "1 row with fewer cells than the header has names left out: line 22"
    ]
    assert reader.losses.damaged == 1


def test_a_delimiter_after_every_row(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "step,loss\n0,3,\n1,2,\n"))
    assert table["loss"] == [3.0, 2.0]
    assert reader.losses.damaged == 0


def test_half_last_line(tmp_path: Path) -> None:
    """Cut within ``0.125``: the part that is left is no value of the run."""
    table, reader, _ = read_table(write(tmp_path, "step,a,b\n0,3,1\n1,2,0\n2,0.1"))
    assert table == {"step": [0.0, 1.0, 2.0], "a": [3.0, 2.0, None], "b": [1.0, 0.0, None]}
    assert reader.losses.damaged == 1
    assert list(reader.losses.notes()) == [
        "the file ends in the middle of line 4; its last cell was left out"
    ]


def test_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    table, reader, _ = read_table(write(tmp_path, "step,a\n0,3\n1,2"))
    assert table["a"] == [3.0, 2.0]
    assert reader.losses.damaged == 0


def test_zero_bytes(tmp_path: Path) -> None:
    text = b"step,a\n0,3\n" + b"\0" * 50 + b"\n1,2\n2,\0\0\0.5\n3,1\n" + b"\0" * 30
    table, reader, _ = read_table(write(tmp_path, text))
    assert table == {"step": [0.0, 1.0, 3.0], "a": [3.0, 2.0, 1.0]}
    assert reader.losses.damaged == 1
    assert list(reader.losses.notes()) == [
        "1 row overwritten with zero bytes left out: line 5",
        "stretches of zero bytes were skipped, as a crash or a full disk leaves them",
    ]


def test_the_header_again(tmp_path: Path) -> None:
    path = write(tmp_path, "step,a\n0,3\n1,2\nstep, a\n0,9\n")
    table, reader, lines = read_table(path)
    assert table == {"step": [0.0, 1.0, 0.0], "a": [3.0, 2.0, 9.0]}
    assert lines == [2, 3, 5]
    assert list(reader.losses.notes()) == ["the header comes again, as after a restart: line 4"]


def test_another_header_names_the_rows_after_it(tmp_path: Path) -> None:
    path = write(tmp_path, "step,a\n0,3\nstep,b,a\n1,7,2\n")
    table, reader, _ = read_table(path)
    assert table == {"step": [0.0, 1.0], "a": [3.0, 2.0], "b": [7.0]}
    assert reader.losses.damaged == 0


# --- two ways, one result

plain_word = st.sampled_from(
    ["warmup", "r1", "-", "None", "x y", "ü", "1e", "true", "2024-01-01 00:00:00", " ", "loss_1"]
)
plain_number = st.one_of(
    st.floats().map(repr),
    st.floats(width=32).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.floats(0, 1).map(lambda x: f"{x:.4e}"),
    st.sampled_from(["", "nan", "NaN", "inf", "-Infinity", "1e999", "+1.5", ".5", "7.", "1e-400", " 2.5"]),
)


@st.composite
def clean_files(draw: st.DrawFn) -> str:
    width = draw(st.integers(2, 6))
    end = draw(st.sampled_from(["\n", "\r\n", "\r\r\n"]))
    delimiter = draw(st.sampled_from([",", "\t", ";", "|"]))
    cell = draw(st.sampled_from([plain_number, st.one_of(plain_number, plain_word)]))
    row = st.lists(cell, min_size=width, max_size=width)
    rows = [[str(i), *r[1:]] for i, r in enumerate(draw(st.lists(row, min_size=1, max_size=30)))]
    header = ["step", *(f"loss_{i}" for i in range(1, width))]
    return end.join([delimiter.join(r) for r in [header, *rows]]) + end


@settings(max_examples=150)
@given(clean_files(), st.sampled_from([40, 200, BLOCK_BYTES]))
def test_fast_and_tolerant_agree(text: str, block_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), text)
        fast, fast_reader, fast_lines = read_table(path, block_bytes=block_bytes)
        slow, slow_reader, slow_lines = read_table(path, block_bytes=block_bytes, fast=False)
    assert repr(fast) == repr(slow)
    assert fast_lines == slow_lines
    assert list(fast_reader.losses.notes()) == list(slow_reader.losses.notes()) == []


@settings(max_examples=200)
@given(
    st.lists(st.text(alphabet='019.e-,,,;\n\n\r"# \0naifstep,loss', max_size=12), max_size=20),
    st.sampled_from([30, 100, BLOCK_BYTES]),
)
def test_fast_and_tolerant_agree_on_rubbish(pieces: list[str], block_bytes: int) -> None:
    """No input may be read one way by one path and another way by the other; neither may raise."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "step,loss\n0,1\n" + "".join(pieces))
        fast, fast_reader, fast_lines = read_table(path, block_bytes=block_bytes)
        slow, slow_reader, slow_lines = read_table(path, block_bytes=block_bytes, fast=False)
    assert repr(fast) == repr(slow)
    assert fast_lines == slow_lines
    assert list(fast_reader.losses.notes()) == list(slow_reader.losses.notes())


def test_plain_numbers_take_the_fast_way() -> None:
    frame = plain_cells(b"0,1.5\r\n1,\r\n", ("step", "loss"), ",")
    assert frame is not None
    assert frame.rows() == [(0.0, 1.5), (1.0, None)]
    assert frame.dtypes == [pl.Float64, pl.Float64]


@pytest.mark.parametrize("data", [b"0,x\n1,\n", b"0,1e\n", "0,größe\n".encode(), b"0,1_000\n"])
def test_plain_words_take_it_too(data: bytes) -> None:
    frame = plain_cells(data, ("step", "loss"), ",")
    assert frame is not None
    assert [",".join(c or "" for c in row) for row in frame.rows()] == data.decode().splitlines()
    assert frame.dtypes == [pl.String, pl.String]


@pytest.mark.parametrize(
    "data",
    [
        b"0,1\n1\n",
        b"0,1\n1,2,3\n",
        b"0,1\n1,2,3\n4\n",
        b'0,"1"\n',
        b"0,1",
        b"\n0,1\n",
        b"0,1\r1,2\n",
        b"0,1\n#1,2\n",
        b"0,1\n\0,2\n",
        b"0,1\nstep,loss\n",
        b"0,1\nloss,step\n",
        b"0,\xff\n",
    ],
)
def test_anything_odd_does_not(data: bytes) -> None:
    assert plain_cells(data, ("step", "loss"), ",") is None


def test_blank_lines_of_tabs(tmp_path: Path) -> None:
    _, reader, lines = read_table(write(tmp_path, "step\tloss\n0\t1\n\t\n1\t2\n"))
    assert lines == [2, 4]
    assert reader.losses.damaged == 0
