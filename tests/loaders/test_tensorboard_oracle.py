"""Our reading of event files against tbparse, TensorBoard's own accumulator, and the real files."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.loaders.events.compat import read_with_tbparse
from afterrun.loaders.formats.curves.tensorboard import TensorBoard
from afterrun.loaders.registry import HEAD_BYTES
from tests.support import events as ev
from tests.support.loading import CORPUS, Read, corpus_records, read

NAME = "events.out.tfevents.1700000000.host.1.0"
RECORDS = list(corpus_records("tensorboard"))
each_record = pytest.mark.parametrize("record", RECORDS, ids=[record["id"] for record in RECORDS])


def points(frame: pl.DataFrame) -> dict[str, list[tuple[int, int, str]]]:
    """(step, wall time in nanoseconds, value as text) of each tag; as text NaN equals NaN.

    By step, and in write order within one: the order of tbparse.
    """
    found: dict[str, list[tuple[int, int, str]]] = {}
    for tag, step, wall_ns, value in frame.select("tag", "step", "wall_ns", "value").iter_rows():
        found.setdefault(tag, []).append((step, wall_ns, repr(value)))
    return {tag: sorted(found[tag], key=lambda point: point[0]) for tag in found}


def ours(got: Read) -> dict[str, list[tuple[int, int, str]]]:
    return points(got.metrics)


def theirs(path: Path) -> dict[str, list[tuple[int, int, str]]]:
    frame = read_with_tbparse(path)
    wall_ns = [round(Fraction(wall_s) * 10**9) for wall_s in frame["wall_s"]]
    return points(frame.with_columns(wall_ns=pl.Series(wall_ns, dtype=pl.Int64)))


def accumulated(path: Path) -> dict[str, list[tuple[int, float]]]:
    """Scalars and one-element tensors of plugin ``scalars`` by TensorBoard's ``EventAccumulator``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not ours to mend
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.util.tensor_util import make_ndarray

        source = EventAccumulator(
            str(path), size_guidance={"tensors": 0, "scalars": 0}, purge_orphaned_data=False
        )
        source.Reload()
        tags = source.Tags()
        found = {tag: [(e.step, float(e.value)) for e in source.Scalars(tag)] for tag in tags["scalars"]}
        for tag in tags["tensors"]:
            if source.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                found[tag] = [
                    (e.step, float(make_ndarray(e.tensor_proto).item())) for e in source.Tensors(tag)
                ]
        return found


@pytest.mark.parametrize("kind", ["one tag", "many tags", "several values", "images between", "odd steps"])
def test_tbparse_reads_the_same(tmp_path: Path, kind: str) -> None:
    wave = [math.sin(i / 7) for i in range(120)]
    written = {
        "one tag": ev.curve("train/loss", wave),
        "many tags": [
            event for i in range(30) for event in ev.curve(f"layer{i}/norm", wave[:9], wall=ev.WALL + i)
        ],
        "several values": [ev.scalars(ev.WALL + i, i, loss=v, acc=-v, lr=1e-3) for i, v in enumerate(wave)],
        "images between": [
            event
            for i, v in enumerate(wave)
            for event in (
                ev.scalars(ev.WALL + i, i, loss=v),
                ev.event(ev.WALL + i, i, ev.summary(ev.image("x", bytes(99)))),
            )
        ],
        "odd steps": [
            ev.scalars(ev.WALL + i, i * i * 999 - 4, loss=v)
            for i, v in enumerate([*wave, math.nan, math.inf])
        ],
    }
    path = ev.write(tmp_path / NAME, written[kind])
    got = ours(read(TensorBoard(), path))
    assert got
    assert got == theirs(path)


@pytest.mark.parametrize("dtype", ["float", "double", "half", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("form", ["content", "packed", "unpacked"])
def test_tensorboard_reads_the_same_tensors(tmp_path: Path, dtype: str, form: ev.Form) -> None:
    numbers = [0, 1, 1] if dtype == "bool" else [0, 3, 100]
    values = [ev.tensor("epoch_loss", ev.tensor_proto([number], dtype, form)) for number in numbers]
    path = ev.write(
        tmp_path / NAME, [ev.event(ev.WALL + i, i, ev.summary(value)) for i, value in enumerate(values)]
    )
    got = read(TensorBoard(), path).points("epoch_loss")
    assert got == [(i, float(number)) for i, number in enumerate(numbers)]
    assert accumulated(path) == {"epoch_loss": got}


@pytest.mark.corpus
@each_record
def test_real_files_hold_what_was_counted_in_them(record: dict[str, Any]) -> None:
    path, truth = CORPUS / record["path"], record["truth"]
    with path.open("rb") as file:
        assert TensorBoard().sniff(path, file.read(HEAD_BYTES))
    got = read(TensorBoard(), path)
    assert got.metrics.height == truth["n_points"]
    assert got.metrics["value"].is_nan().sum() == truth["nan"]
    assert got.metrics["value"].is_infinite().sum() == truth["inf"]
    assert len(got.tags()) == truth["n_scalar_tags"]
    assert got.damaged == 0
    for tag, sample in truth["sample"].items():
        steps, values = got.steps(tag.strip()), got.values(tag.strip())
        assert (len(values), steps[0], steps[-1]) == (sample["n"], sample["first_step"], sample["last_step"])
        assert values[-1] == pytest.approx(float(sample["last"]), rel=1e-9, nan_ok=True)
    images = sum(int(note.split()[i - 1]) for note in got.notes if "image" in note for i in _at(note))
    assert images == truth["images"]


def _at(note: str) -> list[int]:
    return [i for i, word in enumerate(note.split()) if word.startswith("image")]


@pytest.mark.corpus
@each_record
def test_tbparse_reads_real_files_the_same(record: dict[str, Any]) -> None:
    path = CORPUS / record["path"]
    got = read(TensorBoard(), path)
    tensors = {tag for tag, (plugin, _) in record["truth"]["tensors"].items() if plugin == "scalars"}
    assert {tag: p for tag, p in ours(got).items() if tag not in tensors} == theirs(path)
    if tensors:
        assert {tag: got.points(tag) for tag in got.tags()} == accumulated(path)
