"""Keras' progress bar: ``Epoch 3/10``, then ``45/100 [====>.....] - ETA: 3s - loss: 0.3`` drawn over itself, and the
last drawing of the epoch, ``100/100 [======] - 5s 50ms/step - loss: 0.3 - val_loss: 0.4``.

Only the last drawing is a measurement: the others show the average of the epoch so far. Keras 3 draws the bar in
other signs and puts the time behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Field, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_EPOCH = re.compile(rf"Epoch ({NUM})/({NUM})")
_BAR = re.compile(rf"{NUM}/{NUM} (?:\[[=>.]*\] ?-|[\u2501 ]*(?={NUM}))")
_DONE = re.compile(
    rf"{NUM}/{NUM} (?:\[=+\] ?-|[\u2501 ]*(?={NUM})) ?(?!ETA)(?:{NUM}h ?)?(?:{NUM}:)*(?:{NUM}s ?)?({NUM}(?P<unit>ms|s|us)/step)?"
)
_PAIR = re.compile(rf"- (?P<key>[A-Za-z][\w./@ ]*): (?P<value>{VALUE})(?= |$)", re.IGNORECASE)


class KerasProgress(Grammar):
    """Epochs of Keras' ``fit`` as they scroll by."""

    name = "keras_progress"
    probes = ("epoch ", "/step", "- loss: ", "- eta: ")
    use = "beside"

    def read(self, line: Skeleton) -> Iterable[Record]:
        """The epoch line places the bars below it."""
        text = line.text
        if found := _EPOCH.fullmatch(text):
            yield Record(axes=Axes(epoch=line.number(found), epochs=line.number(found, 2)), sure=False)
        elif _BAR.match(text) and (" - " in text):
            done = _DONE.match(text)
            fields = pairs(line.part(text.index(" - ")), _PAIR)
            if done and done[1] and "ETA" not in text and fields:
                unit = {"ms": 1e-3, "us": 1e-6, "s": 1.0}[done["unit"]]
                number = line.part(done.start(1)).number(re.match(f"({NUM})", done[1]), 1, scale=unit)  # type: ignore[arg-type]  # begins with a number
                step_time = () if number is None else (Field("step_time", number),)
                yield Record(fields=(*fields, *step_time), inherits=True)
            elif any(f.number.slot is None for f in fields):
                yield Record(notice=("nan", "the progress bar shows a value that is not finite"), sure=False)
