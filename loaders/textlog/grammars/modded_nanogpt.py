"""modded-nanogpt and parameter-golf: ``step:125/5100 val_loss:6.3 train_time:22345ms step_avg:179.26ms``.

Such files begin with the whole source code of the training, and end with evaluations that have no step
(``final_... val_loss:2.07``); those are other measures of the model and no points of the curve.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import NAN_WORD, Axes, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(rf"step:({NUM})/({NUM}) ")
_PAIR = re.compile(
    rf"(?:^| )(?P<key>[a-z]\w*):(?P<value>{NUM}|{NAN_WORD})(?P<unit>ms|s)?(?= |$)", re.IGNORECASE
)


class ModdedNanoGpt(Grammar):
    """Training lines of modded-nanogpt."""

    name = "modded_nanogpt"
    probes = ("step:",)

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        found = _HEAD.match(line.text)
        if found:
            fields = pairs(line.part(found.end()), _PAIR)
            if fields:
                axes = Axes(step=line.number(found), steps=line.number(found, 2))
                yield Record(fields=fields, axes=axes)
