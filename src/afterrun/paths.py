"""PATH arguments: files, folders, globs, archives, ``-`` for a list on standard input."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from afterrun.loaders.archives import is_archive, unpack
from afterrun.loaders.errors import NothingToAnalyseError, UsageError


@contextmanager
def opened(arguments: Iterable[str]) -> Iterator[list[Path]]:
    """The files and folders that the arguments mean; archives are unpacked for as long as it lasts.

    Raises ``NothingToAnalyseError`` for a path that does not exist and ``UsageError`` for a URL.
    """
    paths = _distinct([p for argument in arguments for p in _expand(argument)])
    if not paths:
        raise UsageError("no path given")
    with TemporaryDirectory(prefix="afterrun-") as scratch:
        yield [_ready(p, Path(scratch), i) for i, p in enumerate(paths)]


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
        return [p for line in sys.stdin if line.strip() for p in _expand(line.rstrip("\r\n"))]
    if "://" in argument and not Path(argument).exists():
        raise UsageError(f"{argument}: remote paths are not supported yet; copy the logs here first")
    if Path(argument).exists():
        return [Path(argument)]
    matches = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207  # the argument may be absolute
    if not matches:
        raise NothingToAnalyseError(f"{argument}: no such file or folder")
    return [Path(m) for m in matches]


def _ready(path: Path, scratch: Path, number: int) -> Path:
    if not is_archive(path):
        return path
    name = (
        path.name.removesuffix(".gz").removesuffix(".zip").removesuffix(".tar").removesuffix(".tgz")
        or "archive"
    )
    target = scratch / str(number) / name
    target.mkdir(parents=True)
    unpack(path, target)
    return target
