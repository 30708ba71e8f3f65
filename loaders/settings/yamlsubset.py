"""The part of YAML that programs write when they dump settings: nested mappings, lists, scalars.

One key a line, two or more blanks a level, ``- `` for list entries (also as deep as their key), plain, quoted,
folded and block scalars, empty or simple flow collections. Tags and anchors are passed over; an alias stays the
text it is, so that nothing multiplies. Anything else costs the top-level key it belongs to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from afterrun.loaders.limits import MAX_JSON_DEPTH

_QUOTED_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?:\s|$)""")
_NO_KEY = frozenset("#[]{},&*!|>%@`?")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_SPECIAL = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_DECORATION = re.compile(r"(?:[!&][^\s]*(?:\s+|$))+")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_BLOCK = re.compile(r"[|>][-+0-9]*$")


class _NotInSubsetError(ValueError):
    """The lines say something that this reader does not understand."""


class _Line(NamedTuple):
    indent: int
    text: str
    raw: str


@dataclass(slots=True)
class Document:
    """Top-level keys and values, and the keys (or first words) of what could not be read."""

    values: dict[str, Any] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def read_mapping(text: str) -> Document:
    """A document whose top level is a mapping; never raises."""
    document = Document()
    for chunk in _chunks(text):
        try:
            value, end = _block(chunk, 0, 0)
            if end != len(chunk) or not isinstance(value, dict):
                raise _NotInSubsetError
            document.values |= value
        except _NotInSubsetError:
            document.unread.append(chunk[0].text.partition(":")[0][:40])
    return document


def _chunks(text: str) -> Iterator[list[_Line]]:
    """Lines of one top-level key each."""
    chunk: list[_Line] = []
    for raw in text.splitlines():
        plain = raw.strip()
        if not plain or plain.startswith(("#", "%YAML")) or plain in ("---", "..."):
            if chunk and not plain:
                chunk.append(_Line(-1, "", raw))
            continue
        indent = len(raw) - len(raw.lstrip(" "))
        if indent == 0 and chunk and not plain.startswith("- ") and plain != "-":
            yield _without_blank_end(chunk)
            chunk = []
        chunk.append(_Line(indent, plain, raw))
    if chunk:
        yield _without_blank_end(chunk)


def _without_blank_end(chunk: list[_Line]) -> list[_Line]:
    while chunk and chunk[-1].indent < 0:
        chunk.pop()
    return chunk


def _block(lines: Sequence[_Line], at: int, depth: int) -> tuple[Any, int]:
    """The value that begins at this line, and the line after it."""
    if depth > MAX_JSON_DEPTH:
        raise _NotInSubsetError
    at = _past_blanks(lines, at)
    if lines[at].text == "-" or lines[at].text.startswith("- "):
        return _list(lines, at, depth)
    if _key(lines[at].text):
        return _mapping(lines, at, depth)
    raise _NotInSubsetError


def _past_blanks(lines: Sequence[_Line], at: int) -> int:
    while at < len(lines) and lines[at].indent < 0:
        at += 1
    if at == len(lines):
        raise _NotInSubsetError
    return at


def _mapping(lines: Sequence[_Line], at: int, depth: int) -> tuple[dict[str, Any], int]:
    indent = lines[at].indent
    found: dict[str, Any] = {}
    while at < len(lines):
        if lines[at].indent < 0:
            at += 1
            continue
        if lines[at].indent != indent:
            break
        parts = _key(lines[at].text)
        if parts is None:
            break
        key, rest = parts
        found[key], at = _value(lines, at, rest, depth)
    return found, at


def _key(text: str) -> tuple[str, str] | None:
    """A key and what stands behind its colon; None where a line does not begin with a key."""
    if quoted := _QUOTED_KEY.match(text):
        return str(_scalar(quoted[1])), text[quoted.end() :].lstrip()
    if not text or text[0] in _NO_KEY or text[0] in "'\"" or text.startswith("- ") or text == "-":
        return None
    key, colon, rest = text.partition(": ")
    if not colon:
        key, colon, rest = text[:-1], text[-1], ""
    return (key.rstrip(), rest.lstrip()) if colon in (":", ": ") and " #" not in key else None


def _list(lines: Sequence[_Line], at: int, depth: int) -> tuple[list[Any], int]:
    indent = lines[at].indent
    found: list[Any] = []
    while at < len(lines):
        line = lines[at]
        if line.indent < 0:
            at += 1
            continue
        if line.indent != indent or not (line.text == "-" or line.text.startswith("- ")):
            break
        rest = line.text[1:].lstrip()
        if _key(rest) or rest.startswith("- "):
            inner = _Line(indent + len(line.text) - len(rest), rest, line.raw)
            value, used = _block([inner, *lines[at + 1 :]], 0, depth + 1)
            at += used
        else:
            value, at = _value(lines, at, rest, depth)
        found.append(value)
    return found, at


def _value(lines: Sequence[_Line], at: int, rest: str, depth: int) -> tuple[Any, int]:
    """The value behind a key or a dash at line ``at``, of which ``rest`` is on that line."""
    indent = lines[at].indent
    rest = _DECORATION.sub("", rest, count=1) if rest[:1] in "!&" else rest
    end = at + 1
    while end < len(lines) and (lines[end].indent > indent or lines[end].indent < 0):
        end += 1
    deeper = lines[at + 1 : end]
    if _BLOCK.fullmatch(rest):
        kept = "\n".join(line.raw.strip() for line in deeper).strip("\n")
        return kept if rest[0] == "|" else re.sub(r"(?<!\n)\n(?!\n)", " ", kept), end
    if rest and not rest.startswith("#"):
        return _scalar(" ".join([rest, *(line.text for line in deeper if line.text)])), end
    begins = next((i for i in range(at + 1, len(lines)) if lines[i].indent >= 0), len(lines))
    if begins == len(lines) or lines[begins].indent < indent:
        return None, end
    if lines[begins].indent == indent and not lines[begins].text.startswith("-"):
        return None, end
    if lines[begins].indent == indent and lines[at].text.startswith("-"):
        return None, end
    return _block(lines, begins, depth + 1)


def _scalar(text: str) -> Any:
    """What one scalar or simple flow collection says."""
    if text[:1] == '"':
        return _quoted(text)
    if text[:1] == "'":
        inner = re.fullmatch(r"'((?:[^']|'')*)'\s*(?:#.*)?", text)
        if inner is None:
            raise _NotInSubsetError
        return inner[1].replace("''", "'")
    text = _COMMENT.sub("", text).strip()
    if text[:1] in ("[", "{"):
        return _flow(text)
    if text in _SPECIAL:
        return _SPECIAL[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _quoted(text: str) -> str:
    inner = re.fullmatch(r'("(?:[^"\\]|\\.)*")\s*(?:#.*)?', text)
    if inner is None:
        raise _NotInSubsetError
    folded = re.sub(r"\\ ?\s", " ", inner[1])
    try:
        return str(json.loads(folded, strict=False))
    except ValueError:
        return folded[1:-1]


def _flow(text: str) -> Any:
    """A collection on one line: JSON, or a list of plain scalars."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if text[0] == "[" and text.endswith("]") and not re.search(r"[\[\]{}'\"]", text[1:-1]):
        return [_scalar(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return text
