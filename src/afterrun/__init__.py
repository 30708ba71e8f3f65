"""afterrun: what went wrong in a training run, what it cost, and the figures for the post-mortem."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afterrun.api import Result, analyze, load

__version__ = "0.1.0"
__all__ = ["Result", "__version__", "analyze", "load"]


def __getattr__(name: str) -> object:
    """Import the API on first use, so that ``afterrun --version`` costs no more than Python itself."""
    if name in ("Result", "analyze", "load"):
        from afterrun import api  # noqa: PLC0415  # lazy by design

        return getattr(api, name)
    raise AttributeError(f"module 'afterrun' has no attribute {name!r}")
