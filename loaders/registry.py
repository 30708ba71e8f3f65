"""What a loader is, and how the loaders are found: by walking ``formats/``.

A new format is one new file in ``formats/<family>/`` that defines one ``Loader`` subclass. No list
is edited. Format modules import nothing heavy at module level beyond polars and numpy.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from afterrun.loaders.schema import Batch
from afterrun.loaders.wanted import Wanted

HEAD_BYTES = 4096
"""How much of a file a sniffer sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file to read. ``name`` is its path below the given root, ``/``-separated."""

    path: Path
    name: str
    size_bytes: int
    verify: bool = False
    """Check payload checksums even where nothing looks wrong (``--verify``)."""
    wanted: Wanted | None = None
    """Tags that are asked for; a loader may skip the others (``afterrun.loaders.wanted``). None: all."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Which process of how many."""

    rank: int
    of: int


class Loader(ABC):
    """One format: says whether a file is its own, and turns the file into batches.

    Subclasses are stateless and cheap to make. Class data:

    ``format``     name in ``sources.format`` and on the command line, kebab-case, unique
    ``family``     ``curves``, ``text``, ``traces`` or ``counters``
    ``generic``    asked only after all specific loaders said no
    ``snapshot``   the file is rewritten whole and holds the history from the beginning
                   (``trainer_state.json``), so copies of it in ``checkpoint-*`` repeat it
    """

    format: ClassVar[str]
    family: ClassVar[str]
    generic: ClassVar[bool] = False
    snapshot: ClassVar[bool] = False

    @abstractmethod
    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether this file is of the format: content first, name second.

        ``head`` holds the first ``HEAD_BYTES`` bytes. Never parses the file, never raises.
        """

    def home(self, source: Source) -> str | None:  # noqa: ARG002  # for formats whose layout spreads a run
        """Folder below the root of the run that a file belongs to, where the layout of the format says it.

        MLflow and DVCLive keep one file a metric, far below the folder of the run. None (the default)
        leaves it to the rules of ``afterrun.loaders.runs.grouping``.
        """
        return None

    def rank(self, source: Source) -> Rank | None:  # noqa: ARG002  # for formats that say it
        """Which process wrote the file, where its first bytes say so; never raises.

        What a file says goes before what its name says. None (the default) leaves it to the name.
        """
        return None

    @abstractmethod
    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the file as batches, bounded in memory.

        Bad records are counted, never raised; ``UnreadableError`` or ``OSError`` only where nothing
        of the file can be had. Rows are yielded in write order and numbered by ``seq``.
        """


@cache
def loaders() -> tuple[Loader, ...]:
    """All loaders, specific before generic, then by name: the order in which they are asked."""
    from afterrun.loaders import formats  # noqa: PLC0415  # the walk starts here, not at import

    found: dict[str, Loader] = {}
    for info in pkgutil.walk_packages(formats.__path__, formats.__name__ + "."):
        module = importlib.import_module(info.name)
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, Loader) and not inspect.isabstract(cls) and cls.__module__ == module.__name__:
                if cls.format in found:
                    raise TypeError(
                        f"two loaders are named {cls.format!r}: {found[cls.format]!r} and {cls!r}"
                    )
                found[cls.format] = cls()
    return tuple(sorted(found.values(), key=lambda x: (x.generic, x.format)))


def claim(path: Path, head: bytes) -> Loader | None:
    """The first loader whose sniffer says yes; a sniffer that raises is a bug and is not hidden."""
    return next((x for x in loaders() if x.sniff(path, head)), None)
