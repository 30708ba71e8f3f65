"""Failures of a run put together from the marks of its text logs: what came first, what followed from it.

The earliest root of an incident wins. What merely follows (a watchdog, a broken connection, a bare *Killed*) is
named as the cause only where nothing else is there, and then as a possibility. A process that was killed ran out of
host memory where the kernel or the scheduler says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from afterrun.loaders.textlog.signatures import OUTCOMES, Role, is_failure, signature_of

Fate = Literal["fatal", "restarted", "survived", "after the end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One mark of an incident, with its role."""

    source: str
    line: int | None
    step: int | None
    t_ns: int | None
    kind: str
    text: str
    role: Role
    what: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One failure of one source. ``cause`` is its root, or where ``sure`` is false the first thing that was felt."""

    signs: tuple[Sign, ...]
    cause: Sign
    sure: bool
    fate: Fate
    resumed_step: int | None = None

    @property
    def source(self) -> str:
        """The log that tells it."""
        return self.cause.source

    def of_role(self, role: Role) -> tuple[Sign, ...]:
        """Signs of one role, the cause itself left out."""
        return tuple(s for s in self.signs if s.role == role and s is not self.cause)


def incidents(marks: pl.DataFrame) -> list[Incident]:
    """All incidents of all sources, in the order of the files and of their lines."""
    found: list[Incident] = []
    logs = marks.filter(pl.col("line").is_not_null()).with_columns(pl.col("source", "kind").cast(pl.String))
    for (source,), rows in logs.partition_by("source", as_dict=True, maintain_order=True).items():
        found += _of_source(str(source), rows.sort("line", maintain_order=True).to_dicts())
    return found


def ending(marks: pl.DataFrame) -> str | None:
    """Outcome of a run by the failure it ended with; None where none is told or the end was recorded."""
    fatal = [i for i in incidents(marks) if i.fate == "fatal"]
    if not fatal:
        return None
    first = primary(fatal)
    ends = marks.filter(pl.col("kind").is_in(["finish", "stop"]))
    reached = first.cause.step
    later = (
        ends.filter(pl.col("step").is_null() | (pl.col("step") >= reached)) if reached is not None else ends
    )
    return None if len(later) else first.cause.outcome


def primary(found: Sequence[Incident]) -> Incident:
    """The incident that explains the others: the earliest sure one by time, then in the order given."""
    order = sorted(
        range(len(found)),
        key=lambda i: (not found[i].sure, found[i].cause.t_ns is None, found[i].cause.t_ns or 0, i),
    )
    return found[order[0]]


def _of_source(source: str, rows: list[dict[str, object]]) -> list[Incident]:
    found: list[Incident] = []
    signs: list[Sign] = []
    ended = False
    for row in rows:
        kind = str(row["kind"])
        if kind in ("resumed", "start") and signs:
            step = row["step"]
            found.append(_close(signs, ended=ended, resumed=(step if isinstance(step, int) else None,)))
            signs = []
        if kind == "resumed":
            ended = False
        sign = _sign(source, row)
        if sign is not None:
            signs.append(sign)
        elif kind in ("finish", "stop") and not signs:
            ended = True
        elif kind == "finish":
            found.append(_close(signs, ended=True))
            signs, ended = [], True
    if signs:
        found.append(_close(signs, ended=ended))
    return found


def _sign(source: str, row: dict[str, object]) -> Sign | None:
    """A mark as part of an incident; None where it is none."""
    kind, text = str(row["kind"]), str(row["text"])
    known = signature_of(text)
    known = known if known is not None and known.kind == kind else None
    role: Role = known.role if known is not None else "root"
    if not is_failure(kind, text):
        return None
    numbers = {k: v if isinstance(v := row[k], int) else None for k in ("line", "step", "t_ns")}
    return Sign(
        source=source,
        kind=kind,
        text=text,
        role=role,
        what=known.what if known is not None else "an exception",
        outcome=(known.outcome if known is not None else "") or OUTCOMES.get(kind, "crashed"),
        **numbers,
    )


def _close(signs: Sequence[Sign], *, ended: bool, resumed: tuple[int | None] | None = None) -> Incident:
    """The incident of some signs. ``resumed``: (step,) where training goes on after it."""
    cause, sure = _cause(signs)
    fate: Fate = "after the end" if ended else "fatal"
    if resumed is not None:
        step, before = resumed[0], cause.step
        fate = "restarted" if step is not None and before is not None and step <= before else "survived"
    return Incident(
        signs=tuple(signs),
        cause=cause,
        sure=sure,
        fate=fate,
        resumed_step=resumed[0] if resumed is not None else None,
    )


def _cause(signs: Sequence[Sign]) -> tuple[Sign, bool]:
    roots = [s for s in signs if s.role == "root"]
    killer = next((s for s in signs if s.role == "confirmation"), None)
    if killer is not None and (not roots or roots[0].kind == "dataloader"):
        return killer, True
    return (roots[0], True) if roots else (signs[0], False)
