"""Log bloat: logs that take more room than what they tell is worth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from afterrun.analyzer.finding import Effect, Evidence, Finding, jsonable
from afterrun.analyzer.prose import count, number, percent
from afterrun.analyzer.registry import Explanation, Pass, threshold
from afterrun.analyzer.verdicts import abstained, refuted
from afterrun.analyzer.view import RunView

MIB, GIB = 2.0**20, 2.0**30


@dataclass(frozen=True, kw_only=True)
class LogBloat(Pass):
    """Bytes of the run's logs, all together and for each value that was recorded."""

    code: ClassVar[str] = "log-bloat"
    title: ClassVar[str] = "Logs that take much room"
    about: ClassVar[str] = "job"
    needs: ClassVar[tuple[str, ...]] = ()
    explain: ClassVar[Explanation] = Explanation(
        meaning="The logs of this run are large for what they hold. Uploading and reading them takes time, and a full disk ends runs.",
        rule="Bytes of all logs of the run, traces left out, and the bytes of one recorded value. Information when they take at least min_gib together, or at least value_kib a value and more than small_mib together; copies of one history in several files are counted.",
        abstains="Without any log whose size is known.",
        confused_with="Profiler traces, which are large by nature; media (images, audio) that were meant to be kept.",
        remedies=(
            "Log histograms, images and text less often: they are most of a large event file.",
            "Keep one writer: the same history in event files, a CSV and checkpoint copies is read three times and trusted once.",
            "Let the trainer keep only its last checkpoints' state files, or move old logs to cold storage packed.",
        ),
        sources=("wandb issue 2292: a .wandb file of 6 GB", "tensorboard issue 1002: event files of 7 GB"),
    )

    min_gib: float = threshold(2.0, "size of all logs that is told", unit="GiB")
    value_kib: float = threshold(4.0, "bytes of one recorded value that are told", unit="KiB")
    small_mib: float = threshold(200.0, "logs smaller than this are no burden", unit="MiB")

    def run(self, view: RunView) -> Iterable[Finding]:
        """One finding about all logs of the run."""
        logs = view.tables.sources.filter(
            ~pl.col("source")
            .cast(pl.String)
            .is_in(view.tables.spans["source"].cast(pl.String).unique().implode())
            & pl.col("bytes").is_not_null()
        )
        total = float(logs["bytes"].sum())
        if logs.is_empty() or total <= 0:
            yield abstained(
                self, view, "Not assessable: no size of a log is recorded.", ("a log with a size",)
            )
            return
        values_recorded = int(logs["rows"].sum())
        each = total / max(values_recorded, 1)
        top = logs.sort("bytes", descending=True).row(0, named=True)
        values: dict[str, Any] = {
            "total_bytes": total,
            "values": values_recorded,
            "bytes_per_value": each,
            "largest_source": str(top["source"]),
            "largest_bytes": int(top["bytes"]),
            "sources": len(logs),
        }
        size = f"{number(total / GIB)} GiB" if total >= GIB else f"{number(total / MIB)} MiB"
        said = f"{count(len(logs), 'log')} of {size} hold {count(values_recorded, 'value')}"
        wasteful = each >= self.value_kib * 1024 and total >= self.small_mib * MIB
        if total < self.min_gib * GIB and not wasteful:
            yield refuted(self, view, f"{said}: no burden.", jsonable(values))
            return
        share = 100 * int(top["bytes"]) / total
        yield Finding(
            code=self.code,
            status="confirmed",
            severity="info",
            run=view.name,
            title=f"{said}, {number(each / 1024, 2)} KiB each; {percent(share)} of it is {top['source']}.",
            effect=Effect(value=each, unit="bytes a recorded value", method="sizes of the files, exact"),
            evidence=(
                Evidence(source=str(top["source"]), value=int(top["bytes"]), note="bytes of the largest log"),
            ),
            parameters=self.parameters(),
            advice=self.explain.remedies,
            values=jsonable(values),
        )
