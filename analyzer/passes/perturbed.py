"""Perturbed: a profiler that changes what it measures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from afterrun.analyzer.finding import Finding, jsonable
from afterrun.analyzer.prose import count, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

HEAVY = ("with_stack", "record_shapes", "profile_memory", "with_modules", "with_flops")
"""Options of PyTorch's profiler that lengthen every operator."""


@dataclass(frozen=True)
class Perturbed(Pass):
    """Signs that the recording itself slowed the host down, or lost records."""

    code: ClassVar[str] = "perturbed"
    title: ClassVar[str] = "Recording perturbs the run"
    about: ClassVar[str] = "job"
    needs: ClassVar[tuple[str, ...]] = ("spans",)
    explain: ClassVar[Explanation] = Explanation(
        meaning="The trace was recorded with options or tools that lengthen host calls, so launch and Python times are longer than in the plain run; or the tool says that it lost records.",
        rule="Told as possible information when Python frames or stacks were recorded, when an option that costs per operator is on, or when the tool left a diagnostic. Host times are then upper bounds.",
        abstains="Without a trace.",
        confused_with="A host that is slow by itself.",
        remedies=(
            "Profile again without stacks, shapes and memory before you trust a launch-bound verdict.",
            "Record fewer steps, after a warm-up, so that buffers do not overflow.",
        ),
        sources=(
            "PyTorch documentation: torch.profiler, overhead of with_stack, record_shapes, profile_memory",
        ),
    )

    python_share_pct: float = threshold(1.0, "share of the host's rows that are Python frames", unit="%")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about the run's traces."""
        host = view.tables.spans.filter(pl.col("device").is_null())
        if host.is_empty():
            yield abstained(self, view, "Not assessable: the trace holds no host events.", ("host events",))
            return
        python = 100.0 * int((host["lane"] == "python").sum()) / len(host)
        options = [o for o in HEAVY if _true(view.params.get(f"trace.{o}"))]
        told = view.tables.marks.filter(pl.col("kind") == "diagnostic")
        values: dict[str, Any] = {
            "python_rows_pct": python,
            "options": options,
            "diagnostics": [str(t) for t in told["text"].head(5)],
        }
        reasons = [
            f"Python frames are {percent(python)} of the host's rows"
            if python >= self.python_share_pct
            else "",
            f"recorded with {', '.join(options)}" if options else "",
            f"the tool left {count(len(told), 'diagnostic')}: {values['diagnostics'][0]}"
            if len(told)
            else "",
        ]
        said = [r for r in reasons if r]
        if not said:
            yield refuted(
                self, view, "Nothing says that the recording slowed the run down.", jsonable(values)
            )
            return
        yield Finding(
            code=self.code,
            status="possible",
            severity="info",
            run=view.name,
            title=f"Host times of this trace are upper bounds: {'; '.join(said)}.",
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )


def _true(text: str | None) -> bool:
    try:
        return bool(json.loads(text)) if text else False
    except ValueError:
        return False
