"""Styles, colours, and that nothing outside reaches a figure."""

from __future__ import annotations

import subprocess
import sys

import pytest

from afterrun.plots.theme import ROLES, SCREEN, SERIES_COLOURS, VERMILLION, paper, theme_of


def test_styles_by_name() -> None:
    assert theme_of("screen") is SCREEN
    assert theme_of("paper", 2) == paper(2)
    assert (SCREEN.width_in, SCREEN.height_in, SCREEN.dpi) == (8.0, 4.5, 150)
    assert (paper(1).width_in, paper(2).width_in, paper(1).dpi) == (3.35, 6.9, 300)
    assert paper(1).svg_text == "none"
    with pytest.raises(ValueError, match="'screen' and 'paper'"):
        theme_of("poster")
    with pytest.raises(ValueError, match="1 or 2"):
        paper(3)


def test_findings_have_a_colour_that_no_curve_has() -> None:
    assert len(set(SERIES_COLOURS)) == 7
    assert VERMILLION not in SERIES_COLOURS
    assert ROLES["accent"] == VERMILLION
    assert SCREEN.colour("a role nobody knows") == ROLES["other"]


@pytest.mark.parametrize("role", sorted(ROLES))
def test_text_in_any_colour_can_be_read(role: str) -> None:
    """WCAG 2.1 asks 4.5 : 1 of small text; relative luminance as defined there."""
    channels = [int(SCREEN.ink(role)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    assert 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) >= 4.5


def test_a_tint_lies_between_the_colour_and_white() -> None:
    assert SCREEN.tint("train", 0.0) == "#0072b2"
    assert SCREEN.tint("train", 1.0) == "#ffffff"
    assert SCREEN.tint("train", 0.5) == "#80b8d8"


def test_settings_of_the_user_neither_reach_a_figure_nor_are_lost() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"axes.grid": True, "font.size": 30.0, "text.usetex": True}):
        with SCREEN.context():
            assert mpl.rcParams["axes.grid"] is False
            assert mpl.rcParams["text.usetex"] is False
            assert mpl.rcParams["font.size"] == SCREEN.font_pt
        assert mpl.rcParams["font.size"] == 30.0


def test_choosing_a_theme_and_finding_figures_costs_no_matplotlib() -> None:
    code = (
        "import sys; from afterrun.plots.theme import paper; from afterrun.plots.registry import figures; "
        "paper(1); figures(); import afterrun.plots.pack; "
        "print(sorted({'matplotlib', 'pandas', 'seaborn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pyplot_is_never_used() -> None:
    code = (
        "import sys; from tests.support.figures import loss_view; from afterrun.plots.registry import figures; "
        "from afterrun.plots.theme import SCREEN; figure = figures()['curves']; "
        "figure.draw(figure.prepare(loss_view(), ()), SCREEN); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
