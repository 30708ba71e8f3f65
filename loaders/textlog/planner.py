"""What each skeleton says: its prefix taken off, then the first grammar that knows it, remembered for all its lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from afterrun.loaders.textlog.grammar import Clock, Grammar, Record, Skeleton, grammars
from afterrun.loaders.textlog.grammars.python_logging import with_label, without_prefix
from afterrun.loaders.textlog.signatures import may_match
from afterrun.loaders.textlog.tracebacks import TRACEBACK

MAX_REMEMBERED = 50_000
"""Skeletons kept; prose gives every line one of its own, and they do not come again."""

MAX_SKELETON = 20_000
"""Characters of a skeleton that grammars look at; a longer line is a dump of data."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One record of a skeleton and the grammar that read it."""

    grammar: Grammar
    record: Record


@dataclass(frozen=True, slots=True)
class Plan:
    """What lines of one skeleton say. ``suspicious``: they may be messages of a failure or of an end."""

    readings: tuple[Reading, ...] = ()
    suspicious: bool = False
    traceback: bool = False
    clock: Clock | None = None


class Planner:
    """Plans by skeleton, each made once."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}
        self._order: list[Grammar] = list(grammars())

    def plan(self, skeleton: str) -> Plan:
        """The plan of a skeleton."""
        known = self._plans.get(skeleton)
        if known is None:
            if len(self._plans) >= MAX_REMEMBERED:
                self._plans.clear()
            known = self._plans[skeleton] = self._make(skeleton)
        return known

    def _make(self, skeleton: str) -> Plan:
        if len(skeleton) < 3 or len(skeleton) > MAX_SKELETON:
            return Plan()
        message = without_prefix(Skeleton(skeleton))
        labelled = with_label(message)
        readings: Sequence[Reading] = ()
        if labelled is not None:
            inner = without_prefix(labelled)
            readings = self._read(inner)
            # ``5: loss 0.3`` may be a step and its loss; a label stands before lines that place themselves
            if any(r.record.axes or r.grammar.use != "generic" for r in readings):
                message = inner
            else:
                readings = ()
        return Plan(
            readings=tuple(readings or self._read(message)),
            suspicious=may_match(skeleton),
            traceback=TRACEBACK in skeleton,
            clock=message.clock,
        )

    def _read(self, message: Skeleton) -> list[Reading]:
        lower = message.text.lower()
        for grammar in self._order:
            if not any(probe in lower for probe in grammar.probes):
                continue
            records = [_placed(r, message) for r in grammar.read(message)]
            if records:
                return [Reading(grammar, r) for r in records]
        return []


def _placed(record: Record, message: Skeleton) -> Record:
    """The record with the clock and rank of its line, where it has none of its own."""
    if (message.clock is None or record.clock) and (message.rank is None or record.rank):
        return record
    return replace(record, clock=record.clock or message.clock, rank=record.rank or message.rank)
