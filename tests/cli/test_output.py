"""The folder of a report: what an interrupt leaves and what a second report takes away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from afterrun.api import analyze
from afterrun.cli.output import listed_figures, write
from afterrun.plots import pack
from afterrun.settings import Settings


def logs(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    rows = "".join(f"{i},{1 / (i + 1):.4f}\n" for i in range(40))
    (tmp_path / "in" / "log.csv").write_text("step,loss\n" + rows)
    return tmp_path / "in"


def test_an_interrupt_while_drawing_keeps_the_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    analysis = analyze(logs(tmp_path)).analysis
    monkeypatch.setattr(pack, "draw_pack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(analysis, Settings(), tmp_path / "out", 0.0)
    assert json.loads((tmp_path / "out" / "findings.json").read_bytes())
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["figures"] == []
    assert (tmp_path / "out" / "index.html").is_file()


def test_figures_not_drawn_again_are_removed_and_nothing_else(tmp_path: Path) -> None:
    analysis = analyze(logs(tmp_path)).analysis
    out = tmp_path / "out"
    write(analysis, Settings(formats=("png",)), out, 0.0)
    first = listed_figures(out)
    assert any(p.endswith(".png") for p in first)
    mine = out / "figures" / "mine.png"
    mine.write_bytes(b"mine")
    write(analysis, Settings(figures="none"), out, 0.0)
    assert [p for p in (out / "figures").rglob("*") if p.is_file()] == [mine]


@pytest.mark.parametrize(
    "path", ["../precious", "/etc/hostname", "figures/../index.html", "data/metrics.parquet", "figures", 7]
)
def test_a_manifest_names_nothing_outside_its_figures(tmp_path: Path, path: object) -> None:
    document = {"figures": [{"files": {"png": {"path": path}}}]}
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    assert listed_figures(tmp_path) == set()


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "away")
    document = {"figures": [{"files": {"png": {"path": "figures/a.png"}}}]}
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(document))
    assert listed_figures(tmp_path / "out") == set()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"figures": 3}', '{"figures": [{"files": [1]}]}', "\x00"])
def test_a_broken_manifest_names_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert listed_figures(tmp_path) == set()
