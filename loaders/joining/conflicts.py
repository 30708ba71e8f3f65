"""Two sources of one run that say different things about one metric at the same step.

A conflict travels as a mark of the kind ``metric-conflict`` whose text is JSON; the mark has no source of its own,
for it is about two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import polars as pl

from afterrun.loaders.schema import SCHEMAS, empty

KIND = "metric-conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """What both sources say at the first shared step where they differ, and at how many steps they do.

    ``tag`` is the curve that is kept in front (more digits, more points). ``source`` are names of files. Two
    conflicting curves of different tags are both kept; of one tag the other one is superseded.
    """

    tag: str
    source: str
    value: float
    other_tag: str
    other_source: str
    other_value: float
    step: int
    rank: int | None
    shared: int
    """Steps that both have."""
    differing: int
    """... and at which they differ by more than the rounding of both."""

    def sentence(self) -> str:
        """For a person."""
        names = self.tag if self.tag == self.other_tag else f"{self.tag} and {self.other_tag}"
        return (
            f"{names} of {self.source} and {self.other_source} differ at {self.differing:,} of {self.shared:,} shared steps, "
            f"first at step {self.step}: {self.value:.6g} and {self.other_value:.6g}"
        )


def to_marks(run: str, conflicts: Sequence[Conflict]) -> pl.DataFrame:
    """Rows of ``marks``, one a conflict."""
    if not conflicts:
        return empty("marks")
    rows = [
        {
            "run": run,
            "attempt": 1,
            "rank": c.rank,
            "step": c.step,
            "kind": KIND,
            "text": json.dumps(asdict(c)),
        }
        for c in conflicts
    ]
    return pl.DataFrame(rows, schema=SCHEMAS["marks"])


def from_marks(marks: pl.DataFrame) -> list[Conflict]:
    """The conflicts among the marks of a run; a text that is none is passed over."""
    found = []
    wanted = {f.name for f in fields(Conflict)}
    for text in marks.filter(pl.col("kind") == KIND)["text"]:
        try:
            told = json.loads(text)
        except (TypeError, ValueError):
            continue
        if isinstance(told, dict) and told.keys() == wanted:
            found.append(Conflict(**told))
    return found
