"""PyTorch's word-language-model example: ``| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 50.1 | loss 6.12``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_BATCH = re.compile(rf"\| epoch ({NUM}) \| ({NUM})/ ?({NUM}) batches (?=\|)")
_EPOCH = re.compile(rf"\| end of epoch ({NUM}) (?=\|)")
_END = re.compile(r"\| End of training (?=\|)")
_PAIR = re.compile(
    rf"\| (?P<key>[A-Za-z][A-Za-z/ ]*?):? (?P<value>{VALUE})(?P<unit>ms|s)?(?= |$)", re.IGNORECASE
)


class WordLm(Grammar):
    """Training lines of the word-language-model example and its many descendants."""

    name = "word_lm"
    probes = ("| epoch ", "| end of ")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line; validation lines stand at the end of their epoch."""
        if found := _BATCH.match(line.text):
            axes = Axes(epoch=line.number(found), batch=line.number(found, 2), batches=line.number(found, 3))
            yield Record(fields=pairs(line.part(found.end()), _PAIR), axes=axes)
        elif found := _EPOCH.match(line.text):
            axes = Axes(epoch=line.number(found))
            yield Record(fields=pairs(line.part(found.end()), _PAIR), axes=axes, ends_epoch=True)
        elif found := _END.match(line.text):
            yield Record(fields=pairs(line.part(found.end()), _PAIR), inherits=True, sure=False)
