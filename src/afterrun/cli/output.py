"""What ``afterrun report`` leaves in its folder, in an order in which an interrupt costs figures only."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from afterrun import __version__
from afterrun.analyzer.analysis import Analysis
from afterrun.loaders.errors import UsageError
from afterrun.settings import Settings, figure_limit


def write(analysis: Analysis, settings: Settings, target: Path, started: float) -> tuple[Analysis, bytes]:
    """(the analysis with the faults of drawing, findings.json).

    Interrupted while drawing, it writes the report without figures and lets the interrupt go on. Figures
    of an earlier report that were not drawn again are removed. Raises ``UsageError`` where ``target``
    cannot be written.
    """
    from afterrun.plots.pack import draw_pack, write_manifest  # noqa: PLC0415  # drawing side, lazy
    from afterrun.plots.report import write_report  # noqa: PLC0415  # jinja2 only when something is written

    def finish(drawn: Sequence[Any]) -> None:
        write_report(analysis, drawn, target, version=__version__, command=_repeatable(sys.argv[1:]))
        write_manifest(target, drawn, _generated(started))
        _remove(target, old - {path for d in drawn for path in d.files.values()})

    drawn: list[Any] = []
    limit = figure_limit(settings)
    try:
        target.mkdir(parents=True, exist_ok=True)
        old = listed_figures(target)
        if limit != 0:
            try:
                pack = draw_pack(
                    analysis.views, analysis.findings, target, formats=tuple(settings.formats), limit=limit
                )
            except KeyboardInterrupt:
                finish([])
                raise
            drawn = list(pack.drawn)
            analysis = replace(analysis, faults=(*analysis.faults, *pack.faults))
        finish(drawn)
        return analysis, (target / "findings.json").read_bytes()
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from error


def listed_figures(target: Path) -> set[str]:
    """Files below ``figures/`` that the manifest of an earlier report names, relative to ``target``.

    Nothing in it is trusted: a path that leads anywhere else is passed over, and so is a broken manifest.
    """
    try:
        figures = json.loads((target / "manifest.json").read_bytes())["figures"]
        paths = [file["path"] for figure in figures for file in figure["files"].values()]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return set()
    return {p for p in paths if isinstance(p, str) and _is_figure(target, p)}


def _is_figure(target: Path, path: str) -> bool:
    parts = PurePosixPath(path).parts
    if len(parts) < 2 or parts[0] != "figures" or ".." in parts or "\\" in path or "\0" in path:
        return False
    # a linked folder would lead out of the report
    inside = (target / "figures").resolve() == target.resolve() / "figures"
    return inside and (target / path).parent.resolve().is_relative_to(target.resolve() / "figures")


def _remove(target: Path, paths: set[str]) -> None:
    for path in sorted(paths):
        file = target / path
        if file.is_file() or file.is_symlink():
            file.unlink()
        folder = file.parent
        if folder.is_dir() and folder != target / "figures" and not any(folder.iterdir()):
            folder.rmdir()


def _generated(started: float) -> dict[str, object]:
    """What may differ between two runs over the same input; it stands in ``manifest.json`` only."""
    return {
        "version": __version__,
        "command": shlex.join(["afterrun", *sys.argv[1:]]),
        "seconds": round(time.monotonic() - started, 2),
    }


def _repeatable(arguments: Sequence[str]) -> str:
    """The command without the place of its output: the same input gives the same page wherever it is written."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if not skip and argument not in ("-o", "--output") and not argument.startswith("--output="):
            kept.append(argument)
        skip = argument in ("-o", "--output")
    return shlex.join(["afterrun", *kept])
