"""Pickles of strangers: only lists, dictionaries, texts and numbers. A pickle that asks for any name is refused.

Unpickling runs what the file names; with every name forbidden nothing of it can run. All snapshots that PyTorch writes
load this way.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from afterrun.loaders.errors import UnreadableError

ERRORS = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    UnicodeDecodeError,
    RecursionError,
    MemoryError,
    OverflowError,
)
"""What the standard library raises on a damaged or hostile pickle."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Refuse: plain data needs no name."""
        raise UnreadableError(f"it asks for the global {module}.{name}, which is never loaded")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse: plain data stands in the file."""
        raise UnreadableError(f"it refers to outside data ({pid!r:.80}), which is never loaded")


def load_plain(data: bytes, name: str) -> Any:
    """The value of a pickle of plain data. Raises ``UnreadableError`` for anything else, naming what it asked for."""
    try:
        return _Plain(io.BytesIO(data)).load()
    except UnreadableError as error:
        raise UnreadableError(f"{name}: refused, {error}") from None
    except ERRORS as error:
        raise UnreadableError(f"{name}: not a whole pickle ({type(error).__name__}: {error})") from error
