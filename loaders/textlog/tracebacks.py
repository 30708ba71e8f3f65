"""Python tracebacks in a log, put together from their lines: the exception and the frames that matter.

Several ranks may print theirs at once; each is followed by the label before its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from afterrun.loaders.textlog.privacy import discreet

TRACEBACK = "Traceback (most recent call last)"

MAX_LINES = 2_000
"""Lines after which a traceback without an exception is given up: it was cut off."""

MAX_OPEN = 256
"""Tracebacks followed at once; a job may have that many ranks in one file."""

_LABEL = re.compile(r"^(?P<label>.*?)Traceback \(most recent call last\)")
_TIME = re.compile(r"\d:\d\d")  # a logger stamps the first line of a message alone
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>\S+))?')
_INSTALLED = re.compile(r"site-packages|dist-packages|/lib/python\d|<frozen |<string>|<__array_function__")
_CHAIN = re.compile(r"(?:During handling of the above exception|The above exception was the direct cause)")


@dataclass(frozen=True, slots=True)
class Traceback:
    """One traceback. ``line``: that of its exception, or where it begins when it was cut off.

    ``frame``: the last frame; ``own``: the last one that is no installed package.
    """

    line: int
    started: int
    exception: str
    frame: str = ""
    own: str = ""

    def text(self) -> str:
        """Exception and place in one line."""
        places = [f"last frame {self.frame}"] if self.frame else []
        if self.own and self.own != self.frame:
            places.append(f"own code {self.own}")
        return f"{self.exception} [{'; '.join(places)}]" if places else self.exception


@dataclass(slots=True)
class _Open:
    started: int
    lines: int = 0
    frame: str = ""
    own: str = ""


class Tracebacks:
    """Follows all tracebacks of one file, line by line, from the first line of one on."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    @property
    def busy(self) -> bool:
        """Whether a traceback is under way, so that the next lines are to be shown."""
        return bool(self._open)

    def feed(self, number: int, line: str) -> Iterator[Traceback]:
        """Take one line; yields a traceback when its exception stands there."""
        start = _LABEL.match(line)
        if start:
            if len(self._open) < MAX_OPEN:
                label = start["label"]
                self._open["" if _TIME.search(label) else label] = _Open(number)
            return
        label = max((x for x in self._open if line.startswith(x)), key=len, default=None)
        if label is None:
            yield from self._age(number)
            return
        one, text = self._open[label], line[len(label) :]
        one.lines += 1
        frame = _FRAME.search(text)
        if frame:
            name = f" in {frame['name']}" if frame["name"] else ""
            one.frame = f"{_tail(frame['file'])} line {frame['line']}{name}"
            if not _INSTALLED.search(frame["file"]):
                one.own = f"{_tail(frame['file'])} line {frame['line']}"
        elif text[:1] not in (" ", "") and one.lines > 1:
            del self._open[label]
            if not _CHAIN.match(text):
                yield Traceback(number, one.started, text.strip(), one.frame, one.own)
        yield from self._age(number)

    def end(self) -> Iterator[Traceback]:
        """Those still without an exception when the file ends."""
        for one in self._open.values():
            if one.frame:
                text = "a traceback whose exception is not in the log"
                yield Traceback(one.started, one.started, text, one.frame, one.own)
        self._open = {}

    def _age(self, number: int) -> Iterator[Traceback]:
        old = [k for k, one in self._open.items() if number - one.started > MAX_LINES]
        for key in old:
            del self._open[key]
        yield from ()


def _tail(path: str) -> str:
    """The last three parts of a path: enough to find the file, and no home."""
    parts = re.split(r"[/\\]", discreet(path))
    return "/".join(parts[-3:])
