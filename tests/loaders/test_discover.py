from __future__ import annotations

import os
from pathlib import Path

import pytest

from afterrun.loaders.discover import discover, what_it_is


def reasons(root: Path) -> dict[str, str]:
    return {f.source.name: f.reason for f in discover(root) if f.loader is None}


def test_b82_links_out_of_the_root_and_loops_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.csv").write_text("step,loss\n1,2\n2,1\n")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "log.csv").write_text("step,loss\n1,2\n2,1\n")
    (root / "a" / "loop").symlink_to(root)
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "nowhere").symlink_to(tmp_path / "missing")
    names = [f.source.name for f in discover(root)]
    assert sorted(names) == ["a/log.csv", "nowhere", "out"]
    assert "out of the given folder" in reasons(root)["out"]
    assert reasons(root)["nowhere"] == "a link to nothing"


def test_a_linked_file_inside_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n1,2\n2,1\n")
    (tmp_path / "latest.csv").symlink_to(tmp_path / "log.csv")
    assert reasons(tmp_path)["latest.csv"] == "a link to log.csv, which is read there"


def test_every_file_has_a_loader_or_a_reason(tmp_path: Path) -> None:
    (tmp_path / "core.1").write_bytes(b"\x7fELF....")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "weights.pt").write_bytes(b"PK\x03\x04rest")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "log.csv").write_text("step,loss\n1,2\n")
    assert reasons(tmp_path) == {
        "core.1": "an ELF binary or core file",
        "empty.txt": "empty file",
        "weights.pt": "a zip archive (PyTorch checkpoints are such archives); name it as PATH to look inside",
        ".git": "not walked: version control",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n1,2\n")
    (tmp_path / "log.csv").chmod(0)
    assert "cannot be opened" in reasons(tmp_path)["log.csv"]


def test_fifos_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert reasons(tmp_path) == {"pipe.csv": "neither a file nor a folder"}


@pytest.mark.parametrize(
    ("name", "head", "word"),
    [
        ("a.csv", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        ("a.pkl", b"\x80\x04\x95", "pickle"),
        ("a.py", b"import os\n", "source"),
        ("a.json", b'{"x": 1}', "JSON"),
        ("a.bin", b"\x01\x00\x02", "binary"),
        ("a.txt", b"hello\n", "text"),
    ],
)
def test_what_it_is(name: str, head: bytes, word: str) -> None:
    assert word in what_it_is(Path(name), head)


def test_a_report_below_its_own_input_is_not_read_as_runs(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n1,2\n2,1\n")
    report = tmp_path / "postmortem"
    report.mkdir()
    for name in ("findings.json", "manifest.json", "index.html"):
        (report / name).write_text("{}")
    (report / "summary.csv").write_text("step,loss\n1,2\n2,1\n")
    assert [f.source.name for f in discover(tmp_path) if f.loader] == ["log.csv"]
    assert "a report of afterrun" in reasons(tmp_path)["postmortem"]
    assert "summary.csv" in {f.source.name for f in discover(report)}, "named itself, it is walked"
