"""Events of a Chrome trace as typed records; what is no JSON is mended, and what cannot be is counted.

Text that tools write wrongly: single backslashes of Windows paths (pytorch/pytorch#98432), control characters
(pytorch/pytorch#130622) and bytes that are no UTF-8 (pytorch/kineto#80) in names, bare ``inf`` and ``nan``. A
damaged stretch costs the events it touches, no other.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec import Raw

from afterrun.loaders.traces.chromejson import BOUNDARY
from afterrun.loaders.traces.microseconds import MISSING
from afterrun.loaders.traces.salvage import whole_objects


class Event(msgspec.Struct, gc=False):
    """One event. Times stay text, for a float cannot hold them; ``args`` is decoded only where it is needed."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: Raw = Raw(MISSING)
    dur: Raw = Raw(MISSING)
    args: Raw = Raw(b"{}")


ERRORS = (msgspec.DecodeError, msgspec.ValidationError, RecursionError)
"""What decoding may raise on text that is no JSON, not of the type, or nested without end."""

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES = re.compile(
    rf'{_HIGH}{_LOW}|(?P<lone>{_HIGH}|{_LOW})|\\["\\/bfnrt]|\\u[0-9a-fA-F]{{4}}|(?P<stray>\\)'
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_NO_NUMBER = re.compile(r"(:\s*)-?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,\[\]]*")
_SCANNER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection: while millions of records are made, it costs more than making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class EventDecoder:
    """Turns pieces of text into events and counts what was ``damaged`` and ``mended`` on the way."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(list[Event])
        self.damaged = 0
        self.mended = 0

    def decode(self, piece: bytes) -> list[Event]:
        """The events of one piece (see ``EventText.pieces``); never raises."""
        try:
            return self._decoder.decode(b"[" + piece + b"]")
        except ERRORS:
            pass
        try:
            text, mended = mend(piece)
            events = self._decoder.decode(b"[" + text + b"]")
        except ERRORS:
            return self._halves(_parts(piece))
        self.mended += mended
        return events

    def _halves(self, parts: Sequence[bytes]) -> list[Event]:
        """Decodes what decodes as a whole and halves what does not, down to single events."""
        if len(parts) == 1:
            return self._single(parts[0])
        middle = len(parts) // 2
        events: list[Event] = []
        for half in (parts[:middle], parts[middle:]):
            try:
                events += self._decoder.decode(b"[" + b",".join(half) + b"]")
            except ERRORS:
                events += self._halves(half)
        return events

    def _single(self, part: bytes) -> list[Event]:
        """Every whole event in a stretch that is not one event."""
        data, mended = mend(part)
        text = data.decode("utf-8", "replace")
        events: list[Event] = []
        at, clean = 0, True
        for start, end, _ in whole_objects(text, _SCANNER, _is_event):
            event = _loosely(text[start:end])
            clean = clean and event is not None and bool(_BETWEEN.fullmatch(text, at, start))
            events += [event] if event else []
            at = end
        if clean and events and _BETWEEN.fullmatch(text, at):
            self.mended += mended
        else:
            self.damaged += 1
        return events


def mend(piece: bytes) -> tuple[bytes, int]:
    """The text with what tools write wrongly put right, and how many places were."""
    text = piece.decode("utf-8", "replace")
    count = text.count("\ufffd") - piece.count("\ufffd".encode())
    if "\\" in text or _CONTROL.search(text):
        changed = 0

        def fix(match: re.Match[str]) -> str:
            nonlocal changed
            string = match[0]
            fixed = _fixed(string)
            changed += fixed is not string
            return fixed

        text = _STRING.sub(fix, text)
        count += changed
    text, numbers = _NO_NUMBER.subn(r"\1null", text)
    return text.encode("utf-8", "replace"), count + numbers


def _fixed(string: str) -> str:
    """One JSON string. Where one backslash is stray, all before letters are: ``torch\\cuda\\nn`` holds no line end."""
    if _CONTROL.search(string):
        string = _CONTROL.sub(" ", string)
    if "\\" not in string:
        return string
    escapes = list(_ESCAPES.finditer(string))
    if any(m["stray"] for m in escapes):
        return re.sub(r'\\(\\|")?', lambda m: m[0] if m[1] else r"\\", string)
    if any(m["lone"] for m in escapes):
        return _ESCAPES.sub(lambda m: "\ufffd" if m["lone"] else m[0], string)
    return string


def _parts(piece: bytes) -> list[bytes]:
    """The piece divided at every boundary between events."""
    parts: list[bytes] = []
    at = 0
    for boundary in BOUNDARY.finditer(piece):
        parts.append(piece[at : boundary.start() + 1])
        at = boundary.end()
    return [*parts, piece[at:]]


def _loosely(text: str) -> Event | None:
    """An event some of whose values may have another type than they should; None where it is none."""
    data = text.encode("utf-8", "replace")
    try:
        return msgspec.json.decode(data, type=Event)
    except ERRORS:
        pass
    try:
        raw = msgspec.json.decode(data, type=dict[str, Raw])
        event = Event(
            ph=_text(raw.get("ph")),
            cat=_text(raw.get("cat")),
            name=_text(raw.get("name")),
            pid=_number(raw.get("pid")),
            tid=_number(raw.get("tid")),
            ts=raw.get("ts", Raw(MISSING)),
            dur=raw.get("dur", Raw(MISSING)),
            args=raw.get("args", Raw(b"{}")),
        )
    except ERRORS:
        return None
    return event if event.ph else None


def _is_event(value: dict[str, object]) -> bool:
    return bool(value.get("ph")) and isinstance(value["ph"], str)


def _text(raw: Raw | None) -> str:
    value = msgspec.json.decode(raw) if raw else ""
    return value if isinstance(value, str) else ""


def _number(raw: Raw | None) -> int | str | None:
    value = msgspec.json.decode(raw) if raw else None
    return value if isinstance(value, (int, str)) else None
