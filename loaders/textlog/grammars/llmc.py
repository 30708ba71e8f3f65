"""llm.c: ``step 10/19560 | loss 5.1 (-0.30z)| norm 0.57 (+nanz)| lr 6e-04 | 350 ms | 37.3% bf16 MFU | 145016 tok/s``.

The z-score in brackets (``+nanz`` until there is a history) judges the value before it and is no metric. Columns
without a name get one: ``step_time`` and ``mfu``. The short form of ``main.log`` is ``s:10 trl:5.1 lr:6e-4``, with
``tel`` for the validation loss and ``eval`` for HellaSwag. The last line may break off where the job was killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(rf"step ({NUM})/({NUM}) ?\|(?= loss )")
_CELL = re.compile(
    rf"(?:^|\|) ?(?:(?P<key>[a-z]+) (?P<named>{VALUE})(?: \([^)|]*z\))? ?(?=\|)"
    rf"|(?P<ms>{VALUE}) ms ?(?=\|)|(?P<mfu>{VALUE})% [\w ]*MFU|(?P<speed>{VALUE}) tok/s)",
    re.IGNORECASE,
)
_OLD = re.compile(
    rf"step ({NUM})/({NUM}): train loss (?P<loss>{VALUE}) \((?P<ms>{VALUE}) ms, (?P<speed>{VALUE}) tok/s\)",
    re.IGNORECASE,
)
_CHECKED = re.compile(rf"val loss ({VALUE})", re.IGNORECASE)
_HELLASWAG = re.compile(rf"HellaSwag: {NUM}/{NUM} = ({NUM})")
_SHORT = re.compile(rf"s:({NUM})(?= (?:tel|trl|eval):)")
_PAIR = re.compile(rf" (?P<key>[a-z]+):(?P<value>{VALUE})(?= |$)", re.IGNORECASE)
_TAGS = {"trl": "train/loss", "tel": "val/loss", "eval": "hellaswag"}


class LlmC(Grammar):
    """Training lines of llm.c, on the console and in main.log."""

    name = "llmc"
    probes = ("step ", "val loss ", "hellaswag: ", "s:")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        text = line.text
        if found := _HEAD.match(text):
            axes = Axes(step=line.number(found), steps=line.number(found, 2))
            yield Record(fields=_cells(line.part(found.end() - 1)), axes=axes)
        elif found := _OLD.fullmatch(text):
            axes = Axes(step=line.number(found), steps=line.number(found, 2))
            named = {"train loss": ("loss", 1.0), "step_time": ("ms", 1e-3), "tok/s": ("speed", 1.0)}
            numbers = {tag: line.number(found, group, scale=s) for tag, (group, s) in named.items()}
            yield Record(fields=tuple(Field(t, n) for t, n in numbers.items() if n is not None), axes=axes)
        elif found := _CHECKED.fullmatch(text):
            yield _one(line, found, "val loss")
        elif found := _HELLASWAG.fullmatch(text):
            yield _one(line, found, "HellaSwag")
        elif found := _SHORT.match(text):
            rest = line.part(found.end())
            numbers = {
                _TAGS.get(m["key"], m["key"]): rest.number(m, "value") for m in _PAIR.finditer(rest.text)
            }
            fields = tuple(Field(t, n) for t, n in numbers.items() if n is not None)
            yield Record(fields=fields, axes=Axes(step=line.number(found)))


def _cells(line: Skeleton) -> tuple[Field, ...]:
    fields = []
    for cell in _CELL.finditer(line.text):
        names = {cell["key"]: "named", "step_time": "ms", "mfu": "mfu", "tok/s": "speed"}
        for tag, group in names.items():
            number = line.number(cell, group, scale=1e-3 if group == "ms" else 1.0)
            if number is not None:
                fields.append(Field(tag, number))
    return tuple(fields)


def _one(line: Skeleton, found: re.Match[str], tag: str) -> Record:
    """A value at the step of the line above."""
    number = line.number(found)
    fields = () if number is None else (Field(tag, number),)
    return Record(fields=fields, inherits=True, before_first=True, sure=False)
