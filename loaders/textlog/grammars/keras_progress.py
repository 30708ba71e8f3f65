"""Keras' progress bar: ``Epoch 3/10``, then ``45/100 [====>.....] - ETA: 3s - loss: 0.3`` drawn over itself, and the
last drawing of the epoch, ``100/100 [======] - 5s 50ms/step - loss: 0.3 - val_loss: 0.4``.

Only the last drawing is a measurement: the others show the average of the epoch so far. They are read, by batch, where
no epoch came to its end. Keras 3 draws the bar in other signs and puts the time behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_EPOCH = re.compile(rf"Epoch ({NUM})/({NUM})")
_TIME = rf"(?:{NUM}h ?)?(?:{NUM}:)*(?:{NUM}s?)?"
_BAR = re.compile(rf"({NUM})/({NUM}) (?:\[[=>.]*\] ?-|\u2501+|-) (?:ETA: )?{_TIME}")
_STEP_TIME = re.compile(rf" (?P<value>{NUM})(?P<unit>ms|s|us)/step\b")
_PAIR = re.compile(rf"- (?P<key>[A-Za-z][\w./@ ]*): (?P<value>{VALUE})(?= |$)", re.IGNORECASE)
_STEP_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


class KerasProgress(Grammar):
    """Epochs of Keras' `fit` as they scroll by."""

    name = "keras_progress"
    probes = ("epoch ", "/step", "- loss: ", "- eta: ", " - ")
    shares = "key_value"  # epoch lines of other loops look the same
    use = "beside"

    def read(self, line: Skeleton) -> Iterable[Record]:
        """The epoch line places the bars below it."""
        if found := _EPOCH.fullmatch(line.text):
            yield Record(axes=Axes(epoch=line.number(found), epochs=line.number(found, 2)), sure=False)
        elif found := _BAR.match(line.text):
            part, whole = line.number(found, 1), line.number(found, 2)
            fields = pairs(line.part(found.end(2)), _PAIR, skip=frozenset({"eta"}))
            if part is None or whole is None or not fields:
                return
            broken = any(f.number.slot is None for f in fields)
            if broken:
                yield Record(notice=("nan", "the progress bar shows a value that is not finite"), sure=False)
            time = _STEP_TIME.search(line.text)
            number = line.number(time, "value", scale=_STEP_UNITS[time["unit"]]) if time else None
            step_time = () if number is None else (Field("step_time", number),)
            yield Record(fields=(*fields, *step_time), inherits=True, whole=(part, whole))
