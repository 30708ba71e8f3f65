"""Text from logs on its way to a person."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from afterrun.plots.report import text as txt
from tests.support.reports import HOSTILE


def test_controls_are_shown_and_not_obeyed() -> None:
    assert txt.visible("a\x1b[31mred") == "a␛[31mred"
    assert txt.visible("\u202egpj.exe") == "⟨U+202E⟩gpj.exe"
    assert txt.visible("a\tb\nc\rd") == "a b c d"
    assert txt.visible("x\udc80y") == "x⟨U+DC80⟩y"
    assert txt.visible("训练/损失 ± é") == "训练/损失 ± é"


@given(st.text(st.characters(codec=None, exclude_categories=[])))
def test_nothing_invisible_is_left(text: str) -> None:
    shown = txt.visible(text)
    shown.encode("utf-8")
    assert not [
        c
        for c in shown
        if unicodedata.category(c) in ("Cc", "Cs")
        or unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")
    ]


@given(st.text(max_size=200), st.integers(8, 100))
def test_shorten_keeps_both_ends_and_the_limit(text: str, limit: int) -> None:
    short = txt.shorten(text, limit)
    assert len(short) == min(len(text), limit)
    assert short[:2] == text[:2]
    assert short[-2:] == text[-2:]


def test_shorten_takes_from_the_middle() -> None:
    assert txt.shorten("0123456789", 7) == "0123…89"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_csv_cells_that_look_like_formulas_get_an_apostrophe(text: str) -> None:
    assert txt.csv_cell(text) == "'" + text


def test_other_csv_cells_stay() -> None:
    assert [txt.csv_cell(t) for t in ("", "a=b", "1", "'x")] == ["", "a=b", "1", "'x"]


@given(st.text())
def test_links_stay_below_the_page(path: str) -> None:
    link = txt.href(path)
    assert re.fullmatch(r"[A-Za-z0-9_.~%/-]*", link)
    assert not link.startswith("/")
    assert ".." not in link.split("/")


def test_links_keep_their_folders() -> None:
    assert txt.href("figures/a b&c#1.png") == "figures/a%20b%26c%231.png"
    assert txt.href("javascript:alert(1)") == "javascript%3Aalert%281%29"


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE,
        "# not a heading",
        "1. not a list",
        "- no",
        "see www.x.org",
        "@someone",
        "a|b",
        "`x`",
        "&lt;b&gt;",
        "[a](http://x)",
        "![i](x)",
        "~~s~~",
        "**b**",
        "http://x",
    ],
)
def test_markdown_shows_text_as_itself(text: str) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(f"{txt.markdown(text)}\n")
    assert [t.type for t in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    kinds = {c.type for c in tokens[1].children or []}
    assert kinds <= {"text", "text_special", "html_inline"}
    raw = [c.content for c in tokens[1].children or [] if c.type == "html_inline"]
    assert set(raw) <= {"<!-- -->"}
    plain = "".join(c.content for c in tokens[1].children or [] if c.type != "html_inline")
    assert plain == txt.visible(text).strip()


@pytest.mark.parametrize("text", [*HOSTILE, "``", "`", "a`b``c", " ", "", "x" * 500])
def test_markdown_code_is_one_code_span(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(txt.markdown_code(text))
    children = tokens[1].children or []
    assert [c.type for c in children] == ["code_inline"]
    if text.strip():
        assert children[0].content.strip() == txt.shorten(txt.visible(text), 120).strip()


def test_segments_find_what_is_to_be_typed() -> None:
    assert txt.segments("no lr; name one with --map 'optim/rate=lr'") == [
        (False, "no lr; name one with "),
        (True, "--map 'optim/rate=lr'"),
    ]
    assert txt.segments("use `lr <= 1e-1` here") == [(False, "use "), (True, "lr <= 1e-1"), (False, " here")]
    assert txt.segments("plain -- text") == [(False, "plain -- text")]
    assert txt.segments("") == [(False, "")]


@given(st.text(st.characters(exclude_characters="`")))
def test_segments_lose_nothing(text: str) -> None:
    assert "".join(part for _, part in txt.segments(text)) == text
