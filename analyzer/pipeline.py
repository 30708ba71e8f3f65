"""One run through all passes: what is missing is answered here, what breaks costs one pass of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import polars as pl

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding, onset_order
from afterrun.analyzer.registry import Pass, build
from afterrun.analyzer.view import RunView
from afterrun.loaders.collection import Collection
from afterrun.loaders.schema import Tables


def analyse(
    collection: Collection,
    passes: Sequence[Pass] | None = None,
    *,
    pairs: Sequence[tuple[str, str]] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """All passes over all runs of a collection. Runs do not see each other."""
    passes = build() if passes is None else passes
    views: dict[str, RunView] = {}
    findings: list[Finding] = []
    faults: list[str] = []
    parts = _by_run(collection.tables)
    for number, (name, tables) in enumerate(parts.items(), 1):
        view = RunView(
            name=name,
            tables=tables,
            now_ns=collection.newest_ns,
            overrides=collection.overrides,
            pairs_given=tuple(pairs),
        )
        view, broken = run_passes(view, passes)
        views[name] = view
        faults += broken
        findings += [f for found in view.earlier.values() for f in found]
        if progress:
            progress(number, len(parts))
    return Analysis(
        collection=collection,
        views=views,
        findings=tuple(sorted(findings, key=onset_order)),
        faults=tuple(faults),
    )


def run_passes(view: RunView, passes: Sequence[Pass]) -> tuple[RunView, list[str]]:
    """(the view with all findings in ``earlier``, one sentence for each pass that broke)."""
    faults: list[str] = []
    sampled = _sampled(view.tables.sources)
    for one in passes:
        missing = unmet(one.needs, view.tables)
        if missing:
            found = [_abstained(one, view, missing)]
        else:
            try:
                found = sorted(one.run(view), key=onset_order)
                if one.every_point and sampled:
                    found = [_doubted(f, sampled) for f in found]
            except Exception as error:  # noqa: BLE001  # the fault wall around one pass of one run
                faults.append(f"{view.name}: the pass {one.code} failed ({type(error).__name__}: {error})")
                found = [_abstained(one, view, ("an answer: the pass failed, please report it",))]
        view = view.with_earlier(found)
    return view, faults


def _sampled(sources: pl.DataFrame) -> Mapping[str, int]:
    """Rows of the sources that hold a sample of their run's rows."""
    kept = sources.filter(pl.col("sampled")).select(pl.col("source").cast(pl.String), "rows")
    return dict(kept.iter_rows())


def _doubted(finding: Finding, sampled: Mapping[str, int]) -> Finding:
    """The same claim as *possible* where points it rests on come from a sample, saying so."""
    rests_on = [e.source for e in finding.evidence] or sampled
    source = next((name for name in rests_on if name in sampled), None)
    if finding.status not in ("confirmed", "refuted") or source is None:
        return finding
    missing = f"every row of the run: {source} holds a sample of it ({sampled[source]:,} values)"
    title = f"{finding.title.removesuffix('.')}, as far as a sample of the rows tells."
    status = "possible" if finding.status == "confirmed" else "refuted"
    return msgspec.structs.replace(finding, status=status, title=title, missing=(*finding.missing, missing))


def unmet(needs: Sequence[str], tables: Tables) -> tuple[str, ...]:
    """Which of the needs (``table``, ``table:metric``, ``table:metric/split``) nothing was recorded for."""
    return tuple(need for need in needs if not _recorded(need, tables))


def _recorded(need: str, tables: Tables) -> bool:
    table, _, rest = need.partition(":")
    frame: pl.DataFrame = getattr(tables, table)
    metric, _, split = rest.partition("/")
    if metric:
        frame = frame.filter(pl.col("metric") == metric)
    if split:
        frame = frame.filter(pl.col("split") == split)
    return not frame.is_empty()


_NEED_WORDS = {
    "metrics": "no metric values",
    "histograms": "no histograms",
    "spans": "no spans (a profiler trace)",
    "samples": "no counter samples",
    "kernels": "no kernel profile",
    "marks": "no marks (a text log)",
    "params": "no parameters",
}


def _abstained(one: Pass, view: RunView, missing: Sequence[str]) -> Finding:
    words = [f"no {m.partition(':')[2]}" if ":" in m else _NEED_WORDS.get(m, m) for m in missing]
    return Finding(
        code=one.code,
        status="abstained",
        severity="info",
        run=view.name,
        title=f"Not assessable: {', '.join(words)} recorded"
        if words[0].startswith("no ")
        else f"Not assessable: {words[0]}",
        parameters=one.parameters(),
        missing=tuple(words),
    )


def _by_run(tables: Tables) -> dict[str, Tables]:
    """Tables of each run, in the order of the ``runs`` table; each table is split once."""
    names = tables.run_names()
    parts: dict[str, dict[str, pl.DataFrame]] = {name: {} for name in names}
    for table, frame in tables.items():
        for (run,), part in frame.partition_by("run", as_dict=True, maintain_order=True).items():
            parts[str(run)][table] = part
    return {name: Tables(**frames) for name, frames in parts.items()}
