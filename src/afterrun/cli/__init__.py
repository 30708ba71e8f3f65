"""The command line: one command a file, imported when it is called.

This is the only place where an exception becomes text on standard error and an exit code.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from typing import NoReturn

import click

from afterrun import __version__

COMMANDS = {
    "report": "Findings, figures and a page for the runs below PATH.",
    "compare": "Two runs or traces side by side.",
    "inspect": "What is here, what is readable, and why not.",
    "export": "The unified tables as Parquet, CSV or JSON lines.",
    "explain": "What a finding means and how it is decided.",
    "schema": "The tables, and the JSON Schema of findings.json.",
}
"""Name and help of each command; ``afterrun.cli.<name>`` holds it as ``command``."""

INTERRUPTED = 130


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click calls by name
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click calls by name
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"afterrun.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click calls by name
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib  # noqa: PLC0415  # only on the way to an error

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command is named {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="afterrun", message="%(prog)s %(version)s")
def main() -> None:
    """Point it at a log directory after training: what went wrong, what it cost, and the figures.

    Runs offline, on one log or on many. Exit codes: 0 done, 1 --fail-on met, 2 usage, 3 nothing to analyse,
    4 some runs failed (--strict), 130 interrupted.
    """


def run() -> NoReturn:
    """Run the command line and exit with its code."""
    _prepare_streams()
    try:
        code = main.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BrokenPipeError:  # the reader of a pipe has seen enough; nothing may be flushed to it at exit
        _drop_output()
        code = 0
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        click.echo(f"afterrun: standard output cannot be written: {error.strerror}", err=True)
        _drop_output()
        code = click.UsageError.exit_code
    except Exception as error:
        from afterrun.loaders.errors import AfterrunError  # noqa: PLC0415  # only on the way to an error

        if not isinstance(error, AfterrunError):
            raise
        click.echo(f"afterrun: {error}", err=True)
        code = error.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_streams() -> None:
    """Any text can be written to any terminal, and a stream closed by the caller is told, not met later."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # open until the end
    if sys.stdout is None:
        sys.stderr.write("afterrun: standard output is closed; nothing can be written to it\n")
        sys.exit(click.UsageError.exit_code)
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        *((s, "backslashreplace") for s in (sys.stdout, sys.stderr)),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _drop_output() -> None:
    """Let what is still buffered for standard output go nowhere, so that the exit is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
