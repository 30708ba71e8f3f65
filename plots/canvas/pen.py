"""Text and strokes placed by the inch, with text measured before it is placed.

Margins are set by hand from measured text: it costs a tenth of matplotlib's constrained layout and
gives the same figure on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from afterrun.plots.canvas.text import display_name, legible

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws on one figure in inches from its lower left corner. Sizes are shares of the theme's type size."""

    figure: MplFigure
    theme: Theme

    def width(self, text: str, size: float = 1.0, *, bold: bool = False) -> float:
        """Width in inches of one line, or of the widest of several."""
        points = self.theme.font_pt * size
        return max(_width_points(line, points, bold) for line in text.split("\n")) / 72.0

    def fit(self, text: str, room: float, size: float = 1.0, *, bold: bool = False) -> str:
        """The text, cut in the middle until it is no wider than ``room`` inches."""
        whole = shown = legible(text)
        while len(shown) > 8 and (wide := self.width(shown, size, bold=bold)) > room:
            shown = display_name(whole, max(8, min(len(shown) - 1, int(len(shown) * room / wide))))
        return shown

    def text(self, x: float, y: float, text: str, **style: Any) -> Any:
        """One text; ``size`` (share), ``role``, ``bold``, ``ha``, ``va``, ``gid`` and ``linespacing`` style it."""
        role = style.pop("role", "ink")
        size = style.pop("size", 1.0)
        weight = "bold" if style.pop("bold", False) else "normal"
        return self.figure.text(
            x / self.theme.width_in,
            y / self.theme.height_in,
            text,
            fontsize=self.theme.font_pt * size,
            fontweight=weight,
            color=self.theme.ink(role),
            **{"ha": "left", "va": "center", **style},
        )

    def line(self, xs: list[float], ys: list[float], **style: Any) -> None:
        """A stroke through these points; style as of ``matplotlib.lines.Line2D``."""
        from matplotlib.lines import Line2D  # noqa: PLC0415  # heavy; only drawing needs it

        self.figure.add_artist(Line2D(xs, ys, transform=self.figure.dpi_scale_trans, **style))


@lru_cache(maxsize=4096)
def _width_points(line: str, points: float, bold: bool) -> float:
    """Width in points as the vector back ends set it; a little air covers the hinting of the pixel ones."""
    from matplotlib.font_manager import FontProperties  # noqa: PLC0415  # heavy; only drawing needs it
    from matplotlib.textpath import TextToPath  # noqa: PLC0415  # as above

    from afterrun.plots.theme import font_family  # noqa: PLC0415  # asks matplotlib for its fonts

    if not line:
        return 0.0
    font = FontProperties(family=list(font_family()), size=points, weight="bold" if bold else "normal")
    width, _, _ = TextToPath().get_text_width_height_descent(line, font, ismath=False)
    return float(width) * 1.02
