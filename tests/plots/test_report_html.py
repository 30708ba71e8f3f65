"""The page, read as a browser reads it: as a tree of elements, not as text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

import afterrun.plots
from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Evidence, Finding, Where
from afterrun.loaders.collection import Unclaimed
from afterrun.plots.registry import Drawn
from afterrun.plots.report import html, write_report
from tests.support.reports import HOSTILE, alarm, blind, draw, fine, learning, make_analysis, png, sources_of
from tests.support.tables import make_tables

VOID = {"meta", "link", "img", "input", "br", "path"}


class Tree(HTMLParser):
    """Tags with their attributes and the text below them; checks that elements close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))
        if tag not in VOID:
            self._open.append(tag)
            self.text.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            self.text[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]


def page(
    analysis: Analysis, out: Path, drawn: Sequence[Drawn] = (), command: str = "afterrun report x"
) -> str:
    write_report(analysis, drawn, out, version="0.1.0", command=command)
    return (out / "index.html").read_text("utf-8")


def example() -> Analysis:
    parts = [learning("good", 1, outcome="finished"), learning("bad", 2, rise=0.2, devices=8)]
    findings = [
        alarm("bad"),
        alarm("bad", "noisy", status="possible", wasted_gpu_s=None),
        fine("bad", "divergence", "looked at 400 values"),
        *(fine("good", code) for code in ("overfit", "divergence", "non-finite")),
        blind("good", "lr-dead", "a learning rate: --map 'optim/rate=lr'", title="no learning rate recorded"),
    ]
    unclaimed = [Unclaimed("core.4711", "ELF core file")]
    return make_analysis(parts, findings, unclaimed=unclaimed, faults=["bad: the pass x failed"])


def hostile() -> Analysis:
    """Every text field of everything holds every hostile name."""
    parts, findings = [], []
    for i, name in enumerate(("<b>run&1", *HOSTILE)):
        tables = make_tables(
            {tag: (range(9), [9.0 - k for k in range(9)]) for tag in HOSTILE},
            run=name,
            params={name: name},
            outcome="finished",
        )
        parts.append(sources_of(tables, path=[name], note=[name], format=[name], status=["partial"]))
        evidence = tuple(Evidence(source=t, tag=t, step=1, value=t, line=2, note=t) for t in HOSTILE)
        findings.append(
            alarm(
                name,
                title=name,
                evidence=evidence,
                advice=HOSTILE,
                parameters={name: name},
                values={name: name},
                where=Where(step_start=i),
            )
        )
        findings += [fine(name, "spike", name), blind(name, "lr-dead", *HOSTILE, title=name)]
    return make_analysis(parts, findings, unclaimed=[Unclaimed(t, t) for t in HOSTILE], faults=HOSTILE)


def test_the_page_is_well_formed_and_in_order(tmp_path: Path) -> None:
    text = page(example(), tmp_path)
    tree = Tree(text)
    assert text.startswith("<!doctype html>\n")
    assert [a["id"] for a in tree.all("section")] == ["top", "findings", "runs", "each", "skipped", "made"]
    assert len(tree.text["h1"]) == 1
    assert tree.text["title"] == ["Post-mortem of 2 runs"]
    ids = [a["id"] for _, a in tree.tags if "id" in a]
    assert len(ids) == len(set(ids))
    inner = {a["href"][1:] for a in tree.all("a") if a["href"].startswith("#")}
    assert inner <= set(ids)


def test_the_policy_knows_style_and_script_by_their_hashes(tmp_path: Path) -> None:
    text = page(example(), tmp_path)
    (policy,) = [
        a["content"] for a in Tree(text).all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]

    def inline(tag: str) -> str:
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        return "sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; script-src '{inline('script')}'; style-src '{inline('style')}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_fetched_and_nothing_inline_runs(tmp_path: Path) -> None:
    drawn = [draw(tmp_path, "bad", "curves", ("overfit",))]
    tree = Tree(page(example(), tmp_path, drawn))
    for tag, attrs in tree.tags:
        assert "style" not in attrs, tag
        assert not [name for name in attrs if name.startswith("on")], tag
        for name in ("src", "href", "srcset", "action", "poster", "data"):
            value = attrs.get(name, "")
            assert not re.match(r"[a-z][a-z0-9+.-]*:|//", value) or value.startswith("data:"), (tag, value)
    assert "http:" not in (tmp_path / "index.html").read_text()
    assert "https:" not in (tmp_path / "index.html").read_text()
    for attrs in tree.all("a"):
        if not attrs["href"].startswith("#"):
            assert (tmp_path / attrs["href"]).is_file(), attrs


