"""mmengine and mmcv: ``Epoch(train) [3][50/7330] lr: 2e-02 time: 0.5 loss: 1.2``, ``Iter(train) [50/160000] ...``.

``time`` and ``data_time`` are seconds of one iteration. Validation and test lines count the batches of their own set;
they stand at the end of their epoch, or at the last training iteration above. Names that training lines use as well
(``time``, ``data_time``, ``memory``) get ``val/`` in front there, for they are other quantities, as in mmengine's JSON
file; all names of a test get ``test/``, for validation uses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(
    rf"(?P<loop>Epoch|Iter)(?:\((?P<mode>train|val|test)\))? ?(?:\[ ?(?P<epoch>{NUM})\] ?)?"
    rf"\[ ?(?P<part>{NUM})(?:/ ?(?P<whole>{NUM}))?\]"
)
_PAIR = re.compile(rf"(?:^|[ ,])(?P<key>[A-Za-z][\w./@() -]*?): (?P<value>{VALUE})(?=[ ,]|$)", re.IGNORECASE)
_SHARED = frozenset({"time", "data_time", "memory"})
_PASTED = "_copypaste"  # mmdet repeats its results on one line, for spreadsheets


class OpenMmlab(Grammar):
    """Training and validation lines of mmengine and mmcv."""

    name = "openmmlab"
    probes = ("epoch", "iter")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        found = _HEAD.match(line.text)
        if found is None:
            return
        mode = found["mode"] or "train"
        held_out = mode != "train"
        if not held_out and (found["whole"] is None or (found["epoch"] is None) != (found["loop"] == "Iter")):
            return
        fields = pairs(line.part(found.end()), _PAIR, skip=frozenset({"eta"}))
        fields = tuple(f for f in fields if not f.tag.endswith(_PASTED))
        if held_out:
            apart = {f.tag for f in fields} if mode == "test" else _SHARED
            fields = tuple(Field(f"{mode}/{f.tag}" if f.tag in apart else f.tag, f.number) for f in fields)
        if fields:
            yield Record(
                fields=fields, axes=_axes(line, found, held_out), inherits=held_out, ends_epoch=held_out
            )


def _axes(line: Skeleton, found: re.Match[str], held_out: bool) -> Axes:
    epoch = line.number(found, "epoch")
    if held_out:
        return Axes(epoch=epoch)
    part, whole = line.number(found, "part"), line.number(found, "whole")
    if found["loop"] == "Iter":
        return Axes(step=part, steps=whole)
    return Axes(epoch=epoch, batch=part, batches=whole)
