"""Reports of Nsight Systems: named with what to do, or exported by a tool of that name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import claimed, write
from tests.support.nsys import steady

NEW = b"NVIDIA Tegra Profiler Report 2025@5@1@121-255136380782v0.\n\x0bLocal (CLI)\x12\x04"
OLD = b"NVIDIA Tegra Profiler Report 1.\n\x0bLocal (CLI)"


def source(path: Path) -> dict[str, Any]:
    (run,) = inventory(collect([path]))["runs"]
    (found,) = run["sources"]
    return dict(found)


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program ``nsys`` on the PATH, alone there: what it does in Python, ``target`` and ``report`` known."""
    path = write(
        folder, f"#!{sys.executable}\nimport shutil, sys\n_, verb, *rest = sys.argv\n{script}\n", "bin/nsys"
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent))


def test_without_the_tool_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for data, name, version in (
        (NEW, "my run.nsys-rep", "2025.5.1.121"),
        (OLD, "a.qdrep", "of an old version"),
    ):
        path = write(tmp_path, data, name)
        assert claimed(path) == "nsys-rep"
        found = source(path)
        assert (found["status"], found["rows"]) == ("unreadable", {})
        assert version in found["note"]
        quoted = f"'{name}'" if " " in name else name
        assert f"nsys export --type sqlite {quoted}" in found["note"]


def test_with_the_tool_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = steady(4).write(tmp_path / "made.db")
    script = (
        "assert verb == 'export' and rest[:2] == ['--type', 'sqlite'] and rest[2] == '--output'\n"
        f"assert open(rest[4], 'rb').read(6) == b'NVIDIA'\nshutil.copy({str(made)!r}, rest[3])"
    )
    tool(tmp_path, monkeypatch, script)
    path = write(tmp_path, NEW, "runs/a.nsys-rep")
    (run,) = inventory(collect([path]))["runs"]
    assert run["devices"][0]["kernels"] == 4
    assert "exported with nsys" in run["sources"][0]["note"]
    assert [p.name for p in path.parent.iterdir()] == ["a.nsys-rep"]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("sys.exit('cannot open /home/ann/x.nsys-rep')", "failed: cannot open ~/x.nsys-rep"),
        ("sys.exit(3)", "exit status 3"),
        ("pass", "exit status 0"),
        ("open(rest[3], 'w').write('no database')", "not a database"),
    ],
)
def test_a_tool_that_fails_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    tool(tmp_path, monkeypatch, script)
    found = source(write(tmp_path, NEW, "runs/a.nsys-rep"))
    assert found["status"] == "unreadable"
    assert told in found["note"]


def test_an_export_beside_it_is_read_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, "raise SystemExit('not to be called')")
    folder = tmp_path / "runs"
    write(folder, NEW, "a.nsys-rep")
    steady(4).write(folder / "a.sqlite")
    (run,) = inventory(collect([folder]))["runs"]
    assert [(s["path"], s["status"]) for s in run["sources"]] == [
        ("a.nsys-rep", "skipped"),
        ("a.sqlite", "read"),
    ]
    assert run["devices"][0]["kernels"] == 4