def test_every_picture_has_words(tmp_path: Path) -> None:
    drawn = [draw(tmp_path, "bad", "curves", ("overfit",), png(1200, 675))]
    tree = Tree(page(example(), tmp_path, drawn))
    (image,) = tree.all("img")
    assert image["alt"] == "Curves of bad."
    assert (image["width"], image["height"]) == ("1200", "675")
    assert base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) == png(1200, 675)
    assert [a["aria-label"] for a in tree.all("svg")]
    assert all(a["role"] == "img" for a in tree.all("svg"))


def test_hostile_names_are_text(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = page(hostile(), out, [draw(out, "<b>run&1", "<i>", ("overfit",))], command="\x1b[31m<script>")
    tree = Tree(text)
    assert tree.text["title"] == ["Post-mortem of 13 runs"]
    assert len(tree.all("script")) == len(tree.all("style")) == 1
    assert len(re.findall("</script", text, re.IGNORECASE)) == 1
    assert {tag for tag, _ in tree.tags} & {"b", "red", "i", "iframe", "object"} == set()
    assert len(tree.all("img")) == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "⟨U+202E⟩gpj.exe" in text
    assert "{{7*7}}" in text
    assert "<b>run&1" in "".join(tree.text["h3"])
    for tag, attrs in tree.tags:
        assert not [name for name in attrs if name.startswith("on")], tag


def test_no_module_but_one_makes_markup() -> None:
    (room,) = afterrun.plots.__path__
    allowed = {Path(html.__file__).name}
    for path in [*Path(room).rglob("*.py"), *Path(room).rglob("*.j2")]:
        text = path.read_text("utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape\s*(=\s*False|\s+false)", text), path
        assert "Markup" not in text or path.name in allowed, path


def test_findings_are_told_with_all_they_know(tmp_path: Path) -> None:
    tree = Tree(page(example(), tmp_path))
    first, second = tree.text["article"]
    for words in (
        "overfits from step 6,400",
        "18.2 % (15.1 to 21.4)",
        "95 % interval, medians of the last quarter",
        "steps 6,400 to 51,200",
        "9.1 GPU-h",
        "Confirmed by the evidence",
        "events.out.tfevents.1.host",
        "0.8113",
        "Try more regularisation.",
    ):
        assert words in first.replace("\u00a0", " "), words
    assert "Possible: the evidence leaves room for chance" in second
    assert "not recorded" in second


def test_what_could_not_be_seen_is_said(tmp_path: Path) -> None:
    tree = Tree(page(example(), tmp_path))
    everything = tree.text["main"][0]
    assert "no learning rate recorded" in everything
    assert "--map 'optim/rate=lr'" in tree.text["code"]
    assert "ELF core file" in everything
    assert "core.4711" in tree.text["code"]
    assert "bad: the pass x failed" in everything


def test_no_finding_and_no_check_is_no_comfort(tmp_path: Path) -> None:
    calm = Tree(page(make_analysis([learning("r")], [fine("r", "overfit")]), tmp_path / "a")).text["main"][0]
    assert "No check raised an alarm." in calm
    silent = Tree(page(make_analysis([learning("r")]), tmp_path / "b")).text["main"][0]
    assert "But no check ran either" in silent
    none = Tree(page(make_analysis([]), tmp_path / "c")).text["h1"]
    assert none == ["No run was found."]


def test_the_table_sorts_by_what_it_shows(tmp_path: Path) -> None:
    tree = Tree(page(example(), tmp_path))
    heads = [a for tag, a in tree.tags if tag == "button"]
    assert [h["data-kind"] for h in heads] == ["text", "text", *["number"] * 6]
    values = [a["data-v"] for a in tree.all("td") if a.get("data-label") == "Lost"]
    assert values == ["32760.0", ""]
    sorted_by = [a["aria-sort"] for a in tree.all("th") if "aria-sort" in a]
    assert sorted_by == ["descending"]


def test_a_figure_stands_once_and_only_ten_are_inside(tmp_path: Path) -> None:
    parts = [learning(f"r{i:02d}", i, n=40) for i in range(14)]
    findings = [
        alarm(f"r{i:02d}", code, wasted_gpu_s=float(i)) for i in range(14) for code in ("overfit", "spike")
    ]
    drawn = [draw(tmp_path, f"r{i:02d}", "curves", ("overfit", "spike"), png(5, 4 + i)) for i in range(14)]
    tree = Tree(page(make_analysis(parts, findings), tmp_path, drawn))
    sources = [a["src"] for a in tree.all("img")]
    assert len(sources) == len(set(sources)) == 10
    linked = {a["href"] for a in tree.all("a") if a["href"].endswith(".png")}
    assert linked == {d.files["png"] for d in drawn}


def test_a_picture_that_cannot_be_read_costs_the_picture(tmp_path: Path) -> None:
    drawn = [draw(tmp_path, "bad", "curves", ("overfit",), b"not a picture")]
    assert Tree(page(example(), tmp_path, drawn)).all("img") == []


def test_b80_two_hundred_runs_fit(tmp_path: Path) -> None:
    parts = [learning(f"trial-{i}", i, n=200) for i in range(200)]
    codes = ("divergence", "non-finite", "plateau", "noisy", "restart", "incomplete", "spike")
    findings: list[Finding] = [fine(f"trial-{i}", code) for i in range(200) for code in codes]
    findings += [alarm(f"trial-{i}") for i in range(200)]
    text = page(make_analysis(parts, findings), tmp_path)
    assert len(text.encode()) < 2_500_000  # 5 MB with ten figures of 180 kB
    tree = Tree(text)
    assert len(tree.all("svg")) == 200
    assert len([1 for a in tree.all("details") if a.get("class", "").startswith("run ")]) == 200


def test_thousands_of_runs_are_told_in_part_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afterrun.plots.report.page.ROWS", 3)
    monkeypatch.setattr("afterrun.plots.report.page.SECTIONS", 2)
    parts = [learning(f"r{i}", i, n=20) for i in range(5)]
    tree = Tree(page(make_analysis(parts, [alarm("r4")]), tmp_path))
    said = tree.text["main"][0]
    assert "2 more runs stand in summary.csv" in said
    assert "Sections are written for the 2 runs with the most to say. All 5 runs" in said
    ids = {a["id"] for _, a in tree.tags if "id" in a}
    assert {a["href"][1:] for a in tree.all("a") if a["href"].startswith("#")} <= ids


def colours(css: str) -> list[dict[str, str]]:
    return [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6});", block))
        for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    ]


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(c * 2 for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_contrast_in_light_dark_and_print() -> None:
    """WCAG 2.2, 1.4.3 and 1.4.11: 4.5 to 1 for text, 3 to 1 for what is drawn."""
    schemes = colours(html.asset("report.css"))
    assert len(schemes) == 3
    for scheme in schemes:
        for role, least in {"ink": 4.5, "soft": 4.5, "hot": 4.5, "spark": 3.0}.items():
            for ground in ("paper", "panel"):
                a, b = sorted((luminance(scheme[role]), luminance(scheme[ground])), reverse=True)
                assert (a + 0.05) / (b + 0.05) >= least, (scheme, role, ground)


def test_prose_keeps_numbers_and_units_together() -> None:
    tied = html.tied("rose 18 % in 9.1 GPU-h from step 3 for 4 steps")
    assert tied == "rose 18\u00a0% in\u00a09.1\u00a0GPU\u2011h from step\u00a03 for 4\u00a0steps"
