"""One figure in the hand: drawn when it is shown or saved, in the style that is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from afterrun.plots.registry import Figure, Prepared
from afterrun.plots.theme import Theme, theme_of
from afterrun.plots.write import render, write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A prepared figure. ``style`` is ``screen`` or ``paper``; ``columns`` is 1 or 2 of a two-column page."""

    kind: Figure
    prepared: Prepared

    @property
    def data(self) -> pl.DataFrame:
        """Every drawn number."""
        return self.prepared.frame

    def draw(self, style: str = "screen", columns: int = 1) -> MplFigure:
        """The matplotlib figure. Raises ``ValueError`` for an unknown style."""
        theme = theme_of(style, columns)
        with theme.context():
            return self.kind.draw(self.prepared, theme)

    def to_png(self, path: str | Path, style: str = "screen", columns: int = 1) -> Path:
        """Write a PNG and return its path."""
        return self._write(path, "png", theme_of(style, columns))

    def to_svg(self, path: str | Path, style: str = "screen", columns: int = 1) -> Path:
        """Write an SVG and return its path."""
        return self._write(path, "svg", theme_of(style, columns))

    def to_pdf(self, path: str | Path, style: str = "screen", columns: int = 1) -> Path:
        """Write a PDF and return its path."""
        return self._write(path, "pdf", theme_of(style, columns))

    def to_csv(self, path: str | Path) -> Path:
        """Write the drawn numbers and return the path."""
        self.data.write_csv(path)
        return Path(path)

    def bytes_of(self, fmt: str, theme: Theme) -> bytes:
        """The file ``fmt`` (png, svg, pdf) of this figure."""
        with theme.context():
            return render(self.kind.draw(self.prepared, theme), fmt, theme)

    def _write(self, path: str | Path, fmt: str, theme: Theme) -> Path:
        write_atomic(Path(path), self.bytes_of(fmt, theme))
        return Path(path)

    def _repr_png_(self) -> bytes:
        return self.bytes_of("png", theme_of())

    def __repr__(self) -> str:
        """Name and content, for a list of figures."""
        return f"<{self.kind.name}: {self.prepared.title}>"
