"""Log files as the frameworks write them: TensorBoard, Lightning, Keras, Hugging Face, a plain CSV."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import google_crc32c

BLOCK_BYTES = 4096


class Killed(Exception):  # noqa: N818  # an event, not an error of this script
    """The process is gone; what its writer had not handed to the file system is lost."""


class EventFile:
    """A TensorBoard event file of scalars, in TFRecord frames.

    Written in whole blocks like any buffered file. Leaving the ``with`` by ``Killed`` drops the block
    that was not full yet, so the file ends inside a record, as it does when a process is killed.
    """

    def __init__(self, folder: Path, start_s: float, pid: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"events.out.tfevents.{int(start_s)}.node1.{pid}.0").open("wb", buffering=0)
        self._pending = bytearray()
        self._add(_fixed64(1, start_s) + _text(3, b"brain.Event:2"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is not Killed:
            self._file.write(self._pending)
        self._file.close()

    def scalars(self, wall_s: float, step: int, values: Mapping[str, float]) -> None:
        """Add one event for each tag, as PyTorch's ``SummaryWriter.add_scalar`` does."""
        for tag, value in values.items():
            summary = _text(1, _text(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
            self._add(_fixed64(1, wall_s) + b"\x10" + _varint(step) + _text(5, summary))

    def _add(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        self._pending += length + _masked_crc(length) + event + _masked_crc(event)
        whole = len(self._pending) // BLOCK_BYTES * BLOCK_BYTES
        self._file.write(self._pending[:whole])
        del self._pending[:whole]


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _fixed64(field: int, value: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


def _text(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def write_csv(path: Path, columns: list[str], rows: Iterable[Mapping[str, float]]) -> None:
    """One line a row, an empty cell where a row lacks the column. Floats keep seven digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: short(value) for name, value in row.items()} for row in rows)


def write_trainer_state(folder: Path, history: list[dict[str, Any]], settings: Mapping[str, Any]) -> None:
    """``trainer_state.json`` as Hugging Face's Trainer leaves it: settings around ``log_history``."""
    folder.mkdir(parents=True, exist_ok=True)
    last = history[-1]
    state = {"epoch": last["epoch"], "global_step": last["step"], "log_history": history, **settings}
    text = json.dumps(dict(sorted(state.items())), indent=2)
    (folder / "trainer_state.json").write_text(text + "\n", encoding="utf-8")


def short(value: float) -> float:
    """The number to seven significant digits, about what float32 holds."""
    return value if isinstance(value, int) else float(f"{value:.7g}")
