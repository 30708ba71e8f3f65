"""``.wandb`` files cut, empty or damaged: what is kept, what is counted, what is said."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.formats.curves.wandb_binary import Wandb
from afterrun.loaders.wandb import log as wandblog
from tests.support import wandb
from tests.support.events import nested
from tests.support.loading import Read, read, write

BLOCK = wandb.BLOCK
CUT = "file ends inside a record (still written or cut)"


def rows(count: int, *, numbered: bool = True, padding: int = 200) -> list[bytes]:
    """One history row a record, ``loss`` the number of the row."""
    return [
        wandb.history({"_step": i, "loss": float(i), "note": "x" * padding}, i + 1 if numbered else None)
        for i in range(count)
    ]


def load(tmp_path: Path, data: bytes) -> Read:
    return read(Wandb(), write(tmp_path, data, "run-x.wandb"))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def crashed_run() -> bytes:
    """A run record and 400 rows of about 300 bytes."""
    run = nested(1, "run1") + nested(3, "demo") + nested(4, wandb.config_body({"lr": 0.1}))
    values = [
        {
            "_step": i,
            "loss": 0.2 + 3 * math.exp(-i / 40),
            "_timestamp": 1.7e9 + i,
            ("val", "acc"): i / 100,
            "note": "x" * 200,
        }
        for i in range(400)
    ]
    rows = [wandb.history(row, i + 1) for i, row in enumerate(values)]
    return wandb.wandb_file([wandb.record(None, 17, run + nested(8, "calm-river-1")), *rows])


def test_b25_one_flipped_byte_and_a_cut_tail(tmp_path: Path) -> None:
    """The rest of the second block is lost, and the last two rows; the third block begins inside a record."""
    result = load(tmp_path, flipped(crashed_run(), 40_000)[:-500])
    assert result.steps("loss") == [*range(125), *range(206, 398)]
    assert result.values("val.acc") == [i / 100 for i in (*range(125), *range(206, 398))]
    assert result.params["lr"] == 0.1
    assert result.damaged == 81
    assert result.notes[0].startswith("1 damaged block of 32 KiB: ")
    assert result.notes[0].endswith(" bytes with 81 records skipped; the other blocks are intact")
    assert result.notes[1].startswith(CUT)
    assert result.notes[2] == "no exit record: the run was killed or is still going on"


def test_loss_is_estimated_where_records_are_not_numbered(tmp_path: Path) -> None:
    data = wandb.wandb_file(rows(400, numbered=False))
    result = load(tmp_path, flipped(data, 40_000))
    lost = 400 - len(result.steps("loss"))
    assert 0 < lost < 140
    assert abs(result.damaged - lost) <= 1
    assert f"about {result.damaged} records skipped" in result.notes[0]


def test_damage_behind_the_last_good_record_is_estimated(tmp_path: Path) -> None:
    data = wandb.wandb_file(rows(100))
    result = load(tmp_path, flipped(data, len(data) // 2))
    lost = 100 - len(result.steps("loss"))
    assert abs(result.damaged - lost) <= 1


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"", "0 bytes: nothing was written"),
        (wandb.HEADER, "the run wrote nothing but the file header"),
    ],
)
def test_files_of_a_failed_start(tmp_path: Path, data: bytes, note: str) -> None:
    result = load(tmp_path, data)
    assert (len(result.metrics), result.damaged, result.notes) == (0, 0, (note,))


def test_whole_blocks_that_end_inside_a_record(tmp_path: Path) -> None:
    data = wandb.wandb_file(rows(300, padding=1000))[: 5 * BLOCK]
    result = load(tmp_path, data)
    kept = len(result.steps("loss"))
    assert result.steps("loss") == list(range(kept))
    assert kept == sum(p.stop <= 5 * BLOCK and p.record == i for i, p in enumerate(last_pieces(300)))
    assert result.damaged == 0
    assert result.notes[0].startswith(CUT)
    assert "no exit record: the run was killed or is still going on" in result.notes


def last_pieces(count: int) -> list[wandb.Piece]:
    """The last piece of each record of ``rows(count, padding=1000)``."""
    return list({p.record: p for p in wandb.framed(rows(count, padding=1000))[1]}.values())


def test_a_header_whose_payload_was_never_written(tmp_path: Path) -> None:
    data = wandb.wandb_file(rows(50))
    result = load(tmp_path, data + wandb.piece(1, b"y" * 241)[:7])
    assert result.steps("loss") == list(range(50))
    assert result.notes[0] == f"{CUT}: 7 bytes left out"
    assert result.damaged == 0


def test_a_false_length_in_the_last_block_is_damage_and_no_cut(tmp_path: Path) -> None:
    data, pieces = wandb.framed(rows(50))
    at = pieces[10].start + 4
    result = load(tmp_path, data[:at] + (20_000).to_bytes(2, "little") + data[at + 2 :])
    assert result.steps("loss") == list(range(10))
    assert 38 <= result.damaged <= 42
    assert not any(CUT in note for note in result.notes)


def test_zeros_where_the_disk_was_never_written(tmp_path: Path) -> None:
    data = wandb.wandb_file(rows(50))
    result = load(tmp_path, data + bytes(3 * BLOCK))
    assert result.steps("loss") == list(range(50))
    assert result.damaged == 0
    assert result.notes[0] == f"{3 * BLOCK:,} zero bytes, reserved but never written"


def test_a_damaged_file_header_costs_nothing(tmp_path: Path) -> None:
    result = load(tmp_path, b"?" + wandb.wandb_file(rows(5))[1:])
    assert result.steps("loss") == list(range(5))
    assert result.notes[0] == "the file header is damaged"


@pytest.mark.parametrize(
    "data", [b"version https://git-lfs.github.com/spec/v1\n", b"not at all", bytes(BLOCK)]
)
def test_files_without_any_record_are_unreadable(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableError):
        load(tmp_path, data)


def test_a_record_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandblog, "MAX_RECORD_BYTES", 3 * BLOCK)
    huge = wandb.history({"note": "x" * 6 * BLOCK})
    result = load(tmp_path, wandb.wandb_file([*rows(3), huge, *rows(2)]))
    assert result.steps("loss") == [0, 1, 2, 0, 1]
    assert "1 oversized record skipped" in result.notes


# -- many mutated files ---------------------------------------------------------------------------------

Mutation = Callable[[bytes, random.Random], tuple[bytes, int, int]]
"""Gives the mutated bytes and the stretch outside of which nothing changed (open end: bytes moved)."""

END = 1 << 60


def flip(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :], at, at + 1


def overwrite(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at, size = dice.randrange(len(data)), dice.randrange(1, 300)
    size = min(size, len(data) - at)
    return data[:at] + dice.randbytes(size) + data[at + size :], at, at + size


def zero(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at, size = dice.randrange(len(data)), dice.randrange(1, 2 * BLOCK)
    size = min(size, len(data) - at)
    return data[:at] + bytes(size) + data[at + size :], at, at + size


def cut(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at = dice.randrange(len(data))
    return data[:at], at, END


def insert(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at = dice.randrange(len(data))
    return data[:at] + dice.randbytes(dice.randrange(1, 100)) + data[at:], at, END


def delete(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at = dice.randrange(len(data))
    return data[:at] + data[at + dice.randrange(1, 300) :], at, END


def false_length(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    at = dice.choice(PIECES).start + 4
    return data[:at] + dice.randrange(2**16).to_bytes(2, "little") + data[at + 2 :], at, at + 2


def swap_blocks(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    i = dice.randrange(len(data) // BLOCK - 1) * BLOCK
    swapped = data[i + BLOCK : i + 2 * BLOCK] + data[i : i + BLOCK]
    return data[:i] + swapped + data[i + 2 * BLOCK :], i, i + 2 * BLOCK


MUTATIONS: tuple[Mutation, ...] = (flip, overwrite, zero, cut, insert, delete, false_length, swap_blocks)

_dice = random.Random(7)
PAYLOADS = [
    wandb.history(
        {"_step": i, "loss": float(i), "note": "x" * _dice.choice([0, 50, 400, 9000, 40_000])}, i + 1
    )
    for i in range(60)
]
DATA, PIECES = wandb.framed(PAYLOADS)


def outside(first: int, stop: int) -> set[int]:
    """Rows all of whose pieces lie in blocks that the stretch does not touch."""
    touched = {
        p.record for p in PIECES if p.stop > first // BLOCK * BLOCK and p.start < -(-stop // BLOCK) * BLOCK
    }
    return set(range(len(PAYLOADS))) - touched


def check(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    mutation = MUTATIONS[seed % len(MUTATIONS)]
    data, first, stop = mutation(DATA, dice)
    try:
        found = load(tmp_path, data).points("loss")
    except UnreadableError:
        found = []
    kept = {int(value) for _, value in found}
    assert outside(first, stop) <= kept, (mutation.__name__, seed)
    assert all(step == value for step, value in found), (mutation.__name__, seed)
    assert len(found) == len(kept), (mutation.__name__, seed)


def test_mutated_files(tmp_path: Path) -> None:
    for seed in range(200):
        check(tmp_path, seed)


@pytest.mark.slow
def test_many_mutated_files(tmp_path: Path) -> None:
    for seed in range(200, 2200):
        check(tmp_path, seed)
