"""Some tags instead of all: what the user wants of a source, so that a loader may skip the rest.

A loader may use it to save work and need not: rows of other tags are dropped behind it, before files become
runs. So every format gives what it would give had the run recorded the wanted tags only. Tags that place others (the
epoch, the tokens) are read with them, for they fill the axis columns, and are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import polars as pl

from afterrun.loaders.names import Name, canonical
from afterrun.loaders.schema import Tables

PLACING = frozenset({"epoch", "tokens"})
"""Canonical metrics whose rows tell where rows of other tags lie."""

TAGGED = ("metrics", "histograms")
"""Tables with a row for each value of a tag."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tags by name, by glob (``val/*``) or by the canonical metric they mean (``loss``).

    ``meanings`` are those the user gave; ``prefix`` is the folder that stands before the tags of one source.
    """

    patterns: tuple[str, ...]
    meanings: Mapping[str, Name] = field(default_factory=dict)
    prefix: str = ""

    def under(self, prefix: str) -> Wanted:
        """The same for a source whose tags are called ``prefix + tag``."""
        return replace(self, prefix=prefix)

    def keeps(self, tag: str) -> bool:
        """Whether rows of this tag are asked for."""
        return any(self._fits(self.prefix + tag, p) for p in self.patterns)

    def reads(self, tag: str) -> bool:
        """Whether rows of this tag have to be read: asked for, or placing those that are."""
        return self.keeps(tag) or self._metric(self.prefix + tag) in PLACING

    def read_rows(self, table: str, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a loader's frame that have to be read."""
        return frame.filter(_is_one_of(frame, filter(self.reads, _tags(frame)))) if table in TAGGED else frame

    def kept_rows(self, tables: Tables) -> Tables:
        """Tables with the rows that were asked for."""
        chosen = {}
        for name in TAGGED:
            frame: pl.DataFrame = getattr(tables, name)
            chosen[name] = frame.filter(_is_one_of(frame, filter(self.keeps, _tags(frame))))
        return tables.with_(**chosen)

    def unmet(self, tables: Tables) -> list[str]:
        """Patterns that no tag fits."""
        tags = {tag for name in TAGGED for tag in _tags(getattr(tables, name))}
        return [p for p in self.patterns if not any(self._fits(tag, p) for tag in tags)]

    def _fits(self, tag: str, pattern: str) -> bool:
        return pattern in (tag, self._metric(tag)) or fnmatchcase(tag, pattern)

    def _metric(self, tag: str) -> str | None:
        return (self.meanings.get(tag) or canonical(tag)).metric


def _tags(frame: pl.DataFrame) -> list[str]:
    return frame["tag"].unique(maintain_order=True).cast(pl.String).to_list()


def _is_one_of(frame: pl.DataFrame, tags: Iterable[str]) -> pl.Series:
    return frame["tag"].is_in(list(tags))
