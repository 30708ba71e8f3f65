"""OLMo: a header ``[step=10/10000,epoch=0]``, then indented ``key=value`` lines with thousands commas."""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterrun.loaders.textlog.grammar import VALUE, Axes, Grammar, Record, Skeleton, pairs
from afterrun.loaders.textlog.tokens import NUM

_HEAD = re.compile(rf"\[step=({NUM})(?:/({NUM}))?(?:,epoch=({NUM})(?:/({NUM}))?)?[^\]]*\]$")
_PAIR = re.compile(rf"(?P<key>[A-Za-z][^=\x01]*)=(?P<value>{VALUE})$", re.IGNORECASE)


class Olmo(Grammar):
    """Metric blocks of OLMo's console logger."""

    name = "olmo"
    probes = ("[step=", "=")

    def read(self, line: Skeleton) -> Iterable[Record]:
        """The header places the lines below it; each of them is one metric."""
        if found := _HEAD.match(line.text):
            axes = Axes(
                step=line.number(found, 1),
                steps=line.number(found, 2),
                epoch=line.number(found, 3),
                epochs=line.number(found, 4),
            )
            yield Record(axes=axes, opens=True)
        elif _PAIR.match(line.text) and line.bare:
            yield Record(fields=pairs(line, _PAIR), inherits=True, chained=True)
