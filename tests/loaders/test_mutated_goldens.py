"""Damaged copies of the golden inputs of JSON logs, MLflow and tables of tools: no reader fails on one."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.golden import GOLDEN

CASES = ("json-logs", "mlflow-stores", "tool-tables", "exported")


def damage(rng: random.Random, data: bytes) -> bytes:
    """A few bytes flipped, replaced, deleted, doubled or cut off."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        if not out:
            break
        at, n = rng.randrange(len(out)), rng.randint(1, 40)
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at : at + n] = rng.randbytes(n)
        elif kind == 2:
            del out[at : at + n]
        elif kind == 3:
            out[at:at] = out[at : at + n]
        elif kind == 4:
            out[at:at] = rng.choice(
                [b'"', b"{", b"}", b"[", b"NaN", b"1e999", b"-", b"\n", b"\0", b"\xff", b"9" * 30]
            )
        else:
            del out[max(at, 1) :]
    return bytes(out)


def failures(case: str, folder: Path, mutants: int) -> list[str]:
    """Notes of readers that broke, over so many damaged copies of all files of a case."""
    rng = random.Random(case)
    broken: list[str] = []
    for _ in range(mutants):
        target = folder / "mutant"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(GOLDEN / case / "input", target)
        for path in sorted(p for p in target.rglob("*") if p.is_file()):
            path.write_bytes(damage(rng, path.read_bytes()))
        collection = collect([target])
        inventory(collection)
        notes = [*collection.tables.sources["note"], *(n for r in collection.runs.values() for n in r.notes)]
        broken += [note for note in notes if "please report" in note]
    return broken


@pytest.mark.parametrize("case", CASES)
def test_no_reader_fails_on_damage(tmp_path: Path, case: str) -> None:
    assert failures(case, tmp_path, 15) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_reader_fails_on_much_damage(tmp_path: Path, case: str) -> None:
    assert failures(case, tmp_path, 300) == []
