"""House rules that no type checker knows: one file for one thing, names unique, start-up light, files clean."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from afterrun import __version__
from afterrun.analyzer.registry import pass_types
from afterrun.loaders.registry import loaders
from afterrun.plots.registry import figures
from tests.analyzer.test_pass_meta import CODES

ROOT = Path(__file__).parent.parent
ROOMS = {"analyzer": "analyzer", "loaders": "loaders", "plots": "plots", "src/afterrun": ""}
"""Folder and place below ``afterrun/``."""
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 80
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
HEAVY = {
    "jinja2",
    "matplotlib",
    "msgspec",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "seaborn",
    "sklearn",
}
FAMILIES = {"curves", "text", "traces", "counters"}
MACHINE = re.compile(
    rb"(?<![\w.])/(?:work|root)/\w|https?://[\w.-]*(?:pypi|pythonhosted)[\w.-]*/\S|--(?:extra-)?index-url"
)
"""Places on a machine that builds this, and addresses of package indexes."""
HOME = re.compile(rb"(?<![\w.])/(?:home|Users)/\w")
"""Somebody's folder; tests make up such names as input."""


def package_files(folder: str) -> list[Path]:
    """Files of one room; the links in ``src/afterrun`` are other rooms."""
    links = [ROOT / "src/afterrun" / room for room in ROOMS]
    found = [p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return sorted(p for p in found if not any(p.is_relative_to(link) for link in links))


MODULES = [p for folder in ROOMS for p in package_files(folder) if p.suffix == ".py"]
each_module = pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())


def repository_files() -> list[Path]:
    """Files that are committed or could be, as git sees them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [p for p in found if p.is_file() and not p.is_symlink()]


# -- modules -----------------------------------------------------------------------------------------


@each_module
def test_module_has_a_docstring_and_is_short(path: Path) -> None:
    text = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= MAX_MODULE_LINES


@each_module
def test_functions_are_short(path: Path) -> None:
    functions = (
        n
        for n in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    lines = {n.name: (n.end_lineno or n.lineno) - n.lineno + 1 for n in functions}
    assert {name: count for name, count in lines.items() if count > MAX_FUNCTION_LINES} == {}


@each_module
def test_every_exemption_carries_its_reason(path: Path) -> None:
    bare = re.compile(r"#\s*(noqa|type:\s*ignore)[^#]*$")
    assert [line.strip() for line in path.read_text("utf-8").splitlines() if bare.search(line)] == []


# -- registries --------------------------------------------------------------------------------------


def test_names_are_unique_and_kebab_case() -> None:
    families = {
        "formats": [x.format for x in loaders()],
        "codes": list(pass_types()),
        "figures": list(figures()),
    }
    for family, names in families.items():
        assert names, family
        assert len(set(names)) == len(names), family
        assert [n for n in names if not KEBAB.fullmatch(n)] == [], family


def test_loaders_name_their_family() -> None:
    assert {x.family for x in loaders()} <= FAMILIES


def test_figures_illustrate_codes_there_may_be() -> None:
    vocabulary = {code for codes in CODES.values() for code in codes.split()}
    assert {code for figure in figures().values() for code in figure.codes} - vocabulary == set()


# -- start-up ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_start_imports_nothing_heavy(flag: str) -> None:
    script = (
        "import sys; from afterrun.__main__ import main; sys.argv = ['afterrun', sys.argv[1]]\n"
        "try: main()\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, flag], capture_output=True, text=True, check=True)
    assert ("Usage:" in done.stdout) if flag == "--help" else (__version__ in done.stdout)
    assert "click" in done.stderr.split()
    assert HEAVY & set(done.stderr.split()) == set()


def test_importing_afterrun_imports_nothing_heavy() -> None:
    script = "import sys, afterrun; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


# -- the repository ----------------------------------------------------------------------------------


def test_no_file_names_a_machine_or_an_index() -> None:
    found = {p.relative_to(ROOT).as_posix(): MACHINE.findall(p.read_bytes()) for p in repository_files()}
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_no_file_names_a_home() -> None:
    found = {p.relative_to(ROOT).as_posix(): HOME.findall(p.read_bytes()) for p in repository_files()}
    assert {name: hits for name, hits in found.items() if hits and not name.startswith("tests/")} == {}


def test_machine_patterns_find_what_they_should() -> None:
    parts = [b" /wo", b"rk/main", b" https://py", b"pi.org/simple", b" --index", b"-url"]
    assert len(MACHINE.findall(b"".join(parts))) == 3
    assert len(HOME.findall(b"in /ho" + b"me/ann/runs")) == 1


def test_constraints_pin_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = map(Requirement, [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]])
    lines = (ROOT / "constraints.txt").read_text("utf-8").split()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.+]*", line)] == []
    pinned = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    for requirement in wanted:
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement
    assert not pinned.keys() & {"afterrun", "pip"}


def test_make_targets_are_one_word_with_a_help_text() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    helped = re.findall(r"^([a-z]+):.*## \S", text, re.MULTILINE)
    assert sorted(helped) == sorted(phony[1].split())


def wheel_names(project: Path, out: Path) -> list[str]:
    """Files of the wheel built from a project folder, without a network."""
    from hatchling.builders.wheel import WheelBuilder

    (built,) = WheelBuilder(str(project)).build(directory=str(out), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        return wheel.namelist()


@pytest.mark.slow
def test_wheel_holds_the_rooms_and_nothing_else(tmp_path: Path) -> None:
    expected = {
        "/".join(part for part in ("afterrun", place, p.relative_to(ROOT / folder).as_posix()) if part)
        for folder, place in ROOMS.items()
        for p in package_files(folder)
    }
    names = wheel_names(ROOT, tmp_path)
    assert len(names) == len(set(names))
    assert {n for n in names if ".dist-info/" not in n} == expected
    assert {"afterrun/py.typed", "afterrun/plots/report/templates/page.html.j2"} <= expected
    assert {".css", ".js"} <= {Path(n).suffix for n in expected}


@pytest.mark.slow
def test_sdist_gives_the_same_wheel(tmp_path: Path) -> None:
    from hatchling.builders.sdist import SdistBuilder

    (built,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(built) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("afterrun-*/")
    assert sorted(wheel_names(unpacked, tmp_path)) == sorted(wheel_names(ROOT, tmp_path))
    assert (unpacked / "tests" / "golden").is_dir()
