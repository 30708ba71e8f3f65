"""Meters of PyTorch's examples: ``Epoch: [0][  10/5005]  Time 0.543 ( 3.123)  Loss 6.9e+00 (7.0e+00)  Acc@1 0.00 (0.10)``.

The number is the value of this batch, the one in brackets the average of the epoch so far, which is no new
measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(
    rf"(?:(?P<split>train|test|val|eval)\w*:? ?)?(?:epoch:? ?)?\[? ?(?P<epoch>{NUM})\]? ?\[ ?(?P<batch>{NUM})/ ?(?P<batches>{NUM})(?: \( ?{NUM}%\))?\]",
    re.IGNORECASE,
)
_CHECKED = re.compile(
    rf"(?P<split>train|test|val|eval)\w*: ?\[ ?(?P<batch>{NUM})/ ?(?P<batches>{NUM})\]", re.IGNORECASE
)
_PAIR = re.compile(rf"(?P<key>[A-Za-z][\w./@]*):? (?P<value>{VALUE})(?P<unit>ms|s)?(?= ?\()", re.IGNORECASE)
_SUMMARY = re.compile(r"\* (?=(?:Acc|Prec)@)")
_SCORE = re.compile(rf"(?P<key>(?:Acc|Prec)@\d):? (?P<value>{VALUE})(?= |$)", re.IGNORECASE)
_LONE = re.compile(rf"(?:^| )(?P<key>lr|[a-z]*loss\w*): (?P<value>{VALUE})(?= [^(]|,|$)", re.IGNORECASE)


class Meters(Grammar):
    """Lines of average meters."""

    name = "meters"
    probes = ("[", "* ")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        found = _HEAD.match(line.text) or _CHECKED.match(line.text)
        if found is None:
            if summary := _SUMMARY.match(line.text):
                scores = pairs(line.part(summary.end()), _SCORE)
                fields = tuple(Field(f"val/{f.tag}", f.number) for f in scores)
                yield Record(fields=fields, inherits=True, ends_epoch=True)
            return
        rest = line.part(found.end())
        fields = pairs(rest, _PAIR)
        if not fields:
            return
        fields += tuple(f for f in pairs(rest, _LONE) if f.tag not in {x.tag for x in fields})
        epoch = line.number(found, "epoch") if "epoch" in found.re.groupindex else None
        axes = Axes(epoch=epoch, batch=line.number(found, "batch"), batches=line.number(found, "batches"))
        split = (found["split"] or "").lower()
        if split and split != "train":
            fields = tuple(Field(f"{split}/{f.tag}", f.number) for f in fields)
        yield Record(fields=fields, axes=axes)
