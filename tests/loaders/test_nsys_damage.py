"""Damaged exports: no exception, intact rows kept where the damage has a place, and no wrong number without a mark."""

from __future__ import annotations

import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders import sqlite
from afterrun.loaders.collect import collect
from afterrun.loaders.formats.traces.nsys_sqlite import load_sqlite
from afterrun.loaders.traces.nsys import sqlite_store
from tests.support.nsys import Export, steady

PAGE = 4096
KERNELS = 600


def export() -> Export:
    made = steady(KERNELS)
    for i in range(100):
        made.copy(1000 + i * 600, 1040 + i * 600).range(900 + i * 600, 1400 + i * 600, f"step {i}")
        made.os_call(i * 600, i * 600 + 300)
    return made


def damage(dice: random.Random, data: bytes) -> bytes:
    """Bits, bytes or pages changed, lost, doubled or never written."""
    out = bytearray(data)
    at, size = dice.randrange(len(out)), dice.randint(1, 64)
    page = dice.randrange(len(out) // PAGE) * PAGE
    kind = dice.randrange(8)
    if kind == 0:
        out[at] ^= 1 << dice.randrange(8)
    elif kind == 1:
        out[at : at + size] = dice.randbytes(size)
    elif kind == 2:
        out[at : at + 20 * size] = bytes(len(out[at : at + 20 * size]))
    elif kind == 3:
        out[page : page + PAGE] = bytes(PAGE)
    elif kind == 4:
        other = dice.randrange(len(out) // PAGE) * PAGE
        out[page : page + PAGE] = out[other : other + PAGE]
    elif kind == 5:
        del out[at:]
    elif kind == 6:
        del out[at : at + size]
    else:
        out[at:at] = dice.randbytes(size)
    return bytes(out)


def judged(path: Path) -> tuple[dict[str, Any], bool, list[str]]:
    """What is said of the devices and rows, whether damage is told, and notes of a reader that broke."""
    document = inventory(collect([path]))
    sources = [s for r in document["runs"] for s in r["sources"]]
    told = not sources or any(s["damaged"] or s["status"] in ("partial", "unreadable") for s in sources)
    said = {"devices": [r["devices"] for r in document["runs"]], "rows": [s["rows"] for s in sources]}
    return said, told, [s["note"] for s in sources if "please report" in s["note"]]


def silent_errors(folder: Path, mutants: int, seed: int) -> int:
    """Number of damaged copies with wrong answers and no mark; asserts that no reader broke."""
    path = export().write(folder / "report.sqlite")
    right, told, _ = judged(path)
    assert not told
    data, dice, silent = path.read_bytes(), random.Random(seed), 0
    for i in range(mutants):
        path.write_bytes(damage(dice, data))
        said, told, broken = judged(path)
        assert broken == [], i
        silent += said != right and not told
    return silent


def test_damage_is_told(tmp_path: Path) -> None:
    assert silent_errors(tmp_path, 100, seed=1) <= 2


@pytest.mark.slow
def test_much_damage_is_told(tmp_path: Path) -> None:
    assert silent_errors(tmp_path, 1500, seed=2) <= 30


def leaf_pages(path: Path, table: str) -> list[int]:
    """Offsets of the pages that hold the rows of a table, in order: those below its root."""
    data = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    top = (root - 1) * PAGE
    assert data[top] == 5  # an inner page
    cells = int.from_bytes(data[top + 3 : top + 5], "big")
    pointers = [int.from_bytes(data[top + 12 + 2 * i : top + 14 + 2 * i], "big") for i in range(cells)]
    pages = [int.from_bytes(data[top + p : top + p + 4], "big") for p in pointers]
    return [(page - 1) * PAGE for page in (*pages, int.from_bytes(data[top + 8 : top + 12], "big"))]


@pytest.mark.parametrize("place", [0, 2, -1])
def test_one_lost_page_costs_its_rows_only(tmp_path: Path, place: int) -> None:
    path = steady(KERNELS).write(tmp_path / "a.sqlite")
    pages = leaf_pages(path, "CUPTI_ACTIVITY_KIND_KERNEL")
    data = bytearray(path.read_bytes())
    rows = int.from_bytes(data[pages[place] + 3 : pages[place] + 5], "big")
    data[pages[place] : pages[place] + PAGE] = bytes(PAGE)
    path.write_bytes(data)
    (run,) = inventory(collect([path]))["runs"]
    (source,) = run["sources"]
    assert run["devices"][0]["kernels"] == KERNELS - rows
    assert source["status"] == "partial"
    assert source["damaged"] == (rows if place != -1 else 1)  # what stood behind the last row is not known
    assert "SQLite stopped reading" in source["note"]


def test_a_lost_page_in_one_stretch_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "CHUNK_ROWS", 100)
    test_one_lost_page_costs_its_rows_only(tmp_path, 2)


def swapped(path: Path) -> Path:
    """An export in which one page of the kernel table is a copy of another: every query answers, wrongly."""
    pages = leaf_pages(steady(KERNELS).write(path), "CUPTI_ACTIVITY_KIND_KERNEL")
    data = bytearray(path.read_bytes())
    data[pages[1] : pages[1] + PAGE] = data[pages[3] : pages[3] + PAGE]
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("whole_bytes", [0, 1 << 30])
def test_the_check_finds_what_no_query_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_bytes: int
) -> None:
    monkeypatch.setattr(sqlite, "WHOLE_CHECK_BYTES", whole_bytes)
    (run,) = inventory(collect([swapped(tmp_path / "a.sqlite")]))["runs"]
    (source,) = run["sources"]
    assert source["status"] == "partial"
    assert "SQLite finds the file damaged" in source["note"]


