"""Damaged event files: nothing raises, nothing hangs, what is intact is kept, what is lost is counted."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import pytest

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.events import record as tfrecord
from afterrun.loaders.events import walk as tfwalk
from afterrun.loaders.events.record import RecordFile, straight
from afterrun.loaders.formats.curves import tensorboard
from afterrun.loaders.formats.curves.tensorboard import TensorBoard
from afterrun.loaders.registry import Source
from tests.support import damage
from tests.support import events as ev

NAME = "events.out.tfevents.1700000000.host.1.0"
COUNT = 200


@dataclass(frozen=True)
class Kept:
    """Numbers of the events read whole, of values nobody wrote, and what the loader said."""

    steps: frozenset[int]
    false: int
    damaged: int
    notes: tuple[str, ...]


def records(count: int, *, mixed: bool = False) -> list[bytes]:
    """A version record, then events whose step, tag and value all follow from their number."""
    values = []
    for i in range(count):
        if mixed and i % 9 == 4:
            values.append(ev.tensor("tensor", ev.tensor_proto([float(i)])))
        elif mixed and i % 13 == 5:
            values.append(ev.histo("histogram", [1.0, 2.0, 3.0], [1.0, 2.0, i + 1.0], 0.5, 3.0))
        else:
            values.append(ev.simple(f"tag{i % 3}", float(i)))
    return [ev.record(ev.version())] + [
        ev.record(ev.event(ev.WALL + i, i, ev.summary(value))) for i, value in enumerate(values)
    ]


def read(path: Path, data: bytes) -> Kept:
    path.write_bytes(data)
    batches = list(TensorBoard().load(Source(path=path, name=path.name, size_bytes=len(data))))
    found: list[tuple[int, float]] = []
    for batch in batches:
        if "metrics" in batch.frames:
            found += batch.frames["metrics"].select("step", "value").rows()
        if "histograms" in batch.frames:
            rows = batch.frames["histograms"].select("step", "counts").rows()
            found += [(step, counts[-1] - 1.0) for step, counts in rows]
    true = [step for step, value in found if step == value]
    assert len(set(true)) == len(true), "a record was read twice"
    notes = tuple(note for batch in batches for note in batch.notes)
    return Kept(frozenset(true), len(found) - len(true), sum(batch.damaged for batch in batches), notes)


@pytest.mark.parametrize("kind", damage.KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("window", [700, tfrecord.WINDOW_BYTES])
def test_mutated_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: damage.Kind, window: int
) -> None:
    monkeypatch.setattr(tfrecord, "WINDOW_BYTES", window)
    for seed in range(25):
        mutated = kind(records(COUNT, mixed=bool(seed % 2)), random.Random(seed))
        got = read(tmp_path / NAME, mutated.data)
        intact = {i - 1 for i in mutated.intact if i}
        gone = COUNT - len(got.steps)
        assert intact <= got.steps, f"seed {seed}: intact records lost"
        assert got.false == 0, f"seed {seed}: a value nobody wrote"
        if gone and mutated.kind not in ("cut", "delete"):  # what is not in the file leaves no trace in it
            assert gone <= got.damaged <= 2 * gone + 4, f"seed {seed}"


def test_every_single_byte_flipped(tmp_path: Path) -> None:
    whole = b"".join(records(9))
    for at in range(len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 0x41
        got = read(tmp_path / NAME, bytes(broken))
        in_version = at < len(ev.record(ev.version()))
        assert got.false == 0
        assert len(got.steps) + got.damaged == 9 + (in_version and got.damaged), f"byte {at}"
        assert len(got.steps) >= 8 + in_version, f"byte {at}"


def test_every_prefix_reads_and_never_more_than_the_whole(tmp_path: Path) -> None:
    parts = records(6)
    whole, before = b"".join(parts), 0
    ends = [sum(map(len, parts[: i + 1])) for i in range(len(parts))]
    for size in range(1, len(whole) + 1):
        got = read(tmp_path / NAME, whole[:size])
        assert len(got.steps) == max(0, sum(end <= size for end in ends) - 1)
        assert len(got.steps) >= before
        assert ("file ends inside a record (still written or cut)" in got.notes) == (size not in ends)
        assert got.damaged == 0
        before = len(got.steps)


@pytest.mark.parametrize("claim", [2**31, 2**32, 2**40, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("at", [0, 1, 100, COUNT])
def test_huge_claims_of_length_allocate_nothing_and_lose_nothing(tmp_path: Path, claim: int, at: int) -> None:
    parts = records(COUNT)
    parts[at] = ev.header(claim) + parts[at][12:]
    tracemalloc.start()
    got = read(tmp_path / NAME, b"".join(parts))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert got.steps == frozenset(range(COUNT))
    assert (got.damaged, got.false) == (0, 0)
    assert got.notes == ("1 record with a damaged header kept; the content has the right checksum",)
    assert peak_bytes < 8 << 20


def test_zeros_at_the_end_are_the_end(tmp_path: Path) -> None:
    whole = b"".join(records(5))
    for zeros in (1, 11, 12, 4096):
        got = read(tmp_path / NAME, whole + bytes(zeros))
        assert (len(got.steps), got.damaged) == (5, 0)
        assert got.notes == (f"{zeros:,} zero bytes at the end (reserved, never written)",)


def test_a_long_zero_end_over_many_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "WINDOW_BYTES", 300)
    got = read(tmp_path / NAME, b"".join(records(5)) + bytes(5000))
    assert (len(got.steps), got.damaged) == (5, 0)
    assert got.notes == ("5,000 zero bytes at the end (reserved, never written)",)


def test_a_block_of_zeros_inside_is_counted_in_records(tmp_path: Path) -> None:
    parts = records(100)
    parts[41:46] = [bytes(len(part)) for part in parts[41:46]]
    got = read(tmp_path / NAME, b"".join(parts))
    assert got.steps == frozenset(range(100)) - {40, 41, 42, 43, 44}
    assert got.damaged == 5


def test_a_writer_that_went_on_after_a_cut_record(tmp_path: Path) -> None:
    parts = records(50)
    for left in (1, 11, 12, 13, 30):
        torn = [*parts[:20], parts[20][:left], *parts[21:]]
        got = read(tmp_path / NAME, b"".join(torn))
        assert got.steps == frozenset(range(50)) - {19}
        assert got.damaged == 1


def test_a_wrong_number_is_never_read(tmp_path: Path) -> None:
    parts = records(50)
    broken = bytearray(b"".join(parts))
    broken[sum(map(len, parts[:20])) + len(parts[20]) - 5] ^= 1  # the last byte of a value
    got = read(tmp_path / NAME, bytes(broken))
    assert (got.steps, got.false, got.damaged) == (frozenset(range(50)) - {19}, 0, 1)
    assert got.notes == (f"1 damaged record in {len(parts[20])} bytes skipped",)


def test_damage_found_after_rows_were_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard, "FLUSH_ROWS", 20)
    monkeypatch.setattr(tfrecord, "WINDOW_BYTES", 1000)
    parts = records(100)
    parts[60] = parts[60][:20] + b"?" + parts[60][21:]
    parts[80] = b"?" * len(parts[80])
    got = read(tmp_path / NAME, b"".join(parts))
    assert (got.steps, got.damaged) == (frozenset(range(100)) - {59, 79}, 2)


def test_an_oversized_record_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "LARGEST_BYTES", 5000)
    monkeypatch.setattr(tfrecord, "WINDOW_BYTES", 1000)
    parts = records(10)
    parts.insert(5, ev.record(ev.graph(ev.WALL, bytes(6000))))
    got = read(tmp_path / NAME, b"".join(parts))
    assert got.steps == frozenset(range(10))
    assert (got.damaged, got.notes) == (0, ("1 record above 64 MiB skipped unread",))


def test_a_false_claim_above_the_limit_swallows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord, "LARGEST_BYTES", 1000)
    monkeypatch.setattr(tfrecord, "WINDOW_BYTES", 1000)
    parts = records(100)
    parts[11] = ev.header(2000) + parts[11][12:]
    got = read(tmp_path / NAME, b"".join(parts))
    assert (got.steps, got.damaged) == (frozenset(range(100)), 0)


def test_a_file_inside_an_image_is_not_read_as_records(tmp_path: Path) -> None:
    inner = b"".join(records(30))
    parts = [*records(3), ev.record(ev.event(ev.WALL, 3, ev.summary(ev.image("a", inner)))), *records(6)[4:]]
    got = read(tmp_path / NAME, b"".join(parts))
    assert (got.steps, got.false) == ({0, 1, 2, 3, 4, 5}, 0)
    assert got.notes == ("1 image skipped",)


def test_false_headers_do_not_cost_the_square_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfwalk, "WASTE_BYTES", 0)
    read_bytes = 0
    true_check = tfwalk.intact

    def counting(raw: bytes, mark: int, end: int) -> bool:
        nonlocal read_bytes
        read_bytes += end - mark
        return true_check(raw, mark, end)

    monkeypatch.setattr(tfwalk, "intact", counting)
    data = ev.record(ev.version()) + ev.header(90_000) * 20_000
    got = read(tmp_path / NAME, data)
    assert got.steps == frozenset()
    assert got.damaged >= 1
    assert read_bytes <= (tfwalk.WASTE_FACTOR + 2) * len(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "git-lfs"),
        (bytes(range(1, 256)) * 20, "no intact record in 5,100 bytes"),
        (b"<!DOCTYPE html><html>not found</html>", "no intact record in 37 bytes"),
    ],
)
def test_what_is_no_event_file_is_refused_with_a_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read(tmp_path / NAME, data)


def test_a_file_that_shrinks_or_vanishes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tfrecord, "WINDOW_BYTES", 500)
    path = tmp_path / NAME
    path.write_bytes(b"".join(records(100)))
    size = path.stat().st_size
    with path.open("rb", buffering=0) as file:
        walk = straight(RecordFile(file, size))
        first = next(walk).starts.size
        path.unlink()
        assert first + sum(window.starts.size for window in walk) == 101
    path.write_bytes(b"".join(records(100)))
    with path.open("rb", buffering=0) as file:
        walk = straight(RecordFile(file, size))
        assert next(walk).starts.size == first
        with path.open("r+b") as writer:
            writer.truncate(600)
        rest = list(walk)
    assert rest[-1].tally.cut_bytes > 0


def test_a_file_that_grows_shows_more_each_time(tmp_path: Path) -> None:
    parts = records(30)
    path = tmp_path / NAME
    path.write_bytes(parts[0])
    loading = TensorBoard().load(Source(path=path, name=path.name, size_bytes=0))
    before = 0
    with path.open("ab", buffering=0) as writer:
        for part in parts[1:]:
            writer.write(part[:20])
            seen = _points(path)
            writer.write(part[20:])
            assert before <= seen <= _points(path)
            before = seen
    assert sum(batch.frames["metrics"].height for batch in loading) == 30


def _points(path: Path) -> int:
    batches = TensorBoard().load(Source(path=path, name=path.name, size_bytes=0))
    return sum(batch.frames["metrics"].height for batch in batches if "metrics" in batch.frames)
