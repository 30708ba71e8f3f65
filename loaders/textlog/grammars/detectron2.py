"""detectron2: ``eta: 1:02:03  iter: 19  total_loss: 0.14  time: 0.68  data_time: 0.07  lr: 0.02  max_mem: 11811M``.

Results of an evaluation are a line of names and one of numbers, for each task, to be pasted into a spreadsheet::

    copypaste: Task: bbox
    copypaste: AP,AP50,AP75,APs,APm,APl
    copypaste: 37.1234,58.2000,40.5000,nan,41.5000,48.2500

They become ``bbox/AP`` and so on, as in detectron2's ``metrics.json``, at the iteration of the last line above.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, Span, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(rf"(?:eta: \S+(?: days?, \S+)? )?iter: ({NUM}) ")
_PAIR = re.compile(rf"(?:^| )(?P<key>[A-Za-z][\w./@-]*): (?P<value>{VALUE})(?:M|(?= |$))", re.IGNORECASE)
_TASK = re.compile(rf"copypaste: Task: (\S+) .*?copypaste: ([^ {NUM}]+) .*?copypaste: (?=[{NUM}A-Za-z])")
_CELL = re.compile(rf"({VALUE})(?:,|$)", re.IGNORECASE)
_ONE = re.compile(rf"copypaste: ([\w./@-]+)=({VALUE})", re.IGNORECASE)


class Detectron2(Grammar):
    """Training lines of detectron2's metric printer, and results of its evaluators."""

    name = "detectron2"
    probes = ("iter: ", "copypaste: ")
    spans = (
        Span(
            probe=b"copypaste: Task: ",
            opening=b"copypaste: Task: ",
            whole=re.compile(
                rb"(?m)^[^\n]*copypaste: Task: [^\n]+\n[^\n]*copypaste: [A-Za-z][^\n]*\n[^\n]*copypaste: [-+\dnNiI][^\n]*\n"
            ),
            begun=re.compile(rb"(?m)^[^\n]*copypaste: Task: [^\n]+\n(?:[^\n]*copypaste: [^\n]*\n)?\Z"),
        ),
    )

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line, or for the three lines of a task."""
        found = _HEAD.match(line.text)
        if found and "loss" in line.text:
            start = line.text.index("iter: ")
            fields = pairs(line.part(start), _PAIR)
            yield Record(fields=fields, axes=Axes(step=line.number(found)))
        elif task := _TASK.match(line.text):
            yield from _results(line, task)
        elif one := _ONE.fullmatch(line.text):
            number = line.number(one, 2)
            if number is not None:
                yield Record(fields=(Field(one[1], number),), inherits=True)


def _results(line: Skeleton, task: re.Match[str]) -> Iterable[Record]:
    """The numbers of a task under their names; none where there are not as many."""
    names = task[2].split(",")
    cells = [line.number(m) for m in _CELL.finditer(line.text, task.end())]
    if len(names) == len(cells):
        fields = (Field(f"{task[1]}/{n}", number) for n, number in zip(names, cells, strict=True) if number)
        yield Record(fields=tuple(fields), inherits=True)
