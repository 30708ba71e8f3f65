"""Traces from a few plain calls, so that a pass is tested without any file. Times in microseconds, written as ns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from afterrun.analyzer.view import RunView
from afterrun.loaders.schema import SCHEMAS, Tables
from tests.support.tables import make_tables

US = 1_000
MAIN = 100
"""The thread that launches, unless another is named."""


@dataclass
class TraceBook:
    """Rows of one run's spans, written down one call after the other."""

    rank: int | None = None
    process: int | None = 1
    rows: list[dict[str, Any]] = field(default_factory=list)
    corr: int = 0

    def span(self, lane: str, name: str, start_us: float, dur_us: float, **more: Any) -> None:
        """Any span; ``device`` null, thread ``MAIN`` unless given."""
        row = {
            "run": "run",
            "source": "made",
            "attempt": 1,
            "rank": self.rank,
            "process": self.process,
            "device": None,
            "lane": lane,
            "track": MAIN,
            "name": name,
            "start_ns": round(start_us * US),
            "dur_ns": round(dur_us * US),
            "corr": None,
            "step": None,
            "bytes": None,
            "group": None,
        }
        self.rows.append(row | more)

    def work(
        self,
        start_us: float,
        dur_us: float,
        *,
        called_us: float | None = None,
        call_us: float = 3.0,
        name: str = "kernel",
        lane: str = "kernel",
        stream: int = 7,
        device: int = 0,
        thread: int = MAIN,
        bytes_: int | None = None,
        call: str = "cudaLaunchKernel",
        group: str | None = None,
    ) -> None:
        """Work on a device; with ``called_us``, also the call that launched it."""
        corr = None
        if called_us is not None:
            self.corr += 1
            corr = self.corr
            self.span("runtime", call, called_us, call_us, track=thread, corr=corr)
        self.span(
            lane, name, start_us, dur_us, device=device, track=stream, corr=corr, bytes=bytes_, group=group
        )

    def frame(self) -> pl.DataFrame:
        """The rows as the table of the schema."""
        return pl.DataFrame(self.rows, schema=SCHEMAS["spans"])

    def view(self, *others: TraceBook, **options: Any) -> RunView:
        """The view of a run with these spans, and those of other ranks; curves and params as ``make_tables`` takes them."""
        curves = options.pop("curves", {"epoch": ([0], [0.0])})
        tables: Tables = make_tables(curves, **options)
        spans = pl.concat([book.frame() for book in (self, *others)])
        return RunView(name="run", tables=tables.with_(spans=spans).validate())
