"""Walk a tree and ask every file what it is. Links are followed inside the root only, and once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from afterrun.loaders.registry import HEAD_BYTES, Loader, Source, claim

SKIPPED_FOLDERS = {
    ".git": "version control",
    ".hg": "version control",
    ".svn": "version control",
    "__pycache__": "compiled Python",
    ".ipynb_checkpoints": "stale copies made by a notebook server",
    "node_modules": "installed packages",
    ".venv": "installed packages",
}
"""Folders that are not walked, with the reason that is told."""


CANNOT = "cannot be "
"""How the reason of everything begins that is no log because it could not be read."""

REPORT_MARKS = ("findings.json", "manifest.json", "index.html")
"""A folder with these is a report; written below its own input it would be read as more runs next time."""

REPORT_FILES = frozenset({*REPORT_MARKS, "summary.csv", "report.md"})
"""What a report holds besides its tables; no log, even where its columns look like one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One file below a root, with the loader that claims it or the reason why none does."""

    source: Source
    loader: Loader | None
    reason: str = ""


def discover(root: Path, *, verify: bool = False) -> list[Found]:
    """Every file at or below ``root`` in the order of names, recognised or not.

    A file that vanishes or cannot be opened is reported, never raised.
    """
    if root.is_file():
        return [_ask(root, readable(root.name), verify)]
    return [
        _ask(path, name, verify) if not reason else _refused(path, name, reason)
        for path, name, reason in sorted(_walk(root), key=lambda x: x[1].split("/"))
    ]


def readable(name: str) -> str:
    """A file name as text that every encoder takes: bytes that are no UTF-8 become ``\\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _walk(root: Path) -> Iterator[tuple[Path, str, str]]:
    """(path, name, reason not to read) of every file; folders are visited once each."""
    real_root = root.resolve()
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Path, str]] = [(root, "")]
    while stack:
        folder, prefix = stack.pop()
        try:
            info = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as error:
            yield folder, prefix.rstrip("/"), f"{CANNOT}listed: {error.strerror}"
            continue
        if (info.st_dev, info.st_ino) in seen:
            continue
        seen.add((info.st_dev, info.st_ino))
        own = REPORT_FILES if {e.name for e in entries}.issuperset(REPORT_MARKS) else frozenset()
        for entry in entries:
            if entry.name in own:
                yield Path(entry.path), prefix + entry.name, "part of a report of afterrun"
            else:
                yield from _entry(entry, prefix, real_root, stack)


def _entry(
    entry: os.DirEntry[str], prefix: str, real_root: Path, stack: list[tuple[Path, str]]
) -> Iterator[tuple[Path, str, str]]:
    path, name = Path(entry.path), prefix + readable(entry.name)
    if entry.is_symlink():
        target = Path(os.path.realpath(entry.path))
        if not target.exists():
            yield path, name, "a link to nothing"
            return
        if not target.is_relative_to(real_root):
            yield path, name, "a link out of the given folder; name its target to read it"
            return
        if target.is_file():
            there = readable(target.relative_to(real_root).as_posix())
            yield path, name, f"a link to {there}, which is read there"
            return
    if entry.is_dir():
        if entry.name in SKIPPED_FOLDERS:
            yield path, name, f"not walked: {SKIPPED_FOLDERS[entry.name]}"
        elif all((path / mark).is_file() for mark in REPORT_MARKS):
            yield path, name, "not walked: a report of afterrun; name it as PATH to read its tables"
        else:
            stack.append((path, name + "/"))
    elif entry.is_file():
        yield path, name, ""
    else:
        yield path, name, "neither a file nor a folder"


def _ask(path: Path, name: str, verify: bool) -> Found:
    try:
        size_bytes = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        return _refused(path, name, f"{CANNOT}opened: {error.strerror}")
    source = Source(path=path, name=name, size_bytes=size_bytes, verify=verify)
    loader = claim(path, head)
    return Found(source=source, loader=loader, reason="" if loader else what_it_is(path, head))


def _refused(path: Path, name: str, reason: str) -> Found:
    return Found(source=Source(path=path, name=name, size_bytes=0), loader=None, reason=reason)


_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "an ELF binary or core file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (PyTorch checkpoints are such archives); name it as PATH to look inside"),
    (b"\x1f\x8b", "a gzip file; name it as PATH to look inside"),
    (b"SQLite format 3\x00", "an SQLite database of no known layout"),
    (b"version https://git-lfs", "a git-lfs pointer: the data was never fetched (git lfs pull)"),
    (b"\x80\x02", "a Python pickle, which is never loaded"),
    (b"\x80\x03", "a Python pickle, which is never loaded"),
    (b"\x80\x04", "a Python pickle, which is never loaded"),
    (b"\x80\x05", "a Python pickle, which is never loaded"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
)


_PROSE = frozenset({".py", ".sh", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".md", ".rst", ".html"})


def what_it_is(path: Path, head: bytes) -> str:
    """Why a file that no loader claims is no log, as far as its first bytes tell."""
    kind = next((reason for magic, reason in _MAGIC if head.startswith(magic)), None)
    if not head:
        kind = "empty file"
    elif kind is None and (path.suffix == ".safetensors" or b"__metadata__" in head[:64]):
        kind = "model weights (safetensors)"
    elif kind is None and b"\x00" in head:
        kind = "a binary file of no known format"
    elif kind is None and path.suffix in _PROSE:
        kind = "source, configuration or documentation, not a log"
    elif kind is None and head.lstrip()[:1] in (b"{", b"["):
        kind = "JSON of no known layout"
    return kind or "text without a numeric table that a loader recognises"
