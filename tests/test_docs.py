"""The documentation is true: generated parts are as generated, examples run, commands and settings exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import polars as pl
import pytest
from click.testing import CliRunner

import afterrun.analyzer.passes
import afterrun.loaders.formats.curves
import afterrun.plots.figures
from afterrun.analyzer import registry as passes
from afterrun.cli import COMMANDS, main
from afterrun.loaders import registry as formats
from afterrun.loaders.collect import collect
from afterrun.plots import registry as figures
from afterrun.plots.theme import Theme
from afterrun.settings import Settings
from docs import generate
from tests.support.tables import make_view

ROOT = Path(__file__).parent.parent
PROSE = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BY_HAND = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FOLDERS: dict[str, ModuleType] = {
    "loaders/formats/curves": afterrun.loaders.formats.curves,
    "analyzer/passes": afterrun.analyzer.passes,
    "plots/figures": afterrun.plots.figures,
}


# -- generated parts -----------------------------------------------------------------------------------


def test_pages_of_findings_are_as_generated() -> None:
    wanted = generate.pages()
    assert set(generate.PAGES.glob("*.md")) == set(wanted)
    assert [p.name for p, text in wanted.items() if p.read_text("utf-8") != text] == []


@pytest.mark.parametrize("path", generate.TABLES, ids=lambda p: p.name)
def test_tables_are_as_generated(path: Path) -> None:
    name, make = generate.TABLES[path]
    text = path.read_text("utf-8")
    assert text == generate.with_table(text, name, make())


def test_explain_prints_the_page() -> None:
    for code in passes.pass_types():
        done = CliRunner().invoke(main, ["explain", code, "--markdown"])
        assert done.output.rstrip("\n") == (generate.PAGES / f"{code}.md").read_text("utf-8").rstrip("\n"), (
            code
        )


def test_table_needs_its_place() -> None:
    assert (
        generate.with_table("a\n<!-- t -->\nold\n<!-- /t -->\nb", "t", "new")
        == "a\n<!-- t -->\nnew\n<!-- /t -->\nb"
    )
    with pytest.raises(ValueError, match="no place for the table 't'"):
        generate.with_table("nothing", "t", "new")


# -- commands and settings -----------------------------------------------------------------------------


def written() -> str:
    """What is written by hand; the tables of formats name options of other tools."""
    text = "\n".join(p.read_text("utf-8") for p in BY_HAND)
    return re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)


def commands() -> dict[str, click.Command]:
    found = {name: main.get_command(click.Context(main), name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def options() -> set[str]:
    own = {o for command in commands().values() for p in command.params for o in (*p.opts, *p.secondary_opts)}
    return {o for o in own if o.startswith("-")} | {"--help", "--version"}


def test_every_command_is_documented_and_has_its_help() -> None:
    assert list(commands()) == list(COMMANDS)
    assert [name for name in COMMANDS if not re.search(rf"\bafterrun {name}\b", written())] == []
    assert [n for n, c in commands().items() if not (c.help or "").startswith(COMMANDS[n].rstrip("."))] == []


def test_every_option_is_documented() -> None:
    assert [
        o for o in sorted(options()) if not re.search(rf"(?<![\w-]){re.escape(o)}(?![\w-])", written())
    ] == []


def test_every_documented_option_and_command_exists() -> None:
    text = written()
    assert set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text)) - options() == set()
    assert set(re.findall(r"^    afterrun ([a-z]+)|`afterrun ([a-z]+)", text, re.MULTILINE)) <= {
        pair for name in COMMANDS for pair in ((name, ""), ("", name))
    }


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    settings = set(Settings.__struct_fields__)
    assert settings - set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)) == set()
    by_environment = {f"AFTERRUN_{s.upper()}" for s in settings - {"metrics", "passes"}}
    assert set(re.findall(r"AFTERRUN_[A-Z_]+", text)) == by_environment


def test_links_lead_somewhere() -> None:
    broken = []
    for path in PROSE:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
            place = path.parent / target.partition("#")[0]
            if "://" not in target and not place.exists():
                broken.append((path.name, target))
    assert broken == []


def test_pages_named_in_the_code_exist() -> None:
    named = {
        page
        for room in ("analyzer", "loaders", "plots", "src")
        for path in (ROOT / room).rglob("*.py")
        for page in re.findall(r"docs/[\w/.-]+\.md", path.read_text("utf-8"))
    }
    assert [page for page in sorted(named) if not (ROOT / page).exists()] == []


def test_readme_names_the_make_targets_that_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = {
        t
        for p in (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
        for t in re.findall(r"\bmake ([a-z]+)", p.read_text("utf-8"))
    }
    assert {"demo", "test"} <= named
    assert named - set(targets) == set()


# -- examples ------------------------------------------------------------------------------------------


def examples() -> dict[str, str]:
    """Path and code of each example in CONTRIBUTING.md."""
    blocks = re.findall(
        r"^```python\n# (\S+\.py)\n(.*?)^```$", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M | re.S
    )
    return dict(blocks)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The examples as if they stood in their folders; the registries forget them afterwards."""
    caches = (formats.loaders, passes.pass_types, figures.figures)
    for name, code in examples().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, "utf-8")
        package: Any = FOLDERS[path.relative_to(tmp_path).parent.as_posix()]
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(path.parent)])
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_there_is_an_example_of_each() -> None:
    assert {str(Path(name).parent) for name in examples()} == set(FOLDERS)


@pytest.mark.usefixtures("installed")
def test_example_format_reads_good_lines_and_counts_bad_ones(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "train.out"
    log.parent.mkdir()
    log.write_text(
        "step 10 | loss 0.5 | lr 0.1\nstep 20 | loss oops\nstep 30 | loss 0.25 | lr 0.1\n", "utf-8"
    )
    tables = collect([log.parent]).tables
    assert tables.sources.select("format", "rows", "damaged").rows() == [("bar-lines", 4, 1)]
    assert tables.metrics.select("tag", "metric", "step", "value").rows() == [
        ("loss", "loss", 10, 0.5),
        ("lr", "lr", 10, 0.1),
        ("loss", "loss", 30, 0.25),
        ("lr", "lr", 30, 0.1),
    ]


@pytest.mark.usefixtures("installed")
def test_example_pass_counts_evaluations() -> None:
    (check,) = [p for p in passes.build({"few-evals": {"min_evals": 3}}) if p.code == "few-evals"]
    (found,) = check.run(make_view({"val/loss": ([10, 20], [0.5, 0.4])}))
    (healthy,) = check.run(make_view({"val/loss": ([10, 20, 30], [0.5, 0.4, 0.3])}))
    assert (found.status, found.values, found.evidence[0].step) == ("confirmed", {"evals": 2}, 20)
    assert (healthy.status, healthy.values) == ("refuted", {"evals": 3})


@pytest.mark.usefixtures("installed")
def test_example_figure_draws_evaluations() -> None:
    figure = figures.figures()["evals"]
    prepared = figure.prepare(make_view({"val/loss": ([10, 20], [0.5, 0.4])}), [])
    assert isinstance(prepared, figures.Prepared)
    assert prepared.frame.select("layer", "x", "y").rows() == [("line", 10.0, 0.5), ("line", 20.0, 0.4)]
    assert figure.draw(prepared, Theme()).axes
    assert isinstance(figure.prepare(make_view({"train/loss": ([1], [2.0])}), []), figures.Skip)


@pytest.mark.slow
def test_example_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(code, names)  # it is our own text
    result = names["result"]
    assert sorted(result.runs["run"].cast(pl.String)) == sorted(result.findings["run"].unique())
    assert len(result.runs) == 7
    assert len(result.figures) > 7
