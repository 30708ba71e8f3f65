"""Terminals: results on standard output, progress and warnings on standard error, nothing interpreted."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text


class _Console(Console):
    """A console whose reader may go away (``afterrun ... | head``): that is no failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


PIPED_WIDTH = 120
"""Columns of tables that go to a file or a pipe."""


def out(*, width: int | None = None) -> Console:
    """The console of the result. Rich honours NO_COLOR and drops colour where it is no terminal."""
    piped = None if sys.stdout.isatty() else PIPED_WIDTH
    return _Console(highlight=False, soft_wrap=True, width=width or piped)


def err() -> Console:
    """The console of progress and warnings."""
    return Console(stderr=True, highlight=False)


def printable(text: str) -> str:
    """Text without control, bidirectional and other format characters, which may drive a terminal."""
    return "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else "�" for c in text)


def plain(text: str, style: str = "") -> Text:
    """Text that is shown as it is: markup in names is not interpreted."""
    return Text(printable(text), style=style)


@contextmanager
def progress() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A factory of progress callbacks ``(done, total)`` by label; draws nothing when not a terminal."""
    if not sys.stderr.isatty():
        yield lambda _label: lambda _done, _total: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415  # terminals only

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True) as bar:

        def make(label: str) -> Callable[[int, int], None]:
            task = bar.add_task(label, total=None)

            def update(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            return update

        yield make
