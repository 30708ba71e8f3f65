"""What event files hold beside scalars: histograms, hyper-parameters, texts, marks, blobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl
import pytest

from afterrun.loaders.formats.curves.tensorboard import TensorBoard
from afterrun.loaders.schema import Batch, conform
from tests.support import events as ev
from tests.support.loading import source

NAME = "events.out.tfevents.1700000000.host.1.0"
MANY = 30
FAR = 1.7976931348623157e308


def load(folder: Path, events: Iterable[bytes]) -> Batch:
    (batch,) = TensorBoard().load(source(ev.write(folder / NAME, events)))
    return batch


def table(batch: Batch, name: str) -> pl.DataFrame:
    return conform(name, batch.frames[name])


def buckets(folder: Path, value: bytes) -> list[tuple[list[float], list[float]]]:
    """Edges and counts of one value, alone and among many of its kind; they must agree."""
    alone = table(load(folder, [ev.event(ev.WALL, 0, ev.summary(value))]), "histograms")
    many = table(
        load(folder, [ev.event(ev.WALL + i, i, ev.summary(value)) for i in range(MANY)]), "histograms"
    )
    assert many["step"].to_list() == list(range(MANY))
    assert many["wall_ns"].to_list() == [(1_700_000_000 + i) * 10**9 for i in range(MANY)]
    rows = set(map(str, many.select("edges", "counts").rows()))
    assert rows == {str(alone.select("edges", "counts").row(0))}
    return alone.select("edges", "counts").rows()


def test_an_old_histogram_becomes_edges_and_counts(tmp_path: Path) -> None:
    value = ev.histo("w", limits=[-1.0, 0.0, 1.0, FAR], counts=[0, 2, 3, 0], low=-0.5, high=0.75)
    assert buckets(tmp_path, value) == [([-0.5, 0.0, 0.75], [2.0, 3.0])]


def test_inner_empty_buckets_stay_and_extremes_stay_inside(tmp_path: Path) -> None:
    value = ev.histo("w", limits=[1.0, 2.0, 3.0, 4.0], counts=[1, 0, 0, 4], low=0.5, high=9.0)
    assert buckets(tmp_path, value) == [([0.5, 1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 4.0])]


def test_one_bucket_and_a_catch_all_at_the_end(tmp_path: Path) -> None:
    assert buckets(tmp_path, ev.histo("w", [0.0, FAR], [0, 7], 0.25, 0.25)) == [([0.25, 0.25], [7.0])]


def test_a_histogram_of_nothing_is_empty_and_still_there(tmp_path: Path) -> None:
    assert buckets(tmp_path, ev.histo("w", [0.0, 1.0], [0, 0], 0.0, 0.0)) == [([], [])]


def test_old_histograms_with_fields_in_another_order(tmp_path: Path) -> None:
    usual = ev.histo("w", [1.0, 2.0], [3, 4], 0.5, 1.5)
    behind = usual + ev.metadata("histograms")
    assert buckets(tmp_path, behind) == buckets(tmp_path, usual) == [([0.5, 1.0, 1.5], [3.0, 4.0])]


def test_a_histogram_tensor(tmp_path: Path) -> None:
    touching = ev.histogram_tensor("w", [(0.0, 1.0, 2.0), (1.0, 4.0, 3.0)])
    assert buckets(tmp_path, touching) == [([0.0, 1.0, 4.0], [2.0, 3.0])]
    apart = ev.histogram_tensor("w", [(0.0, 1.0, 2.0), (3.0, 4.0, 5.0)])
    assert buckets(tmp_path, apart) == [([0.0, 1.0, 3.0, 4.0], [2.0, 0.0, 5.0])]
    assert buckets(tmp_path, ev.histogram_tensor("w", [])) == [([], [])]


def test_histograms_of_both_kinds_keep_the_order_of_the_file(tmp_path: Path) -> None:
    values = [
        ev.histogram_tensor("new", [(0.0, 1.0, 1.0)]),
        ev.histo("old", [1.0], [1], 0.0, 1.0),
        ev.histogram_tensor("new", [(0.0, 1.0, 2.0)]),
        ev.histo("old", [1.0], [2], 0.0, 1.0),
    ]
    got = table(
        load(tmp_path, [ev.event(None, i, ev.summary(v)) for i, v in enumerate(values)]), "histograms"
    )
    assert got["tag"].cast(pl.String).to_list() == ["new", "old", "new", "old"]
    assert got["counts"].to_list() == [[1.0], [1.0], [2.0], [2.0]]
    assert got["wall_ns"].to_list() == [None] * 4


def test_a_histogram_that_contradicts_itself_is_damage(tmp_path: Path) -> None:
    lopsided = ev.nested(1, "w") + ev.nested(5, ev.nested(6, bytes(16)) + ev.nested(7, bytes(8)))
    ragged = ev.tensor("w", ev.tensor_proto([1.0, 2.0], "double", dims=(2,)), "histograms")
    good = ev.histo("w", [1.0], [2], 0.0, 1.0)
    got = load(tmp_path, [ev.event(ev.WALL, 0, ev.summary(v)) for v in (lopsided, ragged, good)])
    assert got.damaged == 2
    assert table(got, "histograms")["counts"].to_list() == [[2.0]]


def params(batch: Batch) -> Mapping[str, object]:
    return {key: json.loads(value) for key, value in table(batch, "params").select("key", "value").rows()}


def test_hyper_parameters_keep_name_and_type(tmp_path: Path) -> None:
    values = {
        "lr": 0.001,
        "batch_size": 32.0,
        "optimizer": "adam",
        "amp": True,
        "nan": float("nan"),
        "größe/x": "ü",
    }
    got = load(tmp_path, [ev.event(ev.WALL, 0, ev.summary(ev.hparams(values)))])
    assert params(got) == values | {"batch_size": 32, "nan": "NaN"}
    assert "32.0" not in table(got, "params")["value"].to_list()
    assert got.notes == ()


def test_nested_hyper_parameters(tmp_path: Path) -> None:
    number, word = ev.double(2, 60.0), ev.nested(3, "adam")
    steps = ev.nested(6, ev.nested(1, number) + ev.nested(1, ev.integer(1, 0)))
    tree = ev.nested(5, ev.nested(1, ev.nested(1, "name") + ev.nested(2, word)))
    start = b"".join(
        ev.nested(1, ev.nested(1, k) + ev.nested(2, v)) for k, v in (("milestones", steps), ("opt", tree))
    )
    value = ev.nested(1, "_hparams_/session_start_info") + ev.metadata("hparams", ev.nested(3, start))
    got = load(tmp_path, [ev.event(ev.WALL, 0, ev.summary(value))])
    assert params(got) == {"milestones": [60, None], "opt": {"name": "adam"}}


def test_endless_nesting_is_damage_and_no_recursion(tmp_path: Path) -> None:
    value = ev.double(2, 1.0)
    for _ in range(3000):
        value = ev.nested(6, ev.nested(1, value))
    start = ev.nested(1, ev.nested(1, "deep") + ev.nested(2, value))
    bomb = ev.nested(1, "_hparams_/session_start_info") + ev.metadata("hparams", ev.nested(3, start))
    got = load(tmp_path, [ev.event(ev.WALL, 0, ev.summary(bomb)), ev.scalars(ev.WALL, 1, loss=1.0)])
    assert got.damaged == 1
    assert got.frames["metrics"].height == 1


def test_texts_describe_the_run(tmp_path: Path) -> None:
    events = [
        ev.event(ev.WALL, 0, ev.summary(ev.text("args/text_summary", '{"lr": 1e-4}'))),
        ev.event(ev.WALL, 0, ev.summary(ev.text("sample", "first"))),
        ev.event(ev.WALL, 9, ev.summary(ev.text("sample", "one", "two"))),
        ev.event(ev.WALL, 9, ev.summary(ev.text("book", "x" * 20_000))),
    ]
    got = load(tmp_path, events)
    assert params(got) == {
        "text/args/text_summary": '{"lr": 1e-4}',
        "text/sample": ["one", "two"],
        "text/book": "x" * 10_000,
    }
    assert got.notes == ("1 long text shortened", "1 earlier text skipped")
    assert got.status is None


def test_sessions_become_marks(tmp_path: Path) -> None:
    events = [
        ev.session(ev.WALL, 0, 1),
        ev.session(ev.WALL + 60, 500, 3, "model.ckpt-500"),
        ev.session(ev.WALL + 61, 501, 2),
        ev.session(ev.WALL + 62, 501, 0),
    ]
    got = table(load(tmp_path, events), "marks")
    assert got.select(pl.col("kind").cast(pl.String), "step", "text").rows() == [
        ("start", 0, ""),
        ("checkpoint", 500, "model.ckpt-500"),
        ("finish", 501, ""),
    ]
    assert got["t_ns"].to_list() == [(1_700_000_000 + s) * 10**9 for s in (0, 60, 61)]


def test_blobs_are_counted_and_passed_over(tmp_path: Path) -> None:
    png = ev.tensor("shown", ev.integer(1, 7) + ev.nested(8, b"8") + ev.nested(8, b"PNG"), "images")
    values = [ev.image("a", bytes(50_000)), ev.image("a", b"x"), ev.audio("b", b"wave"), png]
    events = [
        ev.graph(ev.WALL, bytes(70_000)),
        *(ev.event(ev.WALL, i, ev.summary(value)) for i, value in enumerate(values)),
        ev.event(ev.WALL, None, ev.nested(8, ev.nested(1, "step 3"))),
        *ev.curve("loss", [1.0]),
        ev.event(ev.WALL, 0, ev.summary(ev.tensor("words", ev.integer(1, 7) + ev.nested(8, b"hi"), None))),
    ]
    got = load(tmp_path, events)
    assert got.frames["metrics"].height == 1
    assert got.notes == (
        "1 audio clip, 1 graph, 3 images, 1 run-metadata record, 1 tensor without a scalar skipped",
    )
    assert got.damaged == 0


def test_a_note_names_few_kinds(tmp_path: Path) -> None:
    values = [ev.tensor(f"t{i}", ev.integer(1, 7), f"plugin{i:02}") for i in range(12)]
    (note,) = load(tmp_path, [ev.event(ev.WALL, 0, ev.summary(v)) for v in values]).notes
    assert note.count("plugin") == 8
    assert note.endswith(", 4 others skipped")


@pytest.mark.parametrize("payload", [b"\x2a\x05\x0a", b"\x0a\x00", b"\xff" * 12, b"\x0b\x0c", b"\x09\x00"])
def test_a_record_that_is_no_event_is_counted(tmp_path: Path, payload: bytes) -> None:
    got = load(tmp_path, [ev.scalars(ev.WALL, 0, loss=1.0), payload, ev.scalars(ev.WALL, 1, loss=2.0)])
    assert got.frames["metrics"]["value"].to_list() == [1.0, 2.0]
    assert (got.damaged, got.notes) == (1, ("1 value could not be decoded",))


def test_a_session_that_is_no_message_is_counted(tmp_path: Path) -> None:
    got = load(tmp_path, [ev.event(ev.WALL, 0, ev.nested(7, b"\xff\xff")), ev.scalars(ev.WALL, 1, loss=2.0)])
    assert (got.damaged, got.frames["metrics"].height) == (1, 1)
