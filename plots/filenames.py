"""Output names that are safe on every file system, whatever a run or a tag is called."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

MAX_BYTES = 120
HASH_DIGITS = 8

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")
"""Names that Windows gives to devices, with any ending."""


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A file name for each name: ``[A-Za-z0-9._-]``, 1 to 120 bytes, no two alike in any case.

    A name that is safe stays as it is. One that had to change, or that another differs from only by
    case, gets 8 hex digits of the SHA-256 of its own text, so the answer does not depend on order.
    """
    unique = dict.fromkeys(names)
    by_key: dict[str, list[str]] = defaultdict(list)
    for name in unique:
        by_key[_stem(name).casefold()].append(name)
    digits = HASH_DIGITS
    while True:
        made = {name: _final(name, len(by_key[_stem(name).casefold()]) > 1, digits) for name in unique}
        if len({m.casefold() for m in made.values()}) == len(made):
            return made
        digits *= 2  # two hashes begin alike, or a name imitates one


def _stem(name: str) -> str:
    """The readable part: NFC, unsafe stretches as one hyphen, no dot or hyphen at the ends."""
    stem = _UNSAFE.sub("-", unicodedata.normalize("NFC", name)).strip("-.")
    if not stem.strip("-._"):
        stem = "unnamed"
    return f"_{stem}" if _DEVICE.match(stem) else stem


def _final(name: str, shared: bool, digits: int) -> str:
    stem = _stem(name)
    if stem == name and not shared and digits == HASH_DIGITS and len(stem) <= MAX_BYTES:
        return stem
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    return f"{stem[: MAX_BYTES - len(digest) - 1].rstrip('-.')}-{digest}"
