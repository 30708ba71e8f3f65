"""Mutated text logs: nothing raises, lines that lie outside of the damage are read as before."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.textlog.clean import Damage, clean_blocks
from afterrun.loaders.textlog.reader import TextLogReader
from afterrun.loaders.textlog.sniffing import is_text_log

LINES = 60

WRITERS: tuple[Callable[[int], str], ...] = (
    lambda i: (
        f" iteration {i:6d}/  900 | consumed samples: {i * 64} | lm loss: {9 / (i + 1):.6E} | grad norm: {i % 7}.5 |\n"
    ),
    lambda i: f"iter {i}: loss {5 / (i + 1):.4f}, time {i}.5ms, mfu 3.1%\n",
    lambda i: (
        f"step {i:6d}/19560 | loss {9 / (i + 1):f} (+0.10z)| norm 1.5 (-0.30z)| lr 8.57e-07 | 4621.47 ms | 29.2% bf16 MFU | 11 tok/s\n"
    ),
    lambda i: f"step:{i}/900 train_loss:{5 / (i + 1):.4f} train_time:{i}ms step_avg:1.50ms\n",
    lambda i: (
        f"2024-05-01 10:00:{i % 60:02d},250 - trainer - INFO - step {i} loss={5 / (i + 1):.4f} lr=1e-4\n"
    ),
)


def flip(data: bytearray, dice: random.Random) -> tuple[int, int]:
    at = dice.randrange(len(data))
    data[at] ^= 1 << dice.randrange(8)
    return at, at + 1


def overwrite(data: bytearray, dice: random.Random) -> tuple[int, int]:
    at, size = dice.randrange(len(data)), dice.randrange(1, 80)
    data[at : at + size] = dice.randbytes(min(size, len(data) - at))
    return at, at + size


def zero(data: bytearray, dice: random.Random) -> tuple[int, int]:
    at, size = dice.randrange(len(data)), dice.randrange(1, 200)
    size = min(size, len(data) - at)
    data[at : at + size] = bytes(size)
    return at, at + size


def cut(data: bytearray, dice: random.Random) -> tuple[int, int]:
    at = dice.randrange(1, len(data))
    size = len(data)
    del data[at:]
    return at, size


def insert(data: bytearray, dice: random.Random) -> tuple[int, int]:
    at = dice.randrange(len(data))
    data[at:at] = dice.randbytes(dice.randrange(1, 60))
    return at, at + 1


def delete(data: bytearray, dice: random.Random) -> tuple[int, int]:
    at, size = dice.randrange(len(data)), dice.randrange(1, 150)
    del data[at : at + size]
    return at, at + size


def double(data: bytearray, dice: random.Random) -> tuple[int, int]:
    """A stretch written twice, as by a retry."""
    at, size = dice.randrange(len(data)), dice.randrange(1, 300)
    data[at:at] = data[at : at + size]
    return at, at + 1


KINDS = (flip, overwrite, zero, cut, insert, delete, double)


Row = tuple[int | None, str, float]


def rows_read(path: Path) -> set[Row]:
    """(step, tag, value) of the rows of a file."""
    damage = Damage()
    found: set[Row] = set()
    for batch in TextLogReader(clean_blocks(path, damage, 900), damage).batches():
        if "metrics" in batch.frames:
            frame = batch.frames["metrics"].with_columns(pl.col("tag").cast(pl.String))
            found |= set(frame.select("step", "tag", "value").rows())
    return found


def check(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    write = WRITERS[seed % len(WRITERS)]
    lines = [write(i).encode() for i in range(LINES)]
    path = folder / f"{seed}.log"
    path.write_bytes(b"".join(lines))
    whole = rows_read(path)
    data = bytearray(b"".join(lines))
    kind = KINDS[seed // len(WRITERS) % len(KINDS)]
    begin, end = kind(data, dice)
    path.write_bytes(data)
    is_text_log(path, bytes(data[:4096]))
    intact, at = set(), 0
    for i, line in enumerate(lines):
        # a mutated line end may glue two lines, and both then belong to the damage
        if at + len(line) < begin or at > end:
            intact.add(i)
        at += len(line)
    missing = {row for row in whole if row[0] in intact} - rows_read(path)
    assert not missing, (kind.__name__, seed, sorted(missing)[:3])


@pytest.mark.parametrize("seed", range(100))
def test_intact_lines_are_kept(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed)


@pytest.mark.slow
def test_intact_lines_are_kept_in_a_thousand_files(tmp_path: Path) -> None:
    for seed in range(100, 1100):
        check(tmp_path, seed)


@pytest.mark.parametrize("seed", range(20))
def test_noise_never_raises(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    alphabet = b"0123456789.,:=|[](){}'\"-+eE \n\r\t\x1b\x08\0nanifloss epoch step/%\xff\xc3"
    path = tmp_path / "noise.log"
    path.write_bytes(bytes(dice.choice(alphabet) for _ in range(5000)))
    rows_read(path)
    is_text_log(path, path.read_bytes()[:4096])
