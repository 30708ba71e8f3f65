"""The curves of one run as each of its sources tells them, sorted into groups that may be one curve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from afterrun.loaders.joining.matching import Curve
from afterrun.loaders.names import SPLIT_WORDS, Name, canonical, words_of

MAX_COMPARED = 40
"""Curves of one metric and split beyond which only those of the same words are compared."""

_Key = tuple[int | None, str, int]
"""Rank, tag and number of the format."""


@dataclass(eq=False, slots=True, kw_only=True)
class Told:
    """One tag of one rank as one format tells it; ``linked``: formats of which a curve was found to be the same."""

    rank: int | None
    tag: str
    format: str
    name: Name
    words: str
    curve: Curve
    linked: set[str] = field(default_factory=set)
    kept: bool = True

    @property
    def richness(self) -> tuple[bool, int, bool, int]:
        """Steps before none, then digits recorded in all, then a clock, then how far it reaches."""
        c = self.curve
        end = int(c.step[c.living[-1]]) if c.step is not None else 0
        return c.step is not None, len(c.living) * c.precision.told, c.wall_ns is not None, end

    def same_tag(self, other: Told) -> bool:
        """Whether both are one curve by their names alone."""
        return (self.rank, self.tag) == (other.rank, other.tag)


def groups(rows: pl.DataFrame, formats: Sequence[str], overrides: Mapping[str, Name]) -> Iterator[list[Told]]:
    """Curves that may be one: of several formats, one rank, metric and split, the richest first.

    ``rows`` are those of one run with ``superseded`` and ``_format``, an index into ``formats``. What has no rank is
    compared with the lowest one, which writes the shared logs.
    """
    heads = rows.filter(~pl.col("superseded")).select("rank", "tag", "_format").unique(maintain_order=True)
    lowest = heads["rank"].min()
    sets: dict[tuple[object, ...], list[_Key]] = defaultdict(list)
    names = {str(tag): overrides.get(str(tag)) or canonical(str(tag)) for tag in heads["tag"].unique()}
    for rank, tag, code in heads.iter_rows():
        sets[lowest if rank is None else rank, *_meaning(tag, names[tag])].append((rank, tag, code))
    wanted = [members for members in sets.values() if len({m[2] for m in members}) > 1]
    for members, curves in zip(wanted, _curves(rows, wanted), strict=True):
        told = [
            Told(rank=rank, tag=tag, format=formats[code], name=names[tag], words=_words(tag), curve=curve)
            for (rank, tag, code), curve in zip(members, curves, strict=True)
        ]
        yield sorted(sorted(told, key=lambda t: (t.format, t.tag)), key=lambda t: t.richness, reverse=True)


def pairs(group: Sequence[Told]) -> Iterator[tuple[Told, Told]]:
    """Pairs of different formats, the richer one first: those of one tag, of the same words, then the others."""
    found = [
        (a, b)
        for i, a in enumerate(group)
        for b in group[i + 1 :]
        if a.format != b.format and (len(group) <= MAX_COMPARED or a.words == b.words)
    ]
    yield from sorted(found, key=lambda p: (p[0].tag != p[1].tag, p[0].words != p[1].words))


def _meaning(tag: str, name: Name) -> tuple[str, str]:
    """(metric, split); an unknown metric is its words, and what names no split is the training."""
    if name.kind == "axis":
        return tag, "axis"
    split = "train" if name.split == "none" else name.split
    return name.metric or f"~{_words(tag)}", split


def _words(tag: str) -> str:
    return " ".join(w for w in words_of(tag) if w not in SPLIT_WORDS)


def _curves(rows: pl.DataFrame, wanted: Sequence[Sequence[_Key]]) -> Iterator[list[Curve]]:
    """The rows of the members of each set."""
    tags = list(dict.fromkeys(tag for group in wanted for _, tag, _ in group))
    mine = rows.select("rank", "tag", "_format", "step", "epoch", "wall_ns", "value", "superseded")
    mine = mine.with_row_index("_row").filter(pl.col("tag").is_in(tags))
    found = mine.partition_by("rank", "tag", "_format", as_dict=True, include_key=False, maintain_order=True)
    for group in wanted:
        yield [_curve(found[member]) for member in group]


def _curve(part: pl.DataFrame) -> Curve:
    alive = ~part["superseded"]
    step, epoch, wall = (_everywhere(part[axis], alive) for axis in ("step", "epoch", "wall_ns"))
    if step is not None and step.null_count():
        return _curve(part.filter(step.is_not_null()))
    return Curve(
        rows=part["_row"].to_numpy().astype(np.int64),
        value=part["value"].to_numpy(),
        alive=alive.to_numpy(),
        step=None if step is None else step.to_numpy(),
        epoch=None if epoch is None else epoch.to_numpy(),
        wall_ns=None if wall is None else wall.fill_null(0).to_numpy(),
    )


def _everywhere(axis: pl.Series, alive: pl.Series) -> pl.Series | None:
    """The axis where every surviving row has one."""
    return None if axis.null_count() and (axis.is_null() & alive).any() else axis
