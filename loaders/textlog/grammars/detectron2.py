"""detectron2: ``eta: 1:02:03  iter: 19  total_loss: 0.14  time: 0.68  data_time: 0.07  lr: 0.02  max_mem: 11811M``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(rf"(?:eta: \S+(?: days?, \S+)? )?iter: ({NUM}) ")
_PAIR = re.compile(rf"(?:^| )(?P<key>[A-Za-z][\w./@-]*): (?P<value>{VALUE})(?:M|(?= |$))", re.IGNORECASE)


class Detectron2(Grammar):
    """Training lines of detectron2's metric printer."""

    name = "detectron2"
    probes = ("iter: ",)

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        found = _HEAD.match(line.text)
        if found and "loss" in line.text:
            start = line.text.index("iter: ")
            fields = pairs(line.part(start), _PAIR)
            yield Record(fields=fields, axes=Axes(step=line.number(found)))
