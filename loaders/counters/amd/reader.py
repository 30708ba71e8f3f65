"""Which of their shapes a file of ``rocm-smi`` or ``amd-smi`` has, and the reader for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.counters.amd.documents import read_documents
from afterrun.loaders.counters.amd.tables import ROCM_TITLE, is_head, read_tables
from afterrun.loaders.counters.smi.reader import read_smi
from afterrun.loaders.registry import HEAD_BYTES
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.textblocks import decode_head, split_lines

_ROCM_JSON = re.compile(r'\{\s*"card\d+"\s*:\s*\{')
_AMD_JSON = re.compile(
    r'^\s*(?:\[|\{\s*"gpu_data"\s*:\s*\[)\s*\{\s*(?:"timestamp"\s*:\s*[^,]{1,40},\s*)?"gpu"\s*:\s*\d+\s*,'
)
_AMD_KEYS = re.compile(
    r'"(?:gfx_activity|umc_activity|socket_power|power_usage|mem_usage|gfx_clk|gfx|vram_used)"'
)
_ROCM_CSV = re.compile(
    r"device,.*(?:GPU use \(%\)|Temperature \(Sensor|VRAM Total|Graphics Package Power|clock speed)",
    re.IGNORECASE,
)
_AMD_CSV = re.compile(
    r"(?:timestamp,)?gpu,(?:.*,)?(?:gfx_activity|umc_activity|socket_power|power_usage|gfx_0_clk|used_vram|vram_used)\b"
)
_WITHIN = 20


def _lines(head: bytes) -> list[str]:
    return [x.strip() for x in split_lines(decode_head(head).replace("\0", "")) if x.strip()][:_WITHIN]


def sniff_rocm(head: bytes) -> bool:
    """Whether a file begins like one of ``rocm-smi``."""
    text = decode_head(head).lstrip("\0 \r\n\t")
    lines = _lines(head)
    if _ROCM_JSON.match(text) or any(_ROCM_CSV.match(x) for x in lines):
        return True
    return any(ROCM_TITLE.match(x) for x in lines) and any(is_head(x) for x in lines)


def sniff_amd(head: bytes) -> bool:
    """Whether a file begins like one of ``amd-smi``."""
    text = decode_head(head)
    if _AMD_JSON.match(text.lstrip("\0 \r\n\t")) and _AMD_KEYS.search(text):
        return True
    lines = _lines(head)
    return any(_AMD_CSV.match(x) for x in lines) or (
        any(is_head(x) for x in lines) and not any(ROCM_TITLE.match(x) for x in lines)
    )


def read_amd(path: Path) -> Iterator[Batch]:
    """All samples of a file. Raises ``UnreadableError`` where there is nothing whole in it, and ``OSError``."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if decode_head(head).lstrip("\0 \r\n\t")[:1] in ("{", "["):
        yield from read_documents(path)
    elif any(_ROCM_CSV.match(x) or _AMD_CSV.match(x) for x in _lines(head)):
        yield from read_smi(path)
    else:
        yield from read_tables(path)
