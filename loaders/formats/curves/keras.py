"""Keras' ``CSVLogger``: ``training.log``, ``log.csv`` or any name its user chose.

The first column is ``epoch``, counted from 0; the others are the keys of ``logs`` in sorted order, each
validation metric being ``val_`` before the name of its training twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisRule
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_RULE = AxisRule(step=(), soft_step=(), epoch=("epoch",))


class KerasCsv(Loader):
    """A log of Keras' CSV logger, one row an epoch."""

    format = "keras-csv"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """``epoch`` first, then sorted names with ``loss`` among them, and no ``val_x`` without its ``x``."""
        layout = peek(head)
        if layout is None or layout.cut or layout.labels[0] != "epoch" or "step" in layout.labels:
            return False
        keys = layout.labels[1:]
        return "loss" in keys and _is_sorted(keys) and _paired(keys)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; the epoch is the step."""
        yield from load_wide(source.path, _RULE, source.wanted)


def _is_sorted(keys: Sequence[str]) -> bool:
    """All sorted, or the training keys sorted and the validation keys after them (Keras 3)."""
    training = [k for k in keys if not k.startswith("val_")]
    held_out = [k for k in keys if k.startswith("val_")]
    return list(keys) == sorted(keys) or list(keys) == sorted(training) + held_out


def _paired(keys: Sequence[str]) -> bool:
    return all(k.removeprefix("val_") in keys for k in keys if k.startswith("val_"))
