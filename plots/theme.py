"""How figures look: sizes, type and colour in one frozen record; a ``screen`` and a ``paper`` style.

matplotlib is imported inside functions only, so that choosing a theme costs nothing. The user's own
``matplotlibrc`` never reaches a figure: the same input gives the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

SERIES_COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442")
"""Okabe & Ito (2008): blue, green, purple, sky, orange, black, yellow. More series than these are grey."""

VERMILLION = "#D55E00"
"""Their eighth colour is kept for findings, so that it always means *look here*."""

ROLES: Mapping[str, str] = {
    **dict(zip(("train", "val", "val2", "val3", "val4", "val5", "val6"), SERIES_COLOURS, strict=True)),
    "other": "#9A9A9A",
    "accent": VERMILLION,
    "quiet": "#6E6E6E",
    "ink": "#222222",
    # what a device does
    "compute": "#B9C9D6",
    "comm": "#CC79A7",
    "copy": "#E7C46A",
    # why it does nothing
    "dataloader": VERMILLION,
    "launch": "#0072B2",
    "sync": "#009E73",
    "memcpy": "#E69F00",
    "checkpoint": "#56B4E9",
    "eval": "#F0E442",
    "compile": "#6A3D9A",
    "comm_wait": "#8E3B6B",
    "gc": "#8C510A",
    "allocator": "#BF812D",
    "kernel_gap": "#DADADA",
    "python": "#8A8A8A",
    "unobserved": "#3A3A3A",
}
"""What a colour is for; figures name roles, never colours."""

CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Hiragino Sans",
    "Yu Gothic",
    "Malgun Gothic",
)
"""Fonts with Chinese, Japanese or Korean glyphs, in order of preference; the first installed one is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Everything about the look of a figure. Lengths in inches, type in points."""

    name: str = "screen"
    width_in: float = 8.0
    height_in: float = 4.5
    dpi: int = 150
    font_pt: float = 9.0
    header: bool = True
    """Title and note above the figure; a paper has its caption instead."""
    line_pt: float = 1.7
    thin_pt: float = 0.7
    marker_pt: float = 4.2
    markers: int = 80
    """Points of a line that are marked at most; of more, every second or third."""
    x_ticks: int = 8
    y_ticks: int = 7
    strip_rows: int = 4
    """Rows of finding labels above the panels at most; what does not fit is counted, not squeezed in."""
    svg_text: Literal["path", "none"] = "path"
    """``path`` looks the same in every browser, ``none`` keeps text editable in a drawing program."""

    @property
    def em(self) -> float:
        """The size of the type in inches: the unit of all margins."""
        return self.font_pt / 72.0

    def colour(self, role: str) -> str:
        """The colour of a role; grey where the role is unknown."""
        return ROLES.get(role, ROLES["other"])

    def tint(self, role: str, share: float) -> str:
        """The colour of a role mixed with this share of white: no transparency, so vector files stay plain."""
        return _mix(self.colour(role), 255, share)

    def ink(self, role: str) -> str:
        """The colour of a role dark enough for small text on white."""
        return next(
            c for c in (_mix(self.colour(role), 0, s / 20) for s in range(4, 21)) if _contrast(c) >= 5.0
        )

    def rc(self) -> dict[str, Any]:
        """The rcParams of this theme, to be laid over matplotlib's defaults."""
        return {
            "font.family": list(font_family()),
            "font.size": self.font_pt,
            "text.parse_math": False,  # a tag may hold a dollar sign
            "text.hinting": "none",  # glyphs where the measured widths say, and a third faster
            "text.color": ROLES["ink"],
            "axes.unicode_minus": True,
            "axes.linewidth": 0.6,
            "axes.edgecolor": "#8A8A8A",
            "axes.labelcolor": ROLES["ink"],
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": "#8A8A8A",
            "ytick.color": "#8A8A8A",
            "xtick.labelcolor": ROLES["ink"],
            "ytick.labelcolor": ROLES["ink"],
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "xtick.major.size": 3.0,
            "ytick.major.size": 3.0,
            "ytick.minor.size": 1.6,
            "ytick.minor.width": 0.5,
            "lines.solid_capstyle": "round",
            "lines.solid_joinstyle": "round",
            "agg.path.chunksize": 0,
            "path.simplify_threshold": 0.2,
            "svg.hashsalt": "afterrun",
            "svg.fonttype": self.svg_text,
            "pdf.fonttype": 42,
            "figure.dpi": self.dpi,
            "savefig.dpi": self.dpi,
            "savefig.facecolor": "white",
        }

    @contextmanager
    def context(self) -> Iterator[None]:
        """matplotlib's defaults with this theme on top; what was set before comes back."""
        import matplotlib as mpl  # noqa: PLC0415  # heavy; only drawing needs it

        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(self.rc())  # type: ignore[arg-type]  # its keys are names of settings
            yield

    def figure(self) -> MplFigure:
        """An empty figure of this size with an Agg canvas; pyplot and its global state are never touched."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # heavy, as above
        from matplotlib.figure import Figure as MplFigure  # noqa: PLC0415  # as above

        figure = MplFigure(figsize=(self.width_in, self.height_in), dpi=self.dpi, facecolor="white")
        FigureCanvasAgg(figure)
        return figure


SCREEN = Theme()


def paper(columns: int = 1) -> Theme:
    """The style for a two-column page: 1 or 2 columns wide (3.35 or 6.9 in), 300 dpi, no header.

    Raises ``ValueError`` for any other number of columns.
    """
    if columns not in (1, 2):
        raise ValueError(f"a paper figure is 1 or 2 columns wide, not {columns}")
    one = columns == 1
    return Theme(
        name="paper",
        width_in=3.35 if one else 6.9,
        height_in=2.6 if one else 3.5,
        dpi=300,
        font_pt=7.0 if one else 7.5,
        header=False,
        line_pt=1.1 if one else 1.3,
        thin_pt=0.4,
        marker_pt=2.6 if one else 3.2,
        markers=24 if one else 50,
        x_ticks=4 if one else 7,
        y_ticks=5,
        strip_rows=3 if one else 4,
        svg_text="none",
    )


def theme_of(style: str = "screen", columns: int = 1) -> Theme:
    """The theme of this name. Raises ``ValueError`` naming the known ones."""
    if style == "screen":
        return SCREEN
    if style == "paper":
        return paper(columns)
    raise ValueError(f"unknown style {style!r}; there are 'screen' and 'paper'")


@cache
def font_family() -> tuple[str, ...]:
    """DejaVu Sans, which matplotlib ships, then the first installed font with CJK glyphs."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415  # heavy; only drawing needs it

    installed = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *[name for name in CJK_FONTS if name in installed][:1])


@cache
def glyphs() -> frozenset[int]:
    """Code points that the fonts in use can draw."""
    from matplotlib.font_manager import findfont, get_font  # noqa: PLC0415  # heavy; only drawing needs it

    known: set[int] = set()
    for family in font_family():
        known |= set(get_font(findfont(family)).get_charmap())
    return frozenset(known)


def _contrast(colour: str) -> float:
    """Contrast ratio against white (WCAG 2.1); 4.5 is the least for text."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)


def _mix(colour: str, towards: int, share: float) -> str:
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(c + (towards - c) * share):02x}" for c in channels)
