"""Archives given as PATH: members are written below one folder, within limits, and nothing else is."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from afterrun.loaders.collection import Unclaimed
from afterrun.loaders.discover import CANNOT, readable
from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import MAX_ARCHIVE_MEMBERS, check_inflation

_TARS = (".tar", ".tar.gz", ".tgz")
_BLOCK_BYTES = 2**20

_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError, ValueError)
"""What the readers of archives raise on damaged, encrypted and unsupported ones."""


def is_archive(path: Path) -> bool:
    """Whether a file given as PATH is an archive or one compressed file, by its name."""
    return path.is_file() and path.name.lower().endswith((".zip", ".gz", *_TARS))


def is_single(path: Path) -> bool:
    """Whether an archive is one compressed file (``log.csv.gz``)."""
    name = path.name.lower()
    return name.endswith(".gz") and not name.endswith(_TARS)


def unpack(path: Path, target: Path) -> list[Unclaimed]:
    """Write the regular files of an archive below ``target``; return what was left out, with the reason.

    Absolute names, ``..``, links and devices are left out. A damaged archive, and one that goes over the
    limits of members, size or ratio, ends where it breaks: what came before is kept.
    """
    own = readable(path.name)
    left_out: list[Unclaimed] = []
    packed_bytes = path.stat().st_size
    written = 0
    try:
        for number, (name, stream) in enumerate(_members(path)):
            if number >= MAX_ARCHIVE_MEMBERS:
                raise LimitError(f"more than {MAX_ARCHIVE_MEMBERS} members; unpack it yourself")
            place = _safe(target, name)
            if place is None or stream is None:
                reason = (
                    "not unpacked: a link or device" if stream is None else "not unpacked: an unsafe name"
                )
                left_out.append(Unclaimed(f"{own}/{readable(name)}", reason))
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as out:
                while block := stream.read(_BLOCK_BYTES):
                    written += len(block)
                    check_inflation(own, packed_bytes, written)
                    out.write(block)
    except LimitError as error:
        left_out.append(Unclaimed(own, f"{CANNOT}unpacked to its end: {error}"))
    except _DAMAGED as error:
        left_out.append(Unclaimed(own, f"{CANNOT}unpacked{' to its end' if written else ''}: {_line(error)}"))
    return left_out


def _line(error: BaseException) -> str:
    """What the reader says, without places of this machine."""
    told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return readable(told) or type(error).__name__


def _members(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """(name, content) of every member that is no folder; None for links and devices."""
    if is_single(path):
        with gzip.open(path) as stream:
            yield path.name[: -len(".gz")] or "log", cast("IO[bytes]", stream)
    elif path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as stream:
                        yield info.filename, stream
    else:
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                if not member.isdir():
                    yield member.name, tar.extractfile(member) if member.isreg() else None


def _safe(target: Path, name: str) -> Path | None:
    """Where a member may be written; None where its name would leave the folder."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or any(p in ("..", "/") or ":" in p[:2] for p in parts) or "\x00" in name:
        return None
    return target.joinpath(*parts)
