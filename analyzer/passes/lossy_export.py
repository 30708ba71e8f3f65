"""Lossy export: a source that holds a sample of the rows that the run logged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from afterrun.analyzer.finding import Evidence, Finding, jsonable
from afterrun.analyzer.prose import count
from afterrun.analyzer.registry import Explanation, Pass
from afterrun.analyzer.verdicts import refuted
from afterrun.analyzer.view import RunView


@dataclass(frozen=True, kw_only=True)
class LossyExport(Pass):
    """Curves read from a sample, and whether nothing else holds them whole."""

    code: ClassVar[str] = "lossy-export"
    title: ClassVar[str] = "Export with rows left out"
    about: ClassVar[str] = "job"
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The curves were read from an export that holds a sample of what the run logged. Spikes, single NaN and the true extremes may lie between its rows.",
        rule="Loaders mark a source that is a sample: 500 rows of a W&B history at irregular steps, the 1,000 points of TensorBoard's page, a chart whose band shows that each point stands for many. "
        "A warning where a curve of the run comes from such a source alone, information where another source holds all rows. Passes that need every row then claim nothing for sure.",
        abstains="Never: where no source is marked, the answer is that none is.",
        confused_with="A run that logs every so many steps, whose rows are regular; a log that was cut.",
        remedies=(
            "Take the whole history: the .wandb file of the run folder, run.scan_history() instead of run.history(), the event files instead of the page's download.",
            "Log minimum and maximum of a window beside its mean if the rows have to be few.",
        ),
        sources=(
            "W&B documentation: run.history() samples, run.scan_history() does not",
            "TensorBoard: the page keeps 1,000 scalars of a tag",
        ),
    )

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about all sources of the run."""
        sources = view.tables.sources.select(pl.col("source", "note").cast(pl.String), "sampled", "rows")
        sampled = sources.filter("sampled")
        if sampled.is_empty():
            yield refuted(self, view, f"No source is a sample ({count(len(sources), 'source')} read).")
            return
        names = set(sampled["source"])
        alone = sorted({s.tag for s in view.series if s.source in names})
        first = sampled.row(0, named=True)
        values: dict[str, Any] = {
            "sampled_sources": sorted(names),
            "tags": alone,
            "rows": int(sampled["rows"].sum()),
        }
        told = f" ({first['note']})" if first["note"] else ""
        title = f"{first['source']} holds a sample of the rows of the run{told}"
        title += (
            f": {count(len(alone), 'curve')} known from it alone."
            if alone
            else ": another source holds all curves whole."
        )
        yield Finding(
            code=self.code,
            status="confirmed",
            severity="warning" if alone else "info",
            run=view.name,
            title=title,
            evidence=tuple(
                Evidence(source=row["source"], value=row["rows"], note=row["note"] or "a sample of the rows")
                for row in sampled.iter_rows(named=True)
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies if alone else (),
            values=jsonable(values),
        )
