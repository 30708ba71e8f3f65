"""nanoGPT and build-nanogpt: ``iter 10: loss 2.3, time 12.00ms, mfu 3.00%``, ``step 250: train loss 2.1, val loss
2.2``, ``step 10 | loss: 5.1 | lr 6e-04 | dt: 350ms``, and the file of bare triples ``250 val 5.1``.

A bare triple names the split only; its tag is completed to ``train/loss`` or ``val/loss``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Number, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(rf"(?:iter|step) ({NUM})(?: \||:) ")
_UNIT = r"(?P<unit>ms|s)?(?![A-Za-z])%?"
_WORDED = re.compile(rf"(?:^|, )(?P<key>[A-Za-z][A-Za-z _]*?) (?P<value>{VALUE}){_UNIT}", re.IGNORECASE)
_BARRED = re.compile(rf"(?:^|\|) ?(?P<key>[A-Za-z][\w/ ]*?):? (?P<value>{VALUE}){_UNIT}", re.IGNORECASE)
_TRIPLE = re.compile(rf"({NUM}) (train|val|hella) ({VALUE})", re.IGNORECASE)
_CHECKED = re.compile(rf"(validation loss): ({VALUE})", re.IGNORECASE)
_HELLASWAG = re.compile(rf"(HellaSwag accuracy): ({NUM})/({NUM})=({NUM})")
_TAGS = {"train": "train/loss", "val": "val/loss", "hella": "hella"}


class NanoGpt(Grammar):
    """Training lines of nanoGPT and its relatives."""

    name = "nanogpt"
    probes = ("iter ", "step ", " train ", " val ", " hella ", "validation loss: ", "hellaswag accuracy: ")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        text = line.text
        if found := _HEAD.match(text):
            rest = line.part(found.end())
            fields = pairs(rest, _BARRED if " |" in found[0] else _WORDED)
            if any(f.tag.lower().endswith("loss") for f in fields):
                yield Record(fields=fields, axes=Axes(step=line.number(found)))
        elif found := _TRIPLE.fullmatch(text):
            value = line.number(found, 3)
            if value is not None:
                yield Record(fields=(Field(_TAGS[found[2]], value),), axes=Axes(step=line.number(found)))
        elif found := _CHECKED.fullmatch(text):
            value = line.number(found, 2)
            if value is not None:
                yield Record(fields=(Field(found[1], value),), inherits=True, before_first=True, sure=False)
        elif found := _HELLASWAG.fullmatch(text):
            part, whole = line.slot(found.start(2)), line.slot(found.start(3))
            yield Record(fields=(Field(found[1], Number(part, over=whole)),), inherits=True, sure=False)
