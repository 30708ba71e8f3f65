"""What a figure is, and how the figures are found: by walking ``figures/``.

A figure is two steps, so that what is drawn can be tested without pixels: ``prepare`` turns tables and
findings into one frame (or says why there is nothing to draw), ``draw`` turns the frame into artists.
A new figure is one new file in ``figures/``; no list is edited.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.view import RunView
from afterrun.plots.spec import End, Key, Mark, Panel, XAxis

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """All that ``draw`` needs, as plain values. ``frame`` (``spec.FRAME``) is written beside the figure as CSV."""

    frame: pl.DataFrame
    title: str
    alt: str
    """One or two sentences for those who cannot see it: what is drawn and what it shows."""
    x: XAxis
    panels: tuple[Panel, ...]
    note: str = ""
    """A line under the title: how the figure was made."""
    keys: tuple[Key, ...] = ()
    ends: tuple[End, ...] = ()
    marks: tuple[Mark, ...] = ()
    """Findings, worst first."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The colour role of each ``name`` in the frame."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the findings drawn in it, worst first."""
        return tuple(dict.fromkeys(m.code for m in self.marks if m.code))


@dataclass(frozen=True, slots=True)
class Skip:
    """Why there is nothing to draw."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One figure on disk. ``files`` maps ``png``/``svg``/``pdf``/``csv`` to paths below the output folder."""

    name: str
    run: str
    title: str
    alt: str
    codes: tuple[str, ...]
    files: Mapping[str, str]


class Figure(ABC):
    """One kind of figure of one run. Subclasses are stateless.

    ``name`` is kebab-case and unique; ``codes`` are the finding codes it illustrates.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    codes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """The drawn data as a frame. Never changes its input."""

    @abstractmethod
    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Artists from the frame alone, through matplotlib's object interface (never pyplot)."""


@cache
def figures() -> Mapping[str, Figure]:
    """All figures by name, in alphabetical order."""
    import afterrun.plots.figures as folder  # noqa: PLC0415  # the walk starts here, not at import

    found: dict[str, Figure] = {}
    for info in pkgutil.walk_packages(folder.__path__, folder.__name__ + "."):
        module = importlib.import_module(info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Figure) and not inspect.isabstract(cls) and cls.__module__ == module.__name__:
                if cls.name in found:
                    raise TypeError(f"two figures are named {cls.name!r}: {found[cls.name]!r} and {cls!r}")
                found[cls.name] = cls()
    return {name: found[name] for name in sorted(found)}
