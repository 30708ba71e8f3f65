from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from afterrun.loaders.archives import is_archive, unpack
from afterrun.loaders.errors import LimitError, UnreadableError


def test_members_are_written_below_the_target_and_nothing_else(tmp_path: Path) -> None:
    archive = tmp_path / "runs.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("a/log.csv", "step,loss\n1,2\n")
        z.writestr("../escape.csv", "x")
        z.writestr("/abs.csv", "x")
        z.writestr("C:\\win.csv", "x")
    target = tmp_path / "out"
    target.mkdir()
    unpack(archive, target)
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
    unpack(archive, target)
    assert [p.name for p in target.rglob("*")] == ["a", "log.csv"]
    assert is_archive(archive)


def test_a_bomb_is_stopped_on_its_way(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("zeros.csv", b"\0" * (64 * 2**20))
    target = tmp_path / "out"
    target.mkdir()
    with pytest.raises(LimitError, match="more than"):
        unpack(archive, target)
    assert sum(p.stat().st_size for p in target.rglob("*")) < 32 * 2**20


@pytest.mark.parametrize("name", ["cut.zip", "cut.tar.gz"])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(UnreadableError, match=name):
        unpack(tmp_path / name, tmp_path)
