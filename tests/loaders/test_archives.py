from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from afterrun.loaders.archives import is_archive, unpack


def test_members_are_written_below_the_target_and_nothing_else(tmp_path: Path) -> None:
    archive = tmp_path / "runs.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("a/log.csv", "step,loss\n1,2\n")
        z.writestr("../escape.csv", "x")
        z.writestr("/abs.csv", "x")
        z.writestr("C:\\win.csv", "x")
    target = tmp_path / "out"
    target.mkdir()
    left_out = unpack(archive, target)
    assert [u.path for u in left_out] == [
        "runs.zip/../escape.csv",
        "runs.zip//abs.csv",
        "runs.zip/C:\\win.csv",
    ]
    files = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file())
    assert files == ["out/a/log.csv", "runs.zip"]


def test_links_in_tar_files_are_left_out(tmp_path: Path) -> None:
    archive = tmp_path / "runs.tar.gz"
    with tarfile.open(archive, "w:gz") as t:
        link = tarfile.TarInfo("evil")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        t.addfile(link)
        info = tarfile.TarInfo("a/log.csv")
        info.size = 4
        t.addfile(info, io.BytesIO(b"1,2\n"))
    target = tmp_path / "out"
    target.mkdir()
    assert [(u.path, u.reason) for u in unpack(archive, target)] == [
        ("runs.tar.gz/evil", "not unpacked: a link or device")
    ]
    assert [p.name for p in target.rglob("*")] == ["a", "log.csv"]
    assert is_archive(archive)


def test_b82_a_bomb_is_stopped_on_its_way(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("zeros.csv", b"\0" * (64 * 2**20))
    target = tmp_path / "out"
    target.mkdir()
    (told,) = unpack(archive, target)
    assert told.path == "bomb.zip"
    assert "more than" in told.reason
    assert sum(p.stat().st_size for p in target.rglob("*")) < 32 * 2**20


@pytest.mark.parametrize("name", ["cut.zip", "cut.tar.gz"])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 not really")
    (told,) = unpack(tmp_path / name, tmp_path)
    assert told.path == name
    assert told.reason.startswith("cannot be unpacked")


def test_what_came_before_the_cut_is_kept(tmp_path: Path) -> None:
    archive = tmp_path / "runs.tar"
    with tarfile.open(archive, "w") as t:
        for name in ("a.csv", "b.csv"):
            info = tarfile.TarInfo(name)
            info.size = 4096
            t.addfile(info, io.BytesIO(b"1,2\n" * 1024))
    archive.write_bytes(archive.read_bytes()[: 512 + 4096 + 512 + 1000])
    target = tmp_path / "out"
    target.mkdir()
    (told,) = unpack(archive, target)
    assert "to its end" in told.reason
    assert (target / "a.csv").stat().st_size == 4096


def test_one_compressed_file(tmp_path: Path) -> None:
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(b"step,loss\n1,2\n"))
    target = tmp_path / "out"
    target.mkdir()
    assert unpack(tmp_path / "log.csv.gz", target) == []
    assert (target / "log.csv").read_text() == "step,loss\n1,2\n"
