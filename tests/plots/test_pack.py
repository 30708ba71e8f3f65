"""The pack on disk: what is chosen, what is written, and that the same input gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from afterrun.plots.pack import choose, draw_pack, write_manifest
from afterrun.plots.registry import figures
from afterrun.plots.theme import SCREEN, paper
from afterrun.plots.write import csv_bytes, render, write_atomic
from tests.plots.test_filenames import HOSTILE
from tests.support.figures import finding, loss_view
from tests.support.tables import make_view

VIEWS = {name: loss_view(80, run=name) for name in ("a", "b", "c")}


def tasks(findings: list, limit: int | None = 24) -> list[tuple[str, str]]:  # type: ignore[type-arg]
    return [(run, figure.name) for run, figure in choose(VIEWS, findings, limit)]


# what is chosen


def test_without_alarms_each_run_gets_its_overview() -> None:
    healthy = [
        finding("overfit", 5, run="a", status="refuted"),
        finding("still-improving", 5, run="b", severity="info"),
    ]
    assert tasks(healthy) == [("a", "curves"), ("b", "curves"), ("c", "curves")]


def test_runs_with_alarms_come_first_the_worst_first_each_once_before_any_twice() -> None:
    found = [
        finding("noisy", 5, run="a"),
        finding("overfit", 5, run="b", wasted_gpu_s=100.0),
        finding("divergence", 5, run="c", severity="critical"),
    ]
    assert tasks(found) == [("c", "curves"), ("b", "gap"), ("a", "noise"), ("b", "curves"), ("a", "curves")]


def test_the_cost_decides_among_equals() -> None:
    found = [
        finding("overfit", 5, run="a", wasted_gpu_s=1.0),
        finding("overfit", 5, run="b", wasted_gpu_s=9.0),
    ]
    assert [run for run, _ in tasks(found)][:2] == ["b", "a"]


def test_all_and_none() -> None:
    found = [finding("overfit", 5, run="b")]
    everything = tasks(found, None)
    assert everything[0] == ("b", "gap")
    assert len(everything) == len(set(everything)) == 3 * len(figures())
    assert tasks(found, 0) == []


def test_a_finding_of_a_run_that_is_not_here_changes_nothing() -> None:
    assert tasks([finding("overfit", 5, run="elsewhere")]) == [
        ("a", "curves"),
        ("b", "curves"),
        ("c", "curves"),
    ]


# what is written


def test_files_manifest_and_data(tmp_path: Path) -> None:
    made = draw_pack(VIEWS, [finding("overfit", 40, 80, run="b")], tmp_path, formats=("png", "svg", "pdf"))
    assert [(d.run, d.name) for d in made.drawn] == [("b", "gap"), ("b", "curves")]
    assert made.faults == ()
    first = made.drawn[0]
    assert dict(first.files) == {k: f"figures/b/gap.{k}" for k in ("png", "svg", "pdf", "csv")}
    assert (tmp_path / first.files["png"]).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (tmp_path / first.files["pdf"]).read_bytes().startswith(b"%PDF-")
    assert ET.fromstring((tmp_path / first.files["svg"]).read_text()).tag.endswith("svg")
    data = pl.read_csv(tmp_path / first.files["csv"])
    assert data.columns == ["panel", "layer", "name", "x", "x_end", "y", "low", "high"]
    document = json.loads((tmp_path / "manifest.json").read_text())
    assert document["version"] == 1
    assert document["generated"] == {}
    assert [f["name"] for f in document["figures"]] == ["gap", "curves"]
    entry = document["figures"][0]
    assert entry["codes"] == ["overfit"]
    assert entry["alt"]
    for file in entry["files"].values():
        assert file["sha256"] == hashlib.sha256((tmp_path / file["path"]).read_bytes()).hexdigest()
    assert not list(tmp_path.rglob("*.part"))


def test_the_manifest_says_how_it_was_made_in_one_place_only(tmp_path: Path) -> None:
    made = draw_pack(VIEWS, [], tmp_path, formats=("png",), limit=1)
    before = json.loads((tmp_path / "manifest.json").read_text())
    write_manifest(tmp_path, made.drawn, {"command": "afterrun report", "duration_s": 1.5})
    after = json.loads((tmp_path / "manifest.json").read_text())
    assert after.pop("generated") == {"command": "afterrun report", "duration_s": 1.5}
    before.pop("generated")
    assert after == before


def test_the_limit_counts_figures_and_says_what_it_left_out(tmp_path: Path) -> None:
    made = draw_pack(VIEWS, [], tmp_path, formats=("png",), limit=2)
    assert [d.run for d in made.drawn] == ["a", "b"]
    assert made.left_out == 1
    assert draw_pack(VIEWS, [], tmp_path / "none", limit=0).drawn == ()


def test_a_figure_without_data_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    views = {"empty": make_view({"other": ([1, 2], [1.0, 2.0])}, run="empty"), **VIEWS}
    made = draw_pack(views, [], tmp_path, formats=("png",), limit=1)
    assert [d.run for d in made.drawn] == ["a"]


def test_a_figure_that_breaks_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gap = type(figures()["gap"])

    def broken(self: object, prepared: object, theme: object) -> None:
        raise RuntimeError("no ink\x1b[31m")

    monkeypatch.setattr(gap, "draw", broken)
    made = draw_pack(VIEWS, [finding("overfit", 40, 80, run="b")], tmp_path, formats=("png",))
    assert [d.name for d in made.drawn] == ["curves"]
    assert made.faults == ("figure gap of run b: RuntimeError: no ink [31m",)
    assert not (tmp_path / "figures/b/gap.png").exists()


def test_an_unknown_format_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="png, svg, pdf"):
        draw_pack(VIEWS, [], tmp_path, formats=("gif",))
    assert not list(tmp_path.iterdir())


def test_hostile_run_names_stay_inside_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    views = {name: make_view({"loss": ([1, 2, 3], [3.0, 2.0, 1.0])}, run=name) for name in HOSTILE}
    made = draw_pack(views, [], out, formats=("svg",), limit=None)
    assert made.faults == ()
    assert {d.run for d in made.drawn} == set(HOSTILE)
    assert {p.name for p in tmp_path.iterdir()} == {"out"}
    folders = [p.name for p in (out / "figures").iterdir()]
    assert len(folders) == len(HOSTILE)
    assert all(len(f.encode()) <= 120 for f in folders)
    for drawn in made.drawn:
        ET.fromstring((out / drawn.files["svg"]).read_text())


# the same input, the same bytes


@pytest.mark.parametrize("theme", [SCREEN, paper(1)], ids=lambda t: t.name)
@pytest.mark.parametrize("fmt", ["png", "svg", "pdf"])
def test_two_draws_give_the_same_bytes(fmt: str, theme: object) -> None:
    figure = figures()["curves"]
    made = figure.prepare(loss_view(), [finding("spike", 40, spikes=[40, 90])])
    one, two = (render(figure.draw(made, theme), fmt, theme) for _ in range(2))  # type: ignore[arg-type]
    assert one == two


def test_other_processes_locales_and_zones_give_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.support.figures import finding, loss_view; "
        "from afterrun.plots.pack import draw_pack; "
        "draw_pack({'r': loss_view(run='r')}, [finding('overfit', 200, 400, run='r')], Path(sys.argv[1]), "
        "formats=('png', 'svg', 'pdf'))"
    )
    made = []
    for seed, zone, locale in (("0", "UTC", "C"), ("7", "Asia/Tokyo", "C.UTF-8")):
        out = tmp_path / seed
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale}
        subprocess.run([sys.executable, "-c", code, str(out)], env=env, check=True)
        made.append({p.relative_to(out): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()})
    assert made[0] == made[1]
    assert len(made[0]) == 9


def test_no_file_says_when_or_with_what_it_was_made() -> None:
    figure = figures()["curves"]
    made = figure.prepare(loss_view(), ())
    for fmt in ("png", "svg", "pdf"):
        data = render(figure.draw(made, SCREEN), fmt, SCREEN)  # type: ignore[arg-type]
        assert b"Matplotlib v" not in data
        assert b"CreationDate" not in data
        assert b"<dc:date>" not in data


# data and files


def test_text_that_a_spreadsheet_would_run_is_quoted_and_numbers_are_not() -> None:
    cells = ['=HYPERLINK("http://x","y")', "+1", "-1", "@x", "\tx", "\rx", "loss", "a=b", None]
    frame = pl.DataFrame({"name": cells, "y": [-1.5, 1.0, -2.0, None, float("nan"), 0.0, 3.0, 4.0, 5.0]})
    read = pl.read_csv(io.BytesIO(csv_bytes(frame)), schema_overrides={"y": pl.Float64})
    assert read["name"].to_list() == ["'" + c if c and i < 6 else c for i, c in enumerate(cells)]
    assert read["y"].to_list()[:4] == [-1.5, 1.0, -2.0, None]
    assert csv_bytes(frame).decode().splitlines()[0] == "name,y"


def test_a_write_that_fails_leaves_the_old_file_and_no_scraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "figure.png"
    write_atomic(target, b"old")

    def refuse(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["figure.png"]
