"""DeepSpeed's own lines: ``[Rank 0] step=10, skipped=0, lr=[1e-3], mom=[(0.9, 0.999)]``, its timers, and the pipeline
engine's ``steps: 10 loss: 5.1 iter time (s): 1.2 samples/sec: 12.3``.

They stand beside the lines of the training script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_STEP = re.compile(rf"step=({NUM}), skipped=(?P<skipped>{NUM})")
_LIST = re.compile(rf"(?P<key>lr|mom)=\[\(?(?P<value>{VALUE})", re.IGNORECASE)
_SPEED = re.compile(rf"(?:epoch=({NUM})/micro_step={NUM}/global_step=({NUM})|{NUM}/({NUM})), ")
_SPEEDS = re.compile(
    rf"(?:^|[ ,])(?P<key>\w*(?:SamplesPerSec|MemAllocated))=(?P<value>{VALUE})", re.IGNORECASE
)
_PIPELINE = re.compile(rf"steps: ({NUM}) (?=loss: )")
_PAIR = re.compile(rf"(?:^| )(?P<key>[A-Za-z][\w/ ]*(?: ?\(s\))?): (?P<value>{VALUE})(?= |$)", re.IGNORECASE)
_TIMERS = re.compile(r"(?:rank=\x01 )?time \(ms\) ?\|")
_TIMER = re.compile(rf"\| ?(?P<key>[A-Za-z]\w*): (?P<value>{VALUE})(?= |$)", re.IGNORECASE)


class DeepSpeed(Grammar):
    """Lines that DeepSpeed's engine logs."""

    name = "deepspeed"
    probes = ("skipped=", "samplespersec=", "steps: ", "time (ms)")
    use = "beside"

    def read(self, line: Skeleton) -> Iterable[Record]:
        """One record a line."""
        text = line.text
        if found := _STEP.match(text):
            skipped = line.number(found, "skipped")
            first = [] if skipped is None else [Field("skipped", skipped)]
            rest = line.part(found.end())
            yield Record(fields=(*first, *pairs(rest, _LIST)), axes=Axes(step=line.number(found)))
        elif (found := _SPEED.match(text)) and "SamplesPerSec" in text:
            step = line.number(found, 2) or line.number(found, 3)
            fields = pairs(line.part(found.end() - 1), _SPEEDS)
            yield Record(fields=fields, axes=Axes(step=step, epoch=line.number(found, 1)))
        elif found := _PIPELINE.match(text):
            rest = line.part(found.end())
            yield Record(fields=pairs(rest, _PAIR), axes=Axes(step=line.number(found)))
        elif found := _TIMERS.match(text):
            timers = pairs(line.part(found.end() - 1), _TIMER)
            fields = tuple(Field(f.tag, replace(f.number, scale=1e-3)) for f in timers)
            yield Record(fields=fields, inherits=True)
