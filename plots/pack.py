"""The figure pack: which figures are worth drawing, drawn, written with their data, and listed.

Runs with alarms come first, the worst first; of each, the figures that illustrate its findings. Each
run gets its best figure before any gets a second one. A figure that cannot be drawn costs itself only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from afterrun.analyzer.finding import Finding, rank_order
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.text import display_name
from afterrun.plots.filenames import safe_names
from afterrun.plots.registry import Drawn, Figure, Prepared, Skip, figures
from afterrun.plots.theme import SCREEN, Theme
from afterrun.plots.write import check_format, csv_bytes, render, write_atomic

FOLDER = "figures"
MANIFEST = "manifest.json"
VERSION = 1

OVERVIEW = "curves"
"""Drawn of runs without alarms where no run has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """What was drawn and what was not."""

    drawn: tuple[Drawn, ...] = ()
    """By run in the order of ``views``, the most telling figure of a run first."""
    faults: tuple[str, ...] = ()
    """One sentence for each figure that broke."""
    left_out: int = 0
    """Figures that the limit kept out, those included that would have had nothing to show."""


Task = tuple[str, Figure]


def draw_pack(
    views: Mapping[str, RunView],
    findings: Sequence[Finding],
    out: Path,
    *,
    formats: Sequence[str] = ("png", "svg"),
    limit: int | None = 24,
    theme: Theme = SCREEN,
) -> Pack:
    """Draw at most ``limit`` figures into ``out/figures/<run>/`` and list them in ``out/manifest.json``.

    ``limit=None`` draws every figure of every run, 0 none. Raises ``ValueError`` for an unknown format
    and ``OSError`` where ``out`` cannot be written.
    """
    for fmt in formats:
        check_format(fmt)
    folders = safe_names(views)
    made: list[Drawn] = []
    faults: list[str] = []
    waiting = list(choose(views, findings, limit))
    while waiting and (limit is None or len(made) < limit):
        run, figure = waiting.pop(0)
        try:
            prepared = figure.prepare(views[run], [f for f in findings if f.run == run])
            if isinstance(prepared, Skip):
                continue
            files = _files(figure, prepared, formats, theme)
        except Exception as error:  # noqa: BLE001  # a figure may break on any input; the others go on
            faults.append(_fault(run, figure, error))
            continue
        names = {kind: f"{FOLDER}/{folders[run]}/{figure.name}.{kind}" for kind in files}
        for kind, data in files.items():
            write_atomic(out / names[kind], data)
        made.append(_drawn(run, figure, prepared, names))
    order = {run: i for i, run in enumerate(views)}
    made.sort(key=lambda drawn: order[drawn.run])
    pack = Pack(drawn=tuple(made), faults=tuple(faults), left_out=len(waiting))
    write_manifest(out, pack.drawn)
    return pack


def choose(views: Mapping[str, RunView], findings: Sequence[Finding], limit: int | None) -> Iterator[Task]:
    """Figures in the order in which they deserve to be drawn."""
    if limit == 0:
        return
    alarms: dict[str, list[Finding]] = {}
    for f in sorted((f for f in findings if f.is_alarm and f.run in views), key=rank_order):
        alarms.setdefault(f.run, []).append(f)
    telling = [[(run, f) for f in _telling(found)] for run, found in alarms.items()]
    first = [task for level in zip_longest(*telling) for task in level if task is not None]
    yield from first
    if limit is None:
        known = {(run, f.name) for run, f in first}
        yield from ((run, f) for run in views for f in figures().values() if (run, f.name) not in known)
    elif not first and OVERVIEW in figures():
        yield from ((run, figures()[OVERVIEW]) for run in views)


def _telling(alarms: Sequence[Finding]) -> list[Figure]:
    """Figures that illustrate these alarms (worst first), the one made for the worst of them first."""
    rank = {f.code: i for i, f in reversed(list(enumerate(alarms)))}
    found = [f for f in figures().values() if set(f.codes) & set(rank)]
    return sorted(found, key=lambda f: (min(rank[c] for c in f.codes if c in rank), len(f.codes)))


def _files(figure: Figure, prepared: Prepared, formats: Sequence[str], theme: Theme) -> dict[str, bytes]:
    artists = figure.draw(prepared, theme)
    return {**{fmt: render(artists, fmt, theme) for fmt in formats}, "csv": csv_bytes(prepared.frame)}


def _drawn(run: str, figure: Figure, prepared: Prepared, files: Mapping[str, str]) -> Drawn:
    return Drawn(
        name=figure.name, run=run, title=prepared.title, alt=prepared.alt, codes=prepared.codes, files=files
    )


def _fault(run: str, figure: Figure, error: Exception) -> str:
    return f"figure {figure.name} of run {display_name(run)}: {type(error).__name__}: {display_name(str(error), 200)}"


def write_manifest(out: Path, drawn: Sequence[Drawn], generated: Mapping[str, object] | None = None) -> None:
    """``manifest.json``: every figure with its files and their SHA-256.

    ``generated`` (command, duration, engine) is the only part that may differ between two draws of the
    same input.
    """
    document = {
        "version": VERSION,
        "generated": dict(generated or {}),
        "figures": [
            {
                "name": d.name,
                "run": d.run,
                "title": d.title,
                "alt": d.alt,
                "codes": list(d.codes),
                "files": {
                    kind: {"path": path, "sha256": hashlib.sha256((out / path).read_bytes()).hexdigest()}
                    for kind, path in d.files.items()
                },
            }
            for d in drawn
        ],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    write_atomic(out / MANIFEST, text.encode("utf-8", "backslashreplace"))
