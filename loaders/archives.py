"""Archives given as PATH: members are written below one folder, within limits, and nothing else is."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from afterrun.loaders.errors import LimitError, UnreadableError
from afterrun.loaders.limits import MAX_ARCHIVE_MEMBERS, check_inflation

_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_BLOCK_BYTES = 2**20


def is_archive(path: Path) -> bool:
    """Whether a file given as PATH is an archive by its name."""
    return path.is_file() and path.name.lower().endswith(_SUFFIXES)


def unpack(path: Path, target: Path) -> None:
    """Write the regular files of an archive below ``target``.

    Absolute names, ``..`` and links are left out. Raises ``LimitError`` where members, total size or ratio
    go over their limits and ``UnreadableError`` for a damaged archive.
    """
    packed_bytes = path.stat().st_size
    written = 0
    try:
        for number, (name, stream) in enumerate(_members(path)):
            if number >= MAX_ARCHIVE_MEMBERS:
                raise LimitError(f"{path.name}: more than {MAX_ARCHIVE_MEMBERS} members; unpack it yourself")
            place = _safe(target, name)
            if place is None:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as out:
                while block := stream.read(_BLOCK_BYTES):
                    written += len(block)
                    check_inflation(path.name, packed_bytes, written)
                    out.write(block)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError) as error:
        raise UnreadableError(f"{path.name}: cannot be unpacked: {error}") from error


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as stream:
                        yield info.filename, stream
        return
    with tarfile.open(path, "r|*") as tar:
        for member in tar:
            if member.isreg():
                content = tar.extractfile(member)
                if content is not None:
                    yield member.name, content


def _safe(target: Path, name: str) -> Path | None:
    """Where a member may be written; None where its name would leave the folder."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or any(p in ("..", "/") or ":" in p[:2] for p in parts) or "\x00" in name:
        return None
    return target.joinpath(*parts)
