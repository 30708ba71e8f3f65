"""The Python face: ``afterrun.analyze(path)`` and the result it returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.pipeline import analyse
from afterrun.analyzer.registry import build
from afterrun.loaders.collect import LoadOptions, collect
from afterrun.loaders.collection import Collection
from afterrun.loaders.discover import CANNOT
from afterrun.loaders.errors import NothingToAnalyseError
from afterrun.loaders.schema import Tables
from afterrun.paths import Opened, opened
from afterrun.settings import Settings, given_pairs, name_overrides, now_ns
from afterrun.settings import load as settings_of

if TYPE_CHECKING:
    from afterrun.plots.drawing import Drawing


class Result:
    """What ``analyze`` found. Frames are polars; ``.to_pandas()`` is one call away."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis

    @property
    def tables(self) -> Any:
        """All nine tables of the unified schema."""
        return self.analysis.collection.tables

    @property
    def metrics(self) -> pl.DataFrame:
        """All metric values, one row an observation."""
        return self.analysis.collection.tables.metrics

    @cached_property
    def findings(self) -> pl.DataFrame:
        """Findings as a frame: code, status, severity, run, title, step, wasted_gpu_s; worst first."""
        rows = [
            _finding_row(f) for run in self.runs["run"].cast(pl.String) for f in self.analysis.of_run(run)
        ]
        return pl.DataFrame(rows, schema=_FINDING_COLUMNS)

    @property
    def runs(self) -> pl.DataFrame:
        """One row a run."""
        return self.analysis.collection.tables.runs

    @cached_property
    def figures(self) -> dict[str, Drawing]:
        """Figures by name (one run) or by ``run/name``, drawn when shown or saved.

        ``result.figures["gap"].to_svg("gap.svg", style="paper", columns=1)``
        """
        return _drawings(self.analysis)

    def __repr__(self) -> str:
        """The verdict of each run, a line each."""
        from afterrun.plots.report.story import headline, order_runs, verdict  # noqa: PLC0415  # drawing side, lazy

        views = self.analysis.views
        verdicts = [f"{n}  {verdict(views[n], self.analysis.of_run(n))}" for n in order_runs(self.analysis)]
        return "\n".join([headline(self.analysis), *verdicts])

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdicts, the first figure, the findings that look like trouble."""
        import base64  # noqa: PLC0415  # notebooks only
        from html import escape  # noqa: PLC0415  # notebooks only

        body = "<br>".join(escape(line) for line in repr(self).splitlines())
        first = next(iter(self.figures.values()), None)
        picture = ""
        if first is not None:
            png = base64.b64encode(first._repr_png_()).decode()
            alt = escape(first.prepared.alt, quote=True)
            picture = f'<img alt="{alt}" src="data:image/png;base64,{png}">'
        trouble = self.findings.filter(pl.col("status").is_in(["confirmed", "possible"]))
        return f"<div>{body}</div>{picture}{trouble._repr_html_()}"


def _drawings(analysis: Analysis) -> dict[str, Drawing]:
    """Figures that have something to show, by name (one run) or ``run/name``, the worst run first."""
    from afterrun.plots.drawing import Drawing  # noqa: PLC0415  # drawing side, lazy
    from afterrun.plots.registry import Prepared, figures  # noqa: PLC0415  # as above
    from afterrun.plots.report.story import order_runs  # noqa: PLC0415  # as above

    single = len(analysis.views) == 1
    ready: dict[str, Drawing] = {}
    for run in order_runs(analysis):
        for name, figure in figures().items():
            prepared = figure.prepare(analysis.views[run], analysis.of_run(run))
            if isinstance(prepared, Prepared):
                ready[name if single else f"{run}/{name}"] = Drawing(kind=figure, prepared=prepared)
    return ready


def analyze(
    *paths: str | Path,
    settings: Settings | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002  # the word of the command line
    pairs: Iterable[str] = (),
) -> Result:
    """Read everything below the paths and diagnose every run.

    ``map`` gives the meaning of tags (``{"dev/xent": "loss:val"}``), ``pairs`` names curves that belong
    together (``["train/loss=dev/xent"]``). Raises ``NothingToAnalyseError`` where no log is found.
    """
    chosen = settings or settings_of(None, {"metrics": dict(map or {}), "pairs": list(pairs)})
    with opened([str(p) for p in paths]) as ready:
        return Result(analyse_paths(ready, chosen))


def load(
    *paths: str | Path,
    tags: Iterable[str] = (),
    map: Mapping[str, str] | None = None,  # noqa: A002  # the word of the command line
) -> Tables:
    """Read everything below the paths into the nine tables, without a diagnosis.

    ``tags`` are names, globs (``"val/*"``) or canonical metrics (``"loss"``); where some are given, other metrics are
    left out, and formats that can do without do not read them. ``map`` is that of ``analyze``. Raises
    ``NothingToAnalyseError`` where no log is found.
    """
    settings = settings_of(None, {"metrics": dict(map or {})})
    with opened([str(p) for p in paths]) as ready:
        collection = collect(ready.paths, load_options(settings, tags), left_out=ready.left_out)
    if not collection.runs:
        raise nothing_found(collection)
    return collection.tables


def load_options(settings: Settings, tags: Iterable[str] = ()) -> LoadOptions:
    """What the settings say about reading."""
    return LoadOptions(
        group=settings.group,
        verify=settings.verify,
        overrides=name_overrides(settings),
        now_ns=now_ns(settings),
        tags=tuple(tags),
    )


def analyse_paths(ready: Opened, settings: Settings, **progress: Any) -> Analysis:
    """Collection and passes for ready paths; the shared road of the API and the command line."""
    options = load_options(settings)
    passes = build(settings.passes)
    given = given_pairs(settings)
    collection = collect(ready.paths, options, progress.get("reading"), left_out=ready.left_out)
    if not collection.runs:
        raise nothing_found(collection)
    return analyse(collection, passes, pairs=given, progress=progress.get("analysing"))


def nothing_found(collection: Collection) -> NothingToAnalyseError:
    """The error of an input without a run; what could not be opened is named, for it may hold one."""
    closed = [u for u in collection.unclaimed if u.reason.startswith(CANNOT)]
    if closed:
        told = "; ".join(f"{u.path or 'PATH'} {u.reason}" for u in closed[:MOST_NAMED])
        return NothingToAnalyseError(f"no training log found: {told}")
    seen = len(collection.unclaimed)
    return NothingToAnalyseError(
        f"no training log found ({seen} file{'' if seen == 1 else 's'} looked at); "
        "'afterrun inspect PATH' says what each one is"
    )


MOST_NAMED = 3
"""Files named in the message that nothing was found."""

_FINDING_COLUMNS = {
    "run": pl.String,
    "code": pl.String,
    "status": pl.String,
    "severity": pl.String,
    "title": pl.String,
    "step": pl.Int64,
    "step_end": pl.Int64,
    "wasted_gpu_s": pl.Float64,
}


def _finding_row(f: Finding) -> dict[str, Any]:
    return {
        "run": f.run,
        "code": f.code,
        "status": f.status,
        "severity": f.severity,
        "title": f.title,
        "step": f.where.step_start,
        "step_end": f.where.step_end,
        "wasted_gpu_s": f.wasted_gpu_s,
    }
