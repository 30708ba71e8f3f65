"""The result of analysing a collection: what the report, the gate and the notebook read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from afterrun.analyzer.finding import Finding, rank_order
from afterrun.analyzer.view import RunView
from afterrun.loaders.collection import Collection


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Everything known about a set of runs. Frozen."""

    collection: Collection
    views: Mapping[str, RunView]
    """One view a run, in the order of the ``runs`` table."""
    findings: tuple[Finding, ...]
    """Ordered by run, code and onset."""
    faults: tuple[str, ...] = ()
    """Passes that broke on a run: one sentence each; the other passes went on."""

    def of_run(self, run: str) -> list[Finding]:
        """Findings of one run, worst first."""
        return sorted((f for f in self.findings if f.run == run), key=rank_order)
