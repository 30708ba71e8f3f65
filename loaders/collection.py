"""What reading a set of paths gave: the tables, how runs were formed, and what nobody recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from afterrun.loaders.names import Name
from afterrun.loaders.schema import Tables


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """A file that no loader recognises, and why it is no log."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """How one run was formed."""

    name: str
    path: str
    grouped_by: str
    """The rule that put its files together, for a person."""
    attempts: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """All runs below the given paths."""

    tables: Tables
    runs: Mapping[str, RunInfo]
    unclaimed: tuple[Unclaimed, ...] = ()
    overrides: Mapping[str, Name] = field(default_factory=dict)
    """Meaning of tags given by the user."""
    newest_ns: int | None = None
    """The newest time recorded in the input."""
