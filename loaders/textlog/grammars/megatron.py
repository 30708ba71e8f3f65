"""Megatron-LM and its relatives: ``iteration N/ M | key: value | ...``.

The line of timers below it, validation lines, memory lines of each rank (often glued together) and the listing of
arguments belong to it. Where all steps of a window were skipped ``lm loss`` is missing; some relatives also leave
it out when it is NaN, which the gradient norm then shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_STEP = re.compile(rf"iteration ({NUM})/ ?({NUM}) ?\|")
_PAIR = re.compile(rf"(?:^|\|)(?P<key>[^|]*?): ?(?P<value>{VALUE})(?=[ |\[]|$)", re.IGNORECASE)
_TIMERS = re.compile(r"time \(ms\) ?\|")
_CHECKED = re.compile(rf"(validation|test) loss at (?:iteration ({NUM})|the end of training)[^|]*\|")
_MEMORY = re.compile(rf"\(after ({NUM}) iterations\) memory \(MB\) ?\|")
_RANK = re.compile(rf"\[Rank ({NUM})\] ?")
_ARGUMENT = re.compile(r"([A-Za-z]\w*) \.{3,} ?(\S.*?)\s*$")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LITERALS = {"True": "true", "False": "false", "None": "null"}


class Megatron(Grammar):
    """Training lines of Megatron-LM."""

    name = "megatron"
    probes = ("iteration", "time (ms)", " ...")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line; one a rank for memory lines glued together."""
        text = line.text
        if found := _STEP.match(text):
            yield _training(line, found)
        elif line.rank is None and (found := _TIMERS.match(text)):  # with a rank: DeepSpeed's
            timers = pairs(line.part(found.end() - 1), _PAIR)
            fields = [Field(f.tag, replace(f.number, scale=1e-3)) for f in timers]
            yield Record(fields=tuple(fields), inherits=True, sure=False)
        elif found := _CHECKED.match(text):
            fields = [
                Field(f"{found[1]}/{f.tag.removesuffix(' value')}", f.number)
                for f in pairs(line.part(found.end() - 1), _PAIR)
            ]
            yield Record(fields=tuple(fields), axes=Axes(step=line.number(found, 2)), inherits=True)
        elif _MEMORY.match(text):
            yield from _memory(line)
        elif _ARGUMENT.match(text):
            yield Record(params=True)

    def params(self, line: str) -> Iterable[tuple[str, str]]:
        """The argument that a line of the listing tells."""
        found = _ARGUMENT.search(line)
        if found:
            value = found[2]
            plain = _JSON_NUMBER.fullmatch(value)
            yield found[1], _LITERALS.get(value) or (value if plain else json.dumps(value))


def _training(line: Skeleton, found: re.Match[str]) -> Record:
    fields = pairs(line.part(found.end() - 1), _PAIR)
    broken = any(f.tag == "grad norm" and f.number.slot is None for f in fields)
    no_loss = not any("loss" in f.tag.split() for f in fields if f.tag != "loss scale")
    return Record(
        fields=fields,
        axes=Axes(step=line.number(found, 1), steps=line.number(found, 2)),
        notice=("nan", "lm loss missing while the gradient norm is not finite")
        if broken and no_loss
        else None,
    )


def _memory(line: Skeleton) -> Iterable[Record]:
    marks = list(_RANK.finditer(line.text))
    begins = [0, *(m.end() for m in marks)]
    ends = [*(m.start() for m in marks), len(line.text)]
    ranks = [line.rank, *(line.number(m) for m in marks)]
    for begin, end, rank in zip(begins, ends, ranks, strict=True):
        part = line.part(begin, end)
        found = _MEMORY.match(part.text)
        if found:
            fields = [
                Field(f"memory (MB) {f.tag}", f.number) for f in pairs(part.part(found.end() - 1), _PAIR)
            ]
            yield Record(fields=tuple(fields), axes=Axes(step=part.number(found)), rank=rank, sure=False)