def test_a_file_too_large_to_be_checked_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "WHOLE_CHECK_BYTES", 0)
    monkeypatch.setattr(sqlite, "MAX_CHECKED_BYTES", 0)
    (run,) = inventory(collect([steady(3).write(tmp_path / "a.sqlite")]))["runs"]
    assert run["sources"][0]["note"] == sqlite.UNCHECKED
    assert run["devices"][0]["kernels"] == 3


def test_a_check_that_no_one_waits_for_ends(tmp_path: Path) -> None:
    path = steady(KERNELS).write(tmp_path / "a.sqlite")
    batches = load_sqlite(path)
    next(batches)
    before = threading.active_count()
    batches.close()
    assert threading.active_count() <= before


def changed(folder: Path, *statements: str) -> dict[str, Any]:
    """The run of a steady export after these changes."""
    path = steady(10).write(folder / "a.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {statement}")
    (run,) = inventory(collect([path]))["runs"]
    return dict(run)


@pytest.mark.parametrize(
    "value", ["'none'", "x'00ff'", "1.5", "-9223372036854775808"], ids=["text", "bytes", "real", "too early"]
)
@pytest.mark.parametrize("row", [1, 7])
def test_a_wrong_value_costs_its_row(tmp_path: Path, value: str, row: int) -> None:
    run = changed(tmp_path, f"start = {value} WHERE rowid = {row}")
    assert run["devices"][0]["kernels"] == 9
    assert run["sources"][0]["damaged"] == 1


def test_an_end_before_the_start_costs_its_row(tmp_path: Path) -> None:
    run = changed(tmp_path, '"end" = start - 1 WHERE rowid = 3')
    assert (run["devices"][0]["kernels"], run["sources"][0]["damaged"]) == (9, 1)


def test_a_device_there_is_not_costs_its_row(tmp_path: Path) -> None:
    run = changed(tmp_path, "deviceId = -7 WHERE rowid = 3", "deviceId = 9000 WHERE rowid = 4")
    assert ([d["device"] for d in run["devices"]], run["sources"][0]["damaged"]) == ([0], 2)


def test_a_kernel_without_a_name_is_kept(tmp_path: Path) -> None:
    run = changed(tmp_path, "demangledName = 4711, shortName = 4711 WHERE rowid = 3")
    assert (run["devices"][0]["kernels"], run["sources"][0]["damaged"]) == (10, 0)


def test_strings_in_another_encoding_are_names(tmp_path: Path) -> None:
    path = steady(10).write(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE StringIds SET value = CAST(? AS TEXT) WHERE id = 1", ("ядро".encode("cp1251"),))
    (run,) = inventory(collect([path]))["runs"]
    assert run["sources"][0]["damaged"] == 0


def test_views_and_generated_columns_are_not_evaluated(tmp_path: Path) -> None:
    path = steady(2).write(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n"
        db.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")
        db.execute(
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT AS (hex(zeroblob(9))))"
        )
        db.execute("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59)")
    (run,) = inventory(collect([path]))["runs"]
    assert run["devices"] == []
    assert run["sources"][0]["rows"]["spans"] == 3  # two calls and a range without a name


def test_a_log_of_unwritten_changes_is_read_with_the_file(tmp_path: Path) -> None:
    path = steady(5).write(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 5")
        db.commit()
        copy = tmp_path / "copy"
        copy.mkdir()
        for file in (path, path.with_name("a.sqlite-wal")):
            (copy / file.name).write_bytes(file.read_bytes())
    before = sorted(p.name for p in copy.iterdir())
    (run,) = inventory(collect([copy / "a.sqlite"]))["runs"]
    assert run["devices"][0]["kernels"] == 4
    assert sorted(p.name for p in copy.iterdir()) == before


def test_nothing_is_written_beside_the_file(tmp_path: Path) -> None:
    path = steady(5).write(tmp_path / "a.sqlite")
    path.chmod(0o444)
    before = path.read_bytes()
    collect([path])
    assert [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]
    assert path.read_bytes() == before
