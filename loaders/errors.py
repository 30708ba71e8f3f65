"""The one root of everything afterrun raises on purpose."""

from __future__ import annotations


class AfterrunError(Exception):
    """Root of all errors meant for a person: what happened, where, why, and what to do.

    Only the command line turns one into text and an exit code.
    """

    exit_code = 1


class UsageError(AfterrunError):
    """The call or the configuration is wrong (exit code 2)."""

    exit_code = 2


class NothingToAnalyseError(AfterrunError):
    """No readable run was found, or the runs cannot be compared (exit code 3)."""

    exit_code = 3


class UnreadableError(AfterrunError):
    """A source cannot be read at all; it costs one row in ``sources``, never the batch."""


class LimitError(UnreadableError):
    """A size, depth or ratio guard stopped the reading (see ``afterrun.loaders.limits``)."""


class SchemaError(AfterrunError):
    """A loader handed over a frame that is not what the schema promises: a bug of the loader."""
