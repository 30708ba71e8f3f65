"""mmengine and mmcv: ``Epoch(train) [3][50/7330] lr: 2e-02 time: 0.5 loss: 1.2``, ``Iter(train) [50/160000] ...``.

Validation lines count the batches of the validation set; they stand at the end of their epoch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_EPOCH = re.compile(rf"Epoch(?:\((train|val|test)\))? ?\[({NUM})\] ?\[ ?({NUM})/({NUM})\]")
_ITER = re.compile(rf"Iter(?:\((train|val|test)\))? ?\[ ?({NUM})/({NUM})\]")
_PAIR = re.compile(rf"(?:^|[ ,])(?P<key>[A-Za-z][\w./@() -]*?): (?P<value>{VALUE})(?=[ ,]|$)", re.IGNORECASE)


class OpenMmlab(Grammar):
    """Training and validation lines of mmengine and mmcv."""

    name = "openmmlab"
    probes = ("epoch", "iter")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        if found := _EPOCH.match(line.text):
            held_out = found[1] in ("val", "test")
            epoch = line.number(found, 2)
            batch = Axes(epoch=epoch, batch=line.number(found, 3), batches=line.number(found, 4))
            axes = Axes(epoch=epoch) if held_out else batch
        elif found := _ITER.match(line.text):
            held_out = found[1] in ("val", "test")
            axes = Axes() if held_out else Axes(step=line.number(found, 2), steps=line.number(found, 3))
        else:
            return
        fields = pairs(line.part(found.end()), _PAIR, skip=frozenset({"eta"}))
        if fields:
            yield Record(fields=fields, axes=axes, inherits=held_out, ends_epoch=held_out)
