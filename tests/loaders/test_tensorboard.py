"""Scalars of event files: every way to write them, read as they were written."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afterrun.loaders.events import record as tfrecord
from afterrun.loaders.formats.curves import tensorboard
from afterrun.loaders.formats.curves.tensorboard import TensorBoard
from tests.support import events as ev
from tests.support.loading import Read, read, source

NAME = "events.out.tfevents.1700000000.host.1.0"
MANY = 40
"""Enough records of one kind to be decoded together."""


def load(folder: Path, events: Iterable[bytes]) -> Read:
    return read(TensorBoard(), ev.write(folder / NAME, events))


def test_points_come_in_write_order_with_step_and_time(tmp_path: Path) -> None:
    got = load(
        tmp_path,
        [
            ev.scalars(1_700_000_000.25, 0, loss=0.5),
            ev.scalars(1_700_000_001.5, 10, loss=0.25),
            ev.scalars(1_700_000_002.0, 5, loss=4.0),
        ],
    )
    assert got.points("loss") == [(0, 0.5), (10, 0.25), (5, 4.0)]
    assert got.metrics["seq"].to_list() == [0, 1, 2]
    assert got.metrics["wall_ns"].to_list() == [
        1_700_000_000_250_000_000,
        1_700_000_001_500_000_000,
        1_700_000_002 * 10**9,
    ]
    assert (got.damaged, got.notes, got.status) == (0, (), None)


@pytest.mark.parametrize("count", [1, MANY])
def test_wall_time_is_exact_to_the_nanosecond_of_the_double(tmp_path: Path, count: int) -> None:
    walls = [1_700_000_000.123456 + i * 0.7 for i in range(count)]
    got = load(tmp_path, [ev.scalars(wall, 3, loss=1.0) for wall in walls])
    assert got.metrics["wall_ns"].to_list() == [round(Fraction(wall) * 10**9) for wall in walls]


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("form", ["content", "packed", "unpacked"])
@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("float", -1.5),
        ("double", 0.1),
        ("half", 0.5),
        ("bfloat16", -1.5),
        ("int8", -3),
        ("int16", -300),
        ("int32", -70_000),
        ("int64", -(2**40)),
        ("uint8", 200),
        ("uint16", 60_000),
        ("uint32", 2**31 + 1),
        ("uint64", 2**63),
        ("bool", 1),
    ],
)
def test_tensors_of_every_type(tmp_path: Path, dtype: str, number: float, form: ev.Form, count: int) -> None:
    value = ev.tensor("acc", ev.tensor_proto([number], dtype, form))
    got = load(tmp_path, [ev.event(ev.WALL + i, i, ev.summary(value)) for i in range(count)])
    assert got.points("acc") == [(i, float(number)) for i in range(count)]
    assert (got.damaged, got.notes) == (0, ())


@pytest.mark.parametrize("dims", [(), (1,), (1, 1)])
def test_one_element_is_a_scalar_whatever_its_shape(tmp_path: Path, dims: tuple[int, ...]) -> None:
    value = ev.tensor("acc", ev.tensor_proto([0.75], dims=dims))
    assert load(tmp_path, [ev.event(ev.WALL, 2, ev.summary(value))]).points("acc") == [(2, 0.75)]


def test_small_vectors_are_spread_and_others_counted(tmp_path: Path) -> None:
    three = ev.tensor("iou", ev.tensor_proto([0.5, 0.25, 1.0], dims=(3,)))
    repeated = ev.tensor("same", ev.tensor_proto([2.0], "double", "packed", dims=(2,)))
    many = ev.tensor("weights", ev.tensor_proto([0.0] * 17, dims=(17,)))
    none = ev.tensor("nothing", ev.tensor_proto([], dims=(0,)))
    huge = ev.tensor("bomb", ev.tensor_proto([1.0], form="packed", dims=(2**40, 2**40)))
    got = load(tmp_path, [ev.event(ev.WALL, 7, ev.summary(v)) for v in (three, repeated, many, none, huge)])
    assert got.metrics.select("tag", "value").rows() == [
        ("iou[0]", 0.5),
        ("iou[1]", 0.25),
        ("iou[2]", 1.0),
        ("same[0]", 2.0),
        ("same[1]", 2.0),
    ]
    assert got.notes == ("3 tensors without a scalar skipped",)
    assert got.damaged == 0


def test_a_tensor_that_contradicts_itself_is_damage_and_no_number(tmp_path: Path) -> None:
    short = ev.integer(1, 1) + ev.shape(()) + ev.nested(4, b"\x00\x00")
    bare = ev.integer(1, 1) + ev.shape(())
    crowded = ev.tensor_proto([1.0, 2.0], form="packed")
    good = ev.simple("loss", 1.0)
    values = [good, *(ev.tensor("acc", proto) for proto in (short, bare, crowded)), good]
    got = load(tmp_path, [ev.event(ev.WALL, i, ev.summary(v)) for i, v in enumerate(values)])
    assert got.points("loss") == [(0, 1.0), (4, 1.0)]
    assert got.tags() == ["loss"]
    assert (got.damaged, got.notes) == (3, ("3 values could not be decoded",))


@pytest.mark.parametrize("count", [1, MANY])
def test_several_values_in_one_summary(tmp_path: Path, count: int) -> None:
    got = load(
        tmp_path, [ev.scalars(ev.WALL + i, i, loss=i + 0.5, acc=i + 0.25, lr=0.125) for i in range(count)]
    )
    assert got.metrics.select("tag", "step", "value").rows() == [
        row for i in range(count) for row in (("loss", i, i + 0.5), ("acc", i, i + 0.25), ("lr", i, 0.125))
    ]


@pytest.mark.parametrize(
    "step", [0, 1, 127, 128, 2**31, 2**48, 2**49 - 1, 2**49, 2**62, 2**63 - 1, -1, -(2**63)]
)
@pytest.mark.parametrize("count", [1, MANY])
def test_steps_of_every_size(tmp_path: Path, step: int, count: int) -> None:
    got = load(tmp_path, [ev.scalars(ev.WALL, step, loss=1.0)] * count)
    assert got.steps("loss") == [step] * count


def test_nan_and_infinity_are_values(tmp_path: Path) -> None:
    got = load(tmp_path, ev.curve("loss", [1.0, math.nan, math.inf, -math.inf]))
    assert got.values("loss")[0] == 1.0
    assert math.isnan(got.values("loss")[1])
    assert got.values("loss")[2:] == [math.inf, -math.inf]
    signalling = ev.nested(1, "loss") + b"\x15" + struct.pack("<I", 0x7F800001)
    again = load(tmp_path, [ev.event(ev.WALL, i, ev.summary(signalling)) for i in range(MANY)])
    assert again.metrics["value"].is_nan().sum() == MANY


def test_a_missing_wall_time_is_null_and_no_complaint(tmp_path: Path) -> None:
    got = load(tmp_path, [ev.scalars(None, 1, loss=1.0), ev.scalars(ev.WALL, 2, loss=2.0)])
    assert got.points("loss") == [(1, 1.0), (2, 2.0)]
    assert got.metrics["wall_ns"].to_list() == [None, 1_700_000_000 * 10**9]
    assert got.notes == ()


@pytest.mark.parametrize("wall", [math.nan, math.inf, -math.inf, -1.0, 1e12, 1e300])
def test_an_impossible_wall_time_costs_the_time_and_not_the_value(tmp_path: Path, wall: float) -> None:
    got = load(tmp_path, [ev.scalars(ev.WALL, 1, loss=1.0), ev.scalars(wall, 2, loss=2.0)])
    assert got.points("loss") == [(1, 1.0), (2, 2.0)]
    assert got.metrics["wall_ns"].to_list() == [1_700_000_000 * 10**9, None]
    assert got.notes == ("1 scalar with an impossible wall time kept without it",)


@pytest.mark.parametrize("count", [1, MANY])
def test_fields_in_any_order_and_unknown_ones(tmp_path: Path, count: int) -> None:
    value = ev.single(2, 0.5) + ev.nested(7, "node") + ev.integer(99, 5) + ev.nested(1, "loss")
    payload = ev.nested(1000, "new") + ev.summary(value) + ev.integer(2, 9) + ev.double(1, 12.5)
    got = load(tmp_path, [payload] * count)
    assert got.points("loss") == [(9, 0.5)] * count
    assert got.metrics["wall_ns"].to_list() == [12_500_000_000] * count


def test_the_last_of_two_steps_counts_as_in_protobuf(tmp_path: Path) -> None:
    payload = ev.event(ev.WALL, 3, ev.summary(ev.simple("loss", 1.0)) + ev.integer(2, 8))
    assert load(tmp_path, [payload] * MANY).steps("loss") == [8] * MANY


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", ""),
        (b"  train/loss \t", "train/loss"),
        (b"x" * 130, "x" * 130),
        (b"y" * 300, "y" * 300),
        ("Verlust/größe".encode(), "Verlust/größe"),
        (b"bad\xff\xfe/loss", "bad��/loss"),
    ],
)
def test_tags_of_every_kind(tmp_path: Path, written: bytes, expected: str, count: int) -> None:
    got = load(tmp_path, [ev.event(ev.WALL, i, ev.summary(ev.simple(written, 2.0))) for i in range(count)])
    assert got.points(expected) == [(i, 2.0) for i in range(count)]


def test_tags_that_differ_in_one_byte_stay_apart(tmp_path: Path) -> None:
    tags = [f"model.layers.{i:04}.self_attn.q_proj.weight/grad_norm" for i in range(700)]
    got = load(
        tmp_path,
        [
            ev.event(ev.WALL + s, s, ev.summary(ev.simple(tag, i + s / 4)))
            for s in range(3)
            for i, tag in enumerate(tags)
        ],
    )
    assert got.metrics.height == 2100
    assert all(got.values(tag) == [i, i + 0.25, i + 0.5] for i, tag in enumerate(tags))


def test_a_plugin_is_named_once_and_holds_for_the_tag(tmp_path: Path) -> None:
    proto = ev.tensor_proto([0.5])
    events = [
        ev.event(ev.WALL, 0, ev.summary(ev.tensor("acc", proto, "scalars", description="share right"))),
        ev.event(ev.WALL, 0, ev.summary(ev.tensor("pr", proto, "pr_curves"))),
        *(ev.event(ev.WALL, s, ev.summary(ev.tensor("acc", proto, None))) for s in range(1, MANY)),
        *(ev.event(ev.WALL, s, ev.summary(ev.tensor("pr", proto, None))) for s in range(1, MANY)),
        *(ev.event(ev.WALL, s, ev.summary(ev.tensor("untold", proto, None))) for s in range(MANY)),
    ]
    got = load(tmp_path, events)
    assert got.tags() == ["acc", "untold"]
    assert len(got.points("acc")) == len(got.points("untold")) == MANY
    assert got.notes == ("40 pr_curves values skipped",)


def test_int_and_float_content_of_equal_bytes_are_told_apart(tmp_path: Path) -> None:
    one = struct.unpack("<i", struct.pack("<f", 1.0))[0]
    whole, real = ev.tensor_proto([one], "int32"), ev.tensor_proto([1.0], "float")
    got = load(
        tmp_path,
        [ev.event(ev.WALL, s, ev.summary(ev.tensor("i", whole), ev.tensor("f", real))) for s in range(MANY)]
        + [ev.event(ev.WALL, s, ev.summary(ev.tensor("i", whole if s % 2 else real))) for s in range(MANY)],
    )
    assert set(got.values("f")) == {1.0}
    assert got.values("i") == [one] * MANY + [1.0, float(one)] * (MANY // 2)


NUMBERS = st.floats(width=32, allow_nan=False)
VALUES = st.tuples(
    st.sampled_from(["loss", "acc", "a" * 60, "", "été"]),
    NUMBERS,
    st.sampled_from(["simple", "float", "double", "bare", "int64"]),
)
EVENTS = st.tuples(
    st.one_of(st.integers(0, 300), st.integers(-(2**63), 2**63 - 1)), st.lists(VALUES, min_size=1, max_size=3)
)


def _encode(tag: str, number: float, form: str) -> bytes:
    if form == "simple":
        return ev.simple(tag, number)
    if form == "int64":
        return ev.tensor(tag, ev.tensor_proto([int(math.copysign(min(abs(number), 2**62), number))], "int64"))
    plugin = None if form == "bare" else "scalars"
    return ev.tensor(tag, ev.tensor_proto([number], "double" if form == "double" else "float"), plugin)


def _meant(number: float, form: str) -> float:
    return float(int(math.copysign(min(abs(number), 2**62), number))) if form == "int64" else number


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, max_size=60), st.integers(1, 4))
def test_any_mixture_is_read_as_written(tmp_path: Path, mixture: list[tuple[int, list]], times: int) -> None:
    written = mixture * times
    got = load(
        tmp_path,
        [ev.event(ev.WALL, step, ev.summary(*(_encode(*v) for v in values))) for step, values in written],
    )
    assert got.metrics.select("tag", "step", "value").rows() == [
        (tag, step, _meant(number, form)) for step, values in written for tag, number, form in values
    ]
    assert got.damaged == 0


def test_rows_do_not_depend_on_windows_or_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = []
    for i in range(300):
        events += [
            ev.scalars(ev.WALL + i, i, loss=float(i)),
            ev.event(ev.WALL, i, ev.summary(ev.simple("lr", 0.5))),
        ]
        if i % 50 == 7:
            events.append(ev.event(ev.WALL, i, ev.summary(ev.image("sample", bytes(3000)))))
    path = ev.write(tmp_path / NAME, events)
    whole = read(TensorBoard(), path)
    assert (whole.metrics.height, whole.notes) == (600, ("6 images skipped",))
    for window in (40, 500, 4096):
        monkeypatch.setattr(tfrecord, "WINDOW_BYTES", window)
        monkeypatch.setattr(tensorboard, "FLUSH_ROWS", window // 20)
        assert len(list(TensorBoard().load(source(path)))) > 1
        again = read(TensorBoard(), path)
        assert again.metrics.equals(whole.metrics)
        assert (again.notes, again.damaged) == (whole.notes, 0)


def test_a_file_cut_inside_its_last_record_keeps_the_others(tmp_path: Path) -> None:
    whole = ev.event_file(ev.curve("train/loss", [3.0 / (1 + i) for i in range(38)]))
    (tmp_path / NAME).write_bytes(whole[:-9])
    got = read(TensorBoard(), tmp_path / NAME)
    assert len(got.points("train/loss")) == 37
    assert (got.damaged, got.status) == (0, None)
    assert got.notes == ("file ends inside a record (still written or cut)",)


def test_empty_files_are_a_state_and_no_failure(tmp_path: Path) -> None:
    only_version = load(tmp_path, [])
    assert (only_version.status, only_version.notes, only_version.metrics.height) == (
        "empty",
        ("version record only",),
        0,
    )
    (tmp_path / NAME).write_bytes(b"")
    nothing = read(TensorBoard(), tmp_path / NAME)
    assert (nothing.status, nothing.notes) == ("empty", ("0 bytes: nothing was written",))
    only_graph = load(tmp_path, [ev.graph(ev.WALL, b"nodes")])
    assert (only_graph.status, only_graph.notes) == ("empty", ("1 graph skipped",))


def test_points_on_one_step_all_stay(tmp_path: Path) -> None:
    never_stepped = [ev.scalars(ev.WALL + 2 * i, None, loss=float(i)) for i in range(80)]
    got = load(tmp_path, never_stepped)
    assert got.points("loss") == [(0, float(i)) for i in range(80)]
    twice = [
        p for i in range(30) for p in ev.curve("t", [float(i)] + [i + 0.5] * (i in (0, 10, 20)), start=i)
    ]
    got = load(tmp_path, twice)
    assert len(got.points("t")) == 33
    assert got.points("t")[:3] == [(0, 0.0), (1, 0.5), (1, 1.0)]


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        (NAME, b"", True),
        ("events.out.tfevents.1623295230.64de921ef8e4.profile-empty", b"", True),
        (NAME, b"\x00" * 64, True),
        ("renamed.bin", ev.record(ev.version()), True),
        ("renamed.bin", ev.record(ev.scalars(None, 4, loss=1.0)), True),
        ("renamed.bin", b"", False),
        ("train.tfrecord", ev.record(ev.nested(1, b"features")), False),
        (NAME + ".csv", b"step,value\n", False),
        ("tfevents.txt", b"notes on tfevents", False),
    ],
)
def test_what_the_sniffer_claims(name: str, head: bytes, expected: bool) -> None:
    assert TensorBoard().sniff(Path(name), head) is expected


def test_frames_hold_the_declared_types(tmp_path: Path) -> None:
    path = ev.write(tmp_path / NAME, [*ev.curve("loss", [1.0]), ev.scalars(None, 2, loss=1.0)])
    (batch,) = TensorBoard().load(source(path))
    assert batch.frames["metrics"].schema == {
        "tag": pl.Categorical(),
        "seq": pl.Int64,
        "step": pl.Int64,
        "wall_ns": pl.Int64,
        "value": pl.Float64,
    }
