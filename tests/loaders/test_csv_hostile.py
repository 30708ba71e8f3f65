"""Mutated files: nothing raises, and rows that the mutation did not touch come out as they were written."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.curves.csv_log import CsvLog
from afterrun.loaders.formats.curves.keras import KerasCsv
from afterrun.loaders.formats.curves.lightning import LightningCsv
from afterrun.loaders.formats.curves.stable_baselines3 import Sb3Monitor
from afterrun.loaders.registry import Loader
from tests.support.loading import Read, read, write

MUTANTS = 150
ROWS = 120
COLUMNS = ("step", "loss", "acc", "lr")


def table(rng: random.Random) -> list[str]:
    """Lines of a clean log; every value is printed so that no two rows share one."""
    lines = [",".join(COLUMNS)]
    for i in range(ROWS):
        cells = [
            str(i * 10),
            f"{3 / (1 + i) + rng.random() * 1e-3:.9f}",
            f"{i / ROWS + rng.random() * 1e-4:.9f}",
            f"{1e-3 * 0.99**i:.12f}",
        ]
        lines.append(",".join(cells))
    return lines


def _flip(rng: random.Random, data: bytearray, at: int) -> int:
    data[at] ^= 1 << rng.randrange(8)
    return 1


def _insert(rng: random.Random, data: bytearray, at: int) -> int:
    data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 4)))
    return 1


def _drop_delimiter(rng: random.Random, data: bytearray, at: int) -> int:
    comma = data.find(b",", at)
    if comma >= 0:
        del data[comma]
    return 1


def _zeros(rng: random.Random, data: bytearray, at: int) -> int:
    n = rng.randint(1, 40)
    data[at : at + n] = bytes(min(n, len(data) - at))
    return n


def _delete(rng: random.Random, data: bytearray, at: int) -> int:
    n = rng.randint(1, 60)
    del data[at : at + n]
    return n


def _quote(rng: random.Random, data: bytearray, at: int) -> int:
    data[at:at] = b'"'
    return 1


def _cut(rng: random.Random, data: bytearray, at: int) -> int:
    del data[at:]
    return 0


KINDS = (_flip, _insert, _drop_delimiter, _zeros, _delete, _quote, _cut)


def mutate(rng: random.Random, lines: list[str], kind: int) -> tuple[bytes, set[str]]:
    """A damaged file, its header whole, and the lines of the original that still stand in it whole."""
    data = bytearray(("\n".join(lines) + "\n").encode())
    first = len(lines[0]) + 1
    for _ in range(rng.randint(1, 3)):
        if len(data) > first + 50:
            KINDS[kind % len(KINDS)](rng, data, rng.randrange(first, len(data) - 1))
    ended = bytes(data).decode("latin-1").replace("\r", "\n").split("\n")[:-1]
    return bytes(data), set(ended) & set(lines[1:])


def kept(read: Read, lines: set[str]) -> int:
    """How many of these lines came out whole, each value under its own name."""
    rows = read.metrics.filter(pl.col("step").is_not_null()).select("step", "tag", "value")
    by_step: dict[int, dict[str, set[float]]] = {}
    for step, tag, value in rows.iter_rows():
        by_step.setdefault(step, {}).setdefault(tag, set()).add(value)
    found = 0
    for line in lines:
        cells = line.split(",")
        values = by_step.get(int(cells[0]), {})
        found += all(float(c) in values.get(n, ()) for n, c in zip(COLUMNS, cells, strict=True))
    return found


def misnamed(read: Read, lines: list[str]) -> list[tuple[str, float]]:
    """Values of the original that stand under another name than they were written under."""
    home = {float(c): n for line in lines[1:] for n, c in zip(COLUMNS[1:], line.split(",")[1:], strict=True)}
    return [(t, v) for t, v in read.metrics.select("tag", "value").iter_rows() if home.get(v, t) != t]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[k.__name__[1:] for k in KINDS])
def test_intact_rows_survive_and_nothing_changes_its_name(tmp_path: Path, kind: int) -> None:
    rng = random.Random(kind)
    intact = survived = 0
    for n in range(MUTANTS // len(KINDS) + 1):
        lines = table(rng)
        data, whole = mutate(rng, lines, kind)
        result = read(CsvLog(), write(tmp_path, data, f"{n}.csv"))
        intact += len(whole)
        survived += kept(result, whole)
        assert misnamed(result, lines) == []
    assert intact > 500
    assert survived >= 0.99 * intact


def test_lost_rows_are_counted(tmp_path: Path) -> None:
    """A deleted delimiter is never silent: the row is damaged, or its cells do not read."""
    rng = random.Random(7)
    for n in range(40):
        lines = table(rng)
        row = rng.randrange(1, len(lines))
        where = [i for i, c in enumerate(lines[row]) if c == ","][1:]
        at = rng.choice(where)
        lines[row] = lines[row][:at] + lines[row][at + 1 :]
        result = read(CsvLog(), write(tmp_path, "\n".join(lines) + "\n", f"{n}.csv"))
        assert result.damaged == 1
        assert any(f"line {row + 1}" in note for note in result.notes)
        assert len(result.metrics) == (ROWS - 1) * len(COLUMNS)


@pytest.mark.parametrize(
    "loader", [CsvLog(), KerasCsv(), LightningCsv(), Sb3Monitor()], ids=lambda x: x.format
)
def test_no_mutant_raises(tmp_path: Path, loader: Loader) -> None:
    """The header may be hit here: then names differ, but every outcome is a batch or a told refusal."""
    rng = random.Random(11)
    clean = '#{"t_start": 1700000000.5, "env_id": "E"}\nr,l,t\n' + "".join(
        f"{i}.5,{i + 1},{i * 2}\n" for i in range(60)
    )
    refused = 0
    for n in range(40):
        data = bytearray(clean.encode())
        for _ in range(rng.randint(1, 6)):
            KINDS[rng.randrange(len(KINDS))](rng, data, rng.randrange(len(data) - 1) if len(data) > 1 else 0)
        path = write(tmp_path, bytes(data), f"{n}.csv")
        try:
            read(loader, path)
        except UnreadableError:
            refused += 1
    assert refused < 20


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b",",
        b'"',
        b'step,loss\n"',
        b"step,loss",
        b"step,loss\n" + b"," * 5000,
        b"step,loss\n" + b'"' * 5000,
        b"step,loss\n" + b"(" * 5000 + b",1\n",
        b"step,loss\n" + b"9" * 5000 + b",1e" + b"9" * 5000 + b"\n",
        b"\xff\xfes\0t\0e\0p\0,\0a\0\n\0" + b"0\0,\0\x00\xd81\0\n\0x",
        b"step,loss\n1,\xf0\x9f\x98\n",
    ],
)
def test_hostile_bytes_raise_nothing_but_a_refusal(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, data)
    CsvLog().sniff(path, data[:4096])
    try:
        assert read(CsvLog(), path).damaged <= 2
    except UnreadableError:
        assert b"\n" not in data, "a file with a header line is read"
