"""What loggers and launchers put before a message: time, level, name, rank.

Python's ``logging`` in its common formats, loguru, glog, Hydra, ``torchrun`` and ``mpirun`` labels. The prefix of a
line is taken off before any grammar sees it; its date becomes the time of the line, its rank the rank.
"""

from __future__ import annotations

import re
from dataclasses import replace

from afterrun.loaders.textlog.grammar import Clock, Number, Skeleton
from afterrun.loaders.textlog.tokens import NUM

_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SUCCESS)"
_PLACE = rf"(?:[\w./-]+(?::\w+)*:{NUM}(?::\w+)*)"
_MOMENT = re.compile(
    rf"[\[(]?({NUM})[-/.]({NUM})[-/.]({NUM})[ T_-]({NUM}):({NUM}):({NUM})(?:[.,:]({NUM}))?"
    rf"(?:Z| ?(?P<sign>[+-])({NUM}):?({NUM})|(?: [A-Z]{{3,4}})(?=[\]) ]))?[\])]?(?: [-|:>]+ | ?[|>:]+ | )?"
)
_NO_YEAR = re.compile(
    rf"\[{NUM}[/-]{NUM} {NUM}:{NUM}:{NUM}(?:[.,]{NUM})?(?: [\w./-]+)?\]:? ?|{NUM}/{NUM} {NUM}:{NUM}:{NUM}(?:[.,]{NUM})? - "
)
_NO_DATE = re.compile(rf"[\[(]?{NUM}:{NUM}:{NUM}(?:[.,]{NUM})?[\])]?(?: ?[-|:>]+ | )(?![\d:])")
_GLOG = re.compile(rf"\[?[IWEF](?:{NUM}|\d+)? {NUM}:{NUM}:{NUM} (?:{NUM} )?[\w./-]+:{NUM}\] ?")
_HUGGING = re.compile(rf"\[{_LEVEL}\|[^\]]*\] ?")
_AFTER_TIME = re.compile(
    rf"[^{{}}=|]{{0,60}}?[\[| ]*\b{_LEVEL}\b[\]|:> ]*(?:- )?(?:[|\[ ]*{_PLACE}[\])]?(?: - |[:|> ]+))*(?:>> )?"
)
_NAMED = re.compile(rf"\[[\w.]+\]\[{_LEVEL}\](?: - )?")
_LEVEL_FIRST = re.compile(
    rf"\[?{_LEVEL}\]?(?:: | - | \| |:| )(?:[\w.]+:(?! ))*(?:\[{_PLACE}\] |{_PLACE} (?:- )?|{_PLACE}: ?)?"
)
_BRACKETS = re.compile(rf"\[{_LEVEL}\] ?(?:\[{_PLACE}\] ?)?")
_WORDED_RANK = re.compile(r"\[(?:default|rank|trainer|worker)(\d{1,6})\]:? ?")
_RANK = re.compile(rf"(?:\[rank:? ?({NUM})\]:? ?|rank ?({NUM}): )", re.IGNORECASE)
_MPI = re.compile(rf"\[{NUM},({NUM})\](?:<std(?:out|err)>)?: ?")
_LABEL = re.compile(rf"({NUM}): ?(?=[^{NUM} ]|{NUM}[-/]{NUM}[-/]{NUM}[ T])")
_RAY = re.compile(rf"\((?:[\w.<>]+ )?(?:pid|rank)={NUM}[^)]*\) ?")

_MOST_PARTS = 6


def without_prefix(line: Skeleton) -> Skeleton:
    """The message of a line, with the clock and the rank that stood before it."""
    timed = False
    for _ in range(_MOST_PARTS):
        rest, timed = _shorter(line, timed)
        if rest is None:
            break
        line = replace(rest, bare=False)
    return line


def with_label(line: Skeleton) -> Skeleton | None:
    """The line behind a label such as ``3: ``, as ``srun --label`` writes it; None where it has none."""
    found = _LABEL.match(line.text)
    return replace(line.part(found.end()), rank=line.number(found), bare=False) if found else None


def _shorter(line: Skeleton, timed: bool) -> tuple[Skeleton | None, bool]:
    """The line without the first part of its prefix, and whether a time has been taken off."""
    ranked = _without_rank(line)
    if ranked is not None:
        return ranked, timed
    if found := _MOMENT.match(line.text):
        return replace(line.part(found.end()), clock=line.clock or _clock(line, found)), True
    for pattern in (_NO_YEAR, _GLOG, _NO_DATE):
        if found := pattern.match(line.text):
            return line.part(found.end()), True
    patterns = (_NAMED, _HUGGING, _BRACKETS, _LEVEL_FIRST, _RAY, *((_AFTER_TIME,) if timed else ()))
    for pattern in patterns:
        found = pattern.match(line.text)
        if found and found.end():
            return line.part(found.end()), False
    return None, timed


def _without_rank(line: Skeleton) -> Skeleton | None:
    """The line behind the label of a rank, None where it has none."""
    if found := _WORDED_RANK.match(line.text):
        return replace(line.part(found.end()), rank=Number(constant=float(found[1])))
    if found := _RANK.match(line.text):
        rank = line.number(found, 1) or line.number(found, 2)
        return replace(line.part(found.end()), rank=rank)
    if found := _MPI.match(line.text):
        return replace(line.part(found.end()), rank=line.number(found))
    return None


def _clock(line: Skeleton, found: re.Match[str]) -> Clock:
    slots = [line.slot(found.start(i)) for i in range(1, 7)]
    sign = found["sign"]
    offset = None
    if sign:
        offset = (-1 if sign == "-" else 1, line.slot(found.start(9)), line.slot(found.start(10)))
    return Clock(
        date=(slots[0], slots[1], slots[2]),
        time=(slots[3], slots[4], slots[5]),
        milli=line.slot(found.start(7)) if found[7] else None,
        offset=offset,
    )
