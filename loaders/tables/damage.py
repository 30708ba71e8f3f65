"""The books of a table reader: which lines were given up or repaired, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

_SHOWN = 5


@dataclass(slots=True)
class Places:
    """How often something happened, and the lines of the first few times."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        """Count one more, at this line."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(line)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return f"line{'s' if self.count > 1 else ''} {', '.join(map(str, self.first))}{more}"


@dataclass(slots=True)
class Losses:
    """What the reader gave up or repaired, for the notes of the source."""

    wide: Places = field(default_factory=Places)
    wide_cells: set[int] = field(default_factory=set)
    header_cells: int = 0
    narrow: Places = field(default_factory=Places)
    zeros: Places = field(default_factory=Places)
    zero_filled: bool = False
    too_long: int = 0
    half_line: int | None = None
    headers: Places = field(default_factory=Places)
    latin1: bool = False

    @property
    def damaged(self) -> int:
        """Number of lines given up, wholly or (the half line) in part."""
        return (
            self.wide.count
            + self.narrow.count
            + self.zeros.count
            + self.too_long
            + (self.half_line is not None)
        )

    def notes(self) -> Iterator[str]:
        """One sentence for each kind of loss or repair."""
        if self.wide.count:
            widths = ", ".join(map(str, sorted(self.wide_cells)[:_SHOWN]))
            yield (
                f"{_rows(self.wide.count)} with more cells ({widths}) than the header has names "
                f"({self.header_cells}) left out: {self.wide}"
            )
        if self.narrow.count:
            yield f"{_rows(self.narrow.count)} with fewer cells than the header has names left out: {self.narrow}"
        if self.zeros.count:
            yield f"{_rows(self.zeros.count)} overwritten with zero bytes left out: {self.zeros}"
        if self.zero_filled:
            yield "stretches of zero bytes were skipped, as a crash or a full disk leaves them"
        if self.too_long:
            yield f"{_rows(self.too_long)} too long to be a row left out"
        if self.half_line is not None:
            yield f"the file ends in the middle of line {self.half_line}; its last cell was left out"
        if self.headers.count:
            yield f"the header comes again, as after a restart: {self.headers}"
        if self.latin1:
            yield "bytes that are not UTF-8 were read as Latin-1"


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"
