"""Text from a log on its way to a person: made visible, shortened, escaped for where it will stand."""

from __future__ import annotations

import re
from urllib.parse import quote

ELLIPSIS = "…"

_HIDDEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminal escapes live here
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls: reorder what is read
    "\u200b\u2028\u2029\u2060\ufeff\ufff9-\ufffb"  # invisible or line-breaking
    "\ud800-\udfff"  # lone surrogates: bytes of a file name that are no UTF-8
    "\U000e0000-\U000e007f"  # tag characters
    "]"
)

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~])")
_LINE_START = re.compile(r"^(\d*)([#+\-=]|(?<=\d)[.)](?=\s|$))")
_COMMAND = re.compile(r"`([^`]+)`|(--[a-z][a-z-]*(?:[ =](?:'[^']*'|\"[^\"]*\"|[^\s;,]+))?)")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    """The text with every control, bidirectional and invisible character shown instead of obeyed.

    Line breaks and tabs become blanks; ESC becomes ``␛``; others become ``⟨U+202E⟩``.
    """
    return _HIDDEN.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    point = ord(match.group())
    if point in (0x09, 0x0A, 0x0D):
        return " "
    if point < 0x20:
        return chr(0x2400 + point)
    return "␡" if point == 0x7F else f"⟨U+{point:04X}⟩"


def shorten(text: str, limit: int = 80) -> str:
    """At most ``limit`` characters; the middle gives way, because both ends tell names apart."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return text[:head] + ELLIPSIS + text[len(text) - (limit - 1 - head) :]


def slug(text: str, limit: int = 40) -> str:
    """Lower-case letters, digits and hyphens; may be empty, and is not unique."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")


def href(path: str) -> str:
    """A relative link to a file below the page: percent-encoded, never a scheme, never absolute."""
    parts = [p for p in path.replace("\\", "/").split("/") if p not in ("", ".", "..")]
    return "/".join(quote(p, safe="", errors="surrogateescape") for p in parts)


def csv_cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula: a leading apostrophe where it starts like one."""
    return "'" + text if text.startswith(_FORMULA) else text


def markdown(text: str) -> str:
    """Text as itself in GitHub-flavoured Markdown: no markup, no HTML, no link, no mention."""
    flat = _MARKDOWN.sub(r"\\\1", visible(text).strip().replace("&", "&amp;"))
    flat = _LINE_START.sub(r"\1\\\2", flat)
    flat = flat.replace("://", "&#58;//").replace("www.", "www&#46;")
    return re.sub(r"(?<!\w)@(?=\w)", "@<!-- -->", flat)


def markdown_code(text: str, limit: int = 120) -> str:
    """A name as a code span, with a fence longer than any run of backticks inside."""
    flat = shorten(visible(text), limit)
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") or not flat.strip() else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def segments(text: str) -> list[tuple[bool, str]]:
    """Prose cut into (is it something to type?, text): backtick spans and ``--option 'value'``."""
    out: list[tuple[bool, str]] = []
    at = 0
    for found in _COMMAND.finditer(text):
        if found.start() > at:
            out.append((False, text[at : found.start()]))
        out.append((True, found.group(1) or found.group(2)))
        at = found.end()
    if at < len(text) or not out:
        out.append((False, text[at:]))
    return out
