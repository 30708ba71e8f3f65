"""Whether a file is a text log: some of its lines are read as metrics, or are the message of a failure.

Looks at the beginning and, where that says nothing (a listing of source code, installation noise), at slices of the
rest, so that it takes as long for a large file as for a small one.
"""

from __future__ import annotations

import codecs
import re
from itertools import islice
from pathlib import Path

from afterrun.loaders.tables.textblocks import encoding_of
from afterrun.loaders.textlog.clean import Damage, clean
from afterrun.loaders.textlog.reader import TextLogReader

FIRST_BYTES = 256 * 1024
SLICE_BYTES = 64 * 1024
SLICES = 5
"""Stretches of the rest that are looked at, evenly spread, the last at the end."""

MIN_LINES = 3
"""Metric lines from which a file is a log."""

MIN_SURE_LINES = 2
"""The same of lines in the words of a trainer: a training of two epochs may print no more."""

_NO_LOGS = (
    ".py", ".pyi", ".ipynb", ".sh", ".bash", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".js", ".ts", ".jsx", ".css", ".html", ".htm",
    ".go", ".rs", ".java", ".jl", ".lua", ".r", ".m", ".sql", ".md", ".rst", ".tex", ".bib", ".adoc", ".yaml", ".yml", ".toml", ".cfg", ".ini",
    ".conf", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".xml", ".svg", ".lock", ".patch", ".diff", ".gitignore", ".dockerfile", ".cmake",
    ".mk", ".proto", ".tpl", ".j2", ".template", ".sbatch", ".slurm", ".env",
)  # fmt: skip
"""Suffixes of source, documentation, settings and tables, which quote log lines at most."""

_NO_LOG_NAMES = frozenset(
    {"readme", "license", "requirements", "makefile", "dockerfile", "changelog", "notice"}
)
_METRIC_HINT = re.compile(
    rb"(?i)(?:loss|step|iter|iteration|epoch|ep|update|batch|train|val|valid|test|trl|tel|eval|acc|accuracy|acc@\d|ppl|perplexity|f1|auc|map|iou|"
    rb"bleu|reward|score|psnr|ssim|fid|wer)['\"\])]*[\s:=\[(|#'\"]{1,14}[-+]?(?:\d|nan|inf)|:::ML|%\||/step|"
    rb"(?m:^\|[^|\n]*\| *\d)"
)
_FAILURE_HINT = re.compile(
    rb"(?i)Traceback \(most|Error\b|Exception\b|CANCELLED AT|slurmstepd|oom|out of memory|NVRM|Xid|Assertion|core dumped|killed|watchdog|walltime|"
    rb"KeyboardInterrupt|segmentation fault|no space left|quota"
)
_MOSTLY_BINARY = 0.05
_TEXT_CONTROLS = b"\t\n\v\f\r\x1b\x08\0"


def is_text_log(path: Path, head: bytes) -> bool:
    """See the module; ``head`` are the first bytes of the file. Never raises."""
    name = path.name.lower()
    stem = name.split(".")[0]
    if name.endswith(_NO_LOGS) or stem in _NO_LOG_NAMES or not _is_text(head):
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
    """Read the beginning and, where that says nothing, slices of the rest, the end among them."""
    with path.open("rb") as file:
        size = path.stat().st_size
        if speaks(file.read(FIRST_BYTES)):
            return True
        rest = size - FIRST_BYTES
        for i in range(SLICES if rest > 0 else 0):
            file.seek(FIRST_BYTES + max(0, rest - SLICE_BYTES) * i // (SLICES - 1))
            if speaks(file.read(SLICE_BYTES).partition(b"\n")[2]):
                return True
    return False


def speaks(data: bytes) -> bool:
    """Whether a stretch of text holds enough metric lines, or the message of a failure."""
    encoding = encoding_of(data[:256])
    if encoding.startswith("utf-16"):
        data = data.decode(encoding, "replace").encode("utf-8", "replace")
    hints = sum(1 for _ in islice(_METRIC_HINT.finditer(data), MIN_LINES))
    if hints < MIN_SURE_LINES and not _FAILURE_HINT.search(data):
        return False
    damage = Damage()
    reader = TextLogReader([clean(data.removeprefix(codecs.BOM_UTF8), 1, damage)], damage)
    for _ in reader.batches():
        pass
    drawn = reader.unfinished if reader.metric_lines else 0
    metrics = reader.metric_lines + drawn >= MIN_LINES or reader.sure_lines >= MIN_SURE_LINES
    return metrics or reader.failures > 0
