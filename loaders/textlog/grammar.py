"""What a grammar of log lines is, and how the grammars are found: by walking ``grammars/``.

A grammar reads skeletons (see ``tokens``), each once: it says which numbers of the line are metrics, under which
tag, and where the line lies. It never sees the numbers themselves, so it cannot depend on them, and all lines of
one skeleton can be taken at once.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Literal

from afterrun.loaders.textlog.tokens import NUM

Use = Literal["own", "beside", "generic"]

NAN_WORD = r"[+-]?(?:nan|inf(?:inity)?)"
VALUE = rf"(?:{NUM}|{NAN_WORD}(?![A-Za-z]))"
"""One value in a skeleton, to be used in patterns that ignore case."""

TIME_UNITS: Mapping[str, float] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
    "min": 60.0,
}  # fmt: skip
"""Seconds of one unit."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number of the lines of a skeleton: that in a slot, or one that the skeleton spells (NaN).

    ``over``: the slot of a number to divide by.
    """

    slot: int | None = None
    constant: float = math.nan
    scale: float = 1.0
    over: int | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One metric of a line. ``named_by``: slots of the numbers within its tag (``mean 100 episode reward``)."""

    tag: str
    number: Number
    named_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Slots of a date and a time of day: year, month, day, hour, minute, second, maybe its fraction in
    milliseconds; or one slot that counts ``unit_ns`` since 1970. Times without a zone count as UTC.
    """

    date: tuple[int, int, int] | None = None
    time: tuple[int, int, int] | None = None
    milli: int | None = None
    since: int | None = None
    unit_ns: int = 1
    offset: tuple[int, int, int] | None = None
    """Sign, hours slot and minutes slot of a zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Where a line lies. ``steps`` and ``epochs`` are the planned lengths it tells; ``batch`` of ``batches`` counts
    within the epoch.
    """

    step: Number | None = None
    steps: Number | None = None
    epoch: Number | None = None
    epochs: Number | None = None
    batch: Number | None = None
    batches: Number | None = None
    tokens: Number | None = None

    def __bool__(self) -> bool:
        """Whether anything places the line."""
        return any((self.step, self.epoch, self.batch))


NOWHERE = Axes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one line, or one part of a line glued together of several, says.

    ``inherits``: axes it does not tell are those of the last line of its rank that did.
    ``chained``: belongs to the line directly above (and counts only there); ``opens`` such a chain.
    ``ends_epoch``: stands at the end of its epoch.
    ``whole``: counts only where these two numbers are the same (the last drawing of a progress bar).
    ``before_first``: where no line before has a step, it lies one step before the first that has.
    ``sure``: a metric line beyond doubt; the others count where their tags repeat and move.
    ``notice``: (kind, text) of a mark where lines begin to say so.
    ``params``: the grammar reads settings from the line itself.
    """

    fields: tuple[Field, ...] = ()
    axes: Axes = NOWHERE
    inherits: bool = False
    chained: bool = False
    opens: bool = False
    ends_epoch: bool = False
    whole: tuple[Number, Number] | None = None
    before_first: bool = False
    sure: bool = True
    rank: Number | None = None
    clock: Clock | None = None
    notice: tuple[str, str] | None = None
    params: bool = False


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A skeleton or a part of one. ``first`` is the slot of its first number.

    ``clock`` and ``rank`` come from the prefix that was taken off; ``bare``: there was none.
    """

    text: str
    first: int = 0
    clock: Clock | None = None
    rank: Number | None = None
    bare: bool = True

    def slot(self, at: int) -> int:
        """The slot of the number at a position of the text."""
        return self.first + self.text.count(NUM, 0, at)

    def number(self, match: re.Match[str], group: int | str = 1, *, scale: float = 1.0) -> Number | None:
        """The number that a group of a match spans; None where it took part in none."""
        text = match[group]
        if text is None:
            return None
        if text == NUM:
            return Number(self.slot(match.start(group)), scale=scale)
        return Number(constant=float(text))

    def slots(self, begin: int, end: int) -> tuple[int, ...]:
        """The slots of all numbers in a stretch of the text."""
        return tuple(range(self.slot(begin), self.slot(end)))

    def part(self, begin: int, end: int | None = None) -> Skeleton:
        """A stretch of the text as a skeleton of its own."""
        return replace(self, text=self.text[begin:end], first=self.slot(begin))


@dataclass(frozen=True, slots=True)
class Span:
    """A record of several lines, see ``spanning``. ``probe`` stands in each, ``opening`` in its first line.

    ``whole`` matches its lines from anywhere in the first to the end of the last, the line end included; ``begun`` one
    that the end of the text breaks off, and ``left`` what counts of that where the file ends.
    """

    probe: bytes
    opening: bytes
    whole: re.Pattern[bytes]
    begun: re.Pattern[bytes]
    left: re.Pattern[bytes] | None = None


class Grammar(ABC):
    """One way of writing log lines. Subclasses are stateless. Class data:

    ``name``    in notes, snake_case, unique
    ``probes``  lower-case texts one of which stands in every skeleton it reads (checked before it is asked)
    ``shares``  name of another grammar whose lines place lines of this one, too
    ``use``     ``own``: the format of a trainer, beside which generic lines are prose; ``beside``: progress and
                library lines that stand beside others; ``generic``: asked last
    ``spans``   its records of several lines, which it reads as one line each
    """

    name: ClassVar[str]
    probes: ClassVar[tuple[str, ...]]
    shares: ClassVar[str] = ""
    use: ClassVar[Use] = "own"
    spans: ClassVar[tuple[Span, ...]] = ()

    @property
    def scope(self) -> str:
        """Within which lines inherit their axes."""
        return self.shares or self.name

    @abstractmethod
    def read(self, line: Skeleton) -> Iterable[Record]:
        """What lines of this skeleton say; nothing where they are not of this grammar.

        ``line`` has its prefix (time, level, rank) taken off. Never raises.
        """

    def params(self, line: str) -> Iterable[tuple[str, str]]:  # noqa: ARG002  # for grammars whose records say so
        """(key, JSON text) of the settings that a line itself tells."""
        return ()


@cache
def grammars() -> tuple[Grammar, ...]:
    """All grammars: those of trainers, then those beside them, then generic ones; by name within each."""
    from afterrun.loaders.textlog import grammars as folder  # noqa: PLC0415  # the walk starts here, not at import

    found: dict[str, Grammar] = {}
    for info in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
        module = importlib.import_module(info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Grammar) and not inspect.isabstract(cls) and cls.__module__ == module.__name__:
                if cls.name in found:
                    raise TypeError(f"two grammars are named {cls.name!r}: {found[cls.name]!r} and {cls!r}")
                found[cls.name] = cls()
    order: tuple[Use, ...] = ("own", "beside", "generic")
    return tuple(sorted(found.values(), key=lambda g: (order.index(g.use), g.name)))


def pairs(
    line: Skeleton, pattern: re.Pattern[str], *, skip: frozenset[str] = frozenset()
) -> tuple[Field, ...]:
    """A field for every match of a pattern with the groups ``key``, ``value`` and maybe ``unit``.

    A unit of time, behind the value or in brackets at the end of the key, makes it seconds.
    """
    found = []
    for match in pattern.finditer(line.text):
        key, scale = seconds_key(match["key"].strip(" |,;\t"))
        unit = match["unit"] if "unit" in pattern.groupindex else None
        number = line.number(match, "value", scale=TIME_UNITS.get(unit or "", scale))
        if key and key.lower() not in skip and NUM not in key and number is not None:
            found.append(Field(key, number))
    return tuple(found)


_KEY_UNIT = re.compile(r"(.*\S) ?\((ms|us|s|sec|seconds)\)")


def seconds_key(key: str) -> tuple[str, float]:
    """A key without the unit of time it ends with, and the seconds of one such unit."""
    match = _KEY_UNIT.fullmatch(key)
    return (match[1], TIME_UNITS[match[2]]) if match else (key, 1.0)
