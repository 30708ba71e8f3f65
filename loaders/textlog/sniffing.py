"""Whether a file is a text log: some of its lines are read as metrics, or are the message of a failure.

Looks at the beginning and, where that says nothing (a listing of source code, installation noise), at more of the
file and at its end, in bounded memory.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from afterrun.loaders.textblocks import encoding_of
from afterrun.loaders.textlog.clean import Damage, clean
from afterrun.loaders.textlog.reader import TextLogReader

FIRST_BYTES = 256 * 1024
LATER_BYTES = 4 * 2**20
LAST_BYTES = 128 * 1024
MIN_LINES = 3
"""Metric lines from which a file is a log."""

_NO_LOGS = frozenset(
    [
        ".py",
        ".pyi",
        ".ipynb",
        ".sh",
        ".bash",
        ".c",
        ".cc",
        ".cpp",
        ".cu",
        ".cuh",
        ".h",
        ".hpp",
        ".js",
        ".ts",
        ".jsx",
        ".css",
        ".html",
        ".htm",
        ".go",
        ".rs",
        ".java",
        ".jl",
        ".lua",
        ".r",
        ".m",
        ".sql",
        ".md",
        ".rst",
        ".tex",
        ".bib",
        ".adoc",
        ".yaml",
        ".yml",
        ".toml",
        ".cfg",
        ".ini",
        ".conf",
        ".json",
        ".jsonl",
        ".ndjson",
        ".csv",
        ".tsv",
        ".xml",
        ".svg",
        ".lock",
        ".patch",
        ".diff",
        ".gitignore",
        ".dockerfile",
        ".cmake",
        ".mk",
        ".proto",
        ".tpl",
        ".j2",
        ".template",
        ".sbatch",
        ".slurm",
        ".env",
    ]
)
"""Suffixes of source, documentation, settings and tables, which quote log lines at most."""

_NO_LOG_NAMES = frozenset(
    {"readme", "license", "requirements", "makefile", "dockerfile", "changelog", "notice"}
)
_MOSTLY_BINARY = 0.05
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b\x08\0"


def is_text_log(path: Path, head: bytes) -> bool:
    """See the module; ``head`` are the first bytes of the file. Never raises."""
    name = path.name.lower()
    stem = name.split(".")[0]
    if any(name.endswith(s) for s in _NO_LOGS) or stem in _NO_LOG_NAMES or not _is_text(head):
        return False
    try:
        return _speaks(path)
    except OSError:
        return False


def _is_text(head: bytes) -> bool:
    if not head.strip(b"\0 \r\n\t"):
        return False
    if encoding_of(head).startswith("utf-16"):
        return True
    start = head.lstrip(b"\xef\xbb\xbf\0 \r\n\t")
    if start.startswith(
        (b"version https://git-lfs", b"%PDF", b"PK\x03\x04", b'{"', b"[{", b"\x89PNG", b"\x1f\x8b")
    ):
        return False
    controls = sum(head.count(bytes([c])) for c in range(32) if c not in _TEXT_CONTROLS)
    zeros = len(head) - len(head.lstrip(b"\0"))
    return controls <= _MOSTLY_BINARY * len(head) and head.count(0) - zeros <= _MOSTLY_BINARY * len(head)


def _speaks(path: Path) -> bool:
    """Read as much as it takes, in three steps."""
    with path.open("rb") as file:
        size = path.stat().st_size
        first = file.read(FIRST_BYTES)
        if speaks(first):
            return True
        if size <= FIRST_BYTES:
            return False
        if speaks(first + file.read(LATER_BYTES - FIRST_BYTES)):
            return True
        if size <= LATER_BYTES:
            return False
        file.seek(-LAST_BYTES, 2)
        return speaks(file.read(LAST_BYTES).partition(b"\n")[2])


def speaks(data: bytes) -> bool:
    """Whether a stretch of text holds enough metric lines, or the message of a failure."""
    encoding = encoding_of(data[:256])
    if encoding.startswith("utf-16"):
        data = data.decode(encoding, "replace").encode("utf-8", "replace")
    damage = Damage()
    reader = TextLogReader([clean(data.removeprefix(codecs.BOM_UTF8), 1, damage)], damage)
    for _ in reader.batches():
        pass
    return reader.metric_lines >= MIN_LINES or reader.failures > 0
