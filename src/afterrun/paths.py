"""PATH arguments: files, folders, globs, archives, ``-`` for a list on standard input."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from afterrun.loaders.archives import is_archive, is_single, unpack
from afterrun.loaders.collection import Unclaimed
from afterrun.loaders.errors import NothingToAnalyseError, UsageError
from afterrun.loaders.registry import HEAD_BYTES, claim


@dataclass(frozen=True, slots=True)
class Opened:
    """Files and folders to read, and the parts of archives that are not there, each with its reason."""

    paths: tuple[Path, ...]
    left_out: tuple[Unclaimed, ...] = ()


@contextmanager
def opened(arguments: Iterable[str]) -> Iterator[Opened]:
    """The files and folders that the arguments mean; archives are unpacked for as long as it lasts.

    Raises ``NothingToAnalyseError`` for a path that does not exist and ``UsageError`` for a URL.
    """
    paths = _distinct([p for argument in arguments for p in _expand(argument)])
    if not paths:
        raise UsageError("no path given")
    with TemporaryDirectory(prefix="afterrun-") as scratch:
        ready = [_ready(p, Path(scratch), i) for i, p in enumerate(paths)]
        left_out = tuple(u for _, more in ready for u in more)
        yield Opened(tuple(p for p, _ in ready if p is not None), left_out)


def _distinct(paths: list[Path]) -> list[Path]:
    """Each place once: a path given twice, or below another given one, is read there."""
    real = {path: path.resolve() for path in paths}
    folders = {r for r in real.values() if r.is_dir()}
    seen: set[Path] = set()
    kept = []
    for path in paths:
        if real[path] not in seen and not folders & set(real[path].parents):
            seen.add(real[path])
            kept.append(path)
    return kept


def _expand(argument: str) -> list[Path]:
    if argument == "-":
        if sys.stdin is None:
            raise UsageError("'-' reads paths from standard input, which is closed")
        return [p for line in sys.stdin if line.strip() for p in _expand(line.rstrip("\r\n"))]
    if "://" in argument and not Path(argument).exists():
        raise UsageError(f"{argument}: remote paths are not supported yet; copy the logs here first")
    try:
        if Path(argument).exists():
            return [Path(argument)]
    except OSError as error:
        raise NothingToAnalyseError(f"{argument}: cannot be opened: {error.strerror}") from error
    matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207  # the argument may be absolute
    if not matches:
        raise NothingToAnalyseError(f"{argument}: no such file or folder")
    return [Path(m) for m in matches]


def _ready(path: Path, scratch: Path, number: int) -> tuple[Path | None, list[Unclaimed]]:
    """(what to read, what was left out); nothing to read where an archive gave no file."""
    if not is_archive(path) or (is_single(path) and _is_read_packed(path)):
        return path, []
    target = scratch / str(number)
    if not is_single(path):
        target /= _stem(path.name)
    target.mkdir(parents=True)
    left_out = unpack(path, target)
    files = sorted(p for p in target.rglob("*") if p.is_file())
    if not files:
        return None, left_out
    return files[0] if is_single(path) else target, left_out


def _is_read_packed(path: Path) -> bool:
    """Whether a loader takes the compressed file as it is, so that nothing has to be written to disk."""
    try:
        with path.open("rb") as file:
            return claim(path, file.read(HEAD_BYTES)) is not None
    except OSError:
        return False


def _stem(name: str) -> str:
    for suffix in (".gz", ".zip", ".tar", ".tgz"):
        name = name.removesuffix(suffix)
    return name or "archive"
