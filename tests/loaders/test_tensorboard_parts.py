"""The parts of the event reader by themselves: checksums, varints, names."""

from __future__ import annotations

import random

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.events import crc as tfcrc
from afterrun.loaders.events.name import Writer, writer_of
from afterrun.loaders.events.record import PAD_BYTES, claimed
from afterrun.loaders.events.wide import ranges, varints
from afterrun.loaders.protowire import WireError, fields, signed, varint
from tests.support import events as ev


@pytest.mark.parametrize("count", [1, 300, 5000])
def test_many_checksums_are_those_of_the_library(count: int) -> None:
    dice = random.Random(count)
    strings = [dice.randbytes(dice.randrange(140)) for _ in range(count)]
    data = np.frombuffer(bytes(PAD_BYTES) + b"".join(strings) + bytes(PAD_BYTES), np.uint8).copy()
    ends = PAD_BYTES + np.cumsum([len(s) for s in strings])
    starts = ends - [len(s) for s in strings]
    assert tfcrc.of_strings(data, starts, ends).tolist() == [google_crc32c.value(s) for s in strings]


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
def test_checksums_of_lengths(lengths: list[int]) -> None:
    got = tfcrc.of_lengths(np.array(lengths, np.int64)).tolist()
    assert got == [google_crc32c.value(length.to_bytes(8, "little")) for length in lengths]


def test_the_masked_checksum_of_a_known_record() -> None:
    """First header of a file that TensorFlow wrote: 24 bytes of version record."""
    head = bytes.fromhex("1800000000000000a37f4b22")
    assert claimed(head) == 24
    assert tfcrc.masked(tfcrc.of_lengths(np.array([24]))).tolist() == [0x224B7FA3]
    assert claimed(head[:11] + b"\x23") is None
    assert claimed(head[:11]) is None


@given(st.lists(st.integers(0, 2**49 - 1), min_size=1, max_size=30))
def test_varints_taken_apart_together(numbers: list[int]) -> None:
    rows = [(b"\x10" + ev.varint(n) + b"\xff" * 8)[:8] for n in numbers]
    number, size, ended = varints(np.frombuffer(b"".join(rows), np.uint64))
    assert number.tolist() == numbers
    assert size.tolist() == [len(ev.varint(n)) for n in numbers]
    assert ended.all()


def test_a_varint_that_goes_on_is_said_to() -> None:
    assert not varints(np.frombuffer(b"\x10" + ev.varint(2**49)[:7], np.uint64))[2][0]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_one_by_one(number: int) -> None:
    raw = ev.varint(number)
    unsigned, end = varint(memoryview(raw), 0, len(raw))
    assert (signed(unsigned), end) == (number, len(raw))


@pytest.mark.parametrize("raw", [b"\x80", b"\xff" * 11, b"\x0a\x05abc", b"\x0d\x00", b"\x0b", b"\x00\x01"])
def test_broken_messages_say_so(raw: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(memoryview(raw), 0, len(raw)))


def test_ragged_ranges() -> None:
    assert ranges(np.array([5, 9, 20]), np.array([2, 0, 3])).tolist() == [5, 6, 20, 21, 22]
    assert ranges(np.array([], np.int64), np.array([], np.int64)).size == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("events.out.tfevents.1508192545.brain", (1508192545, "brain", None, None, None)),
        ("events.out.tfevents.1761924447.GBENCHEIKH.5700.0", (1761924447, "GBENCHEIKH", 5700, 0, None)),
        (
            "events.out.tfevents.1622966509.janoshs-mbp.lan.86059.2",
            (1622966509, "janoshs-mbp.lan", 86059, 2, None),
        ),
        (
            "events.out.tfevents.1664082589.DESKTOP-27TFO05.4004.0.v2",
            (1664082589, "DESKTOP-27TFO05", 4004, 0, "v2"),
        ),
        (
            "events.out.tfevents.1623295279.64de921ef8e4.2942.202269.v2",
            (1623295279, "64de921ef8e4", 2942, 202269, "v2"),
        ),
        (
            "events.out.tfevents.1623295230.64de921ef8e4.profile-empty",
            (1623295230, "64de921ef8e4", None, None, "profile-empty"),
        ),
        ("events.out.tfevents.1700000000.my host.1.0", (1700000000, "my host", 1, 0, None)),
        ("events.out.tfevents.1700000000.192.168.0.17", (1700000000, "192.168.0.17", None, None, None)),
        ("events.out.tfevents.1700000000.192.168.0.17.4711.0", (1700000000, "192.168.0.17", 4711, 0, None)),
        ("events.out.tfevents.1689841114.node1", (1689841114, "node1", None, None, None)),
        ("events.out.tfevents.1700000000", (1700000000, None, None, None, None)),
        ("metrics.csv", (None, None, None, None, None)),
    ],
)
def test_names_of_event_files(name: str, expected: tuple[object, ...]) -> None:
    started_s, host, pid, number, suffix = expected
    assert writer_of(name) == Writer(started_s=started_s, host=host, pid=pid, number=number, suffix=suffix)
