"""What the host did: CUDA calls, waits for a device, calls of the operating system, ranges that a program marked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import polars as pl

from afterrun.loaders.traces.lanes import host_lane, step_of
from afterrun.loaders.traces.nsys.names import UNNAMED, Names, constant, joined
from afterrun.loaders.traces.nsys.store import Store
from afterrun.loaders.traces.nsys.timing import process_of, thread_of, timed

RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
OSRT = "OSRT_API"
NVTX = "NVTX_EVENTS"
TABLES = (RUNTIME, SYNC, OSRT, NVTX)

_COLUMNS = ("process", "lane", "track", "name", "start_ns", "dur_ns")
_API_VERSION = r"_v\d+$"
_SYNCED_BY = (
    ("DeviceSynchronize|CtxSynchronize", "Context Sync"),
    ("StreamSynchronize", "Stream Sync"),
    ("EventSynchronize|EventQuery", "Event Sync"),
    ("StreamWaitEvent", "Stream Wait Event"),
)
"""Kind of a wait by the call that caused it. The numbers of ``syncType`` changed their meaning between versions."""

_RANGES, _MARK, _DOMAIN = (59, 60, 70, 71), 34, 75
"""``eventType`` of push/pop and start/end ranges (70 and 71 from text files), of marks, of the naming of a domain."""
_OPERATOR_NUMBER = r", (?:seq|op_id|sizes|input_op_ids) = .*$"
"""What ``torch.autograd.profiler.emit_nvtx`` puts behind the name of an operator, other for each call."""


class Host:
    """Reads the tables of the host; rows that cannot be used are counted in ``damaged``."""

    def __init__(self, store: Store, names: Names, clock_ns: int) -> None:
        self._store = store
        self._names = names
        self._clock_ns = clock_ns
        self.damaged = 0
        self.unended = 0
        """Ranges that were open when the capture ended."""

    def calls(self) -> Iterator[pl.DataFrame]:
        """CUDA runtime and driver calls, without the version of the interface in their names."""
        yield from self._named(RUNTIME, "runtime", "correlationId")

    def os_calls(self) -> Iterator[pl.DataFrame]:
        """Calls of the operating system that may block."""
        yield from self._named(OSRT, "os")

    def _named(self, table: str, lane: str, corr: str | None = None) -> Iterator[pl.DataFrame]:
        more = [corr] if corr else []
        for chunk in self._store.chunks(table, ["start", "end", "globalTid", "nameId", *more]):
            rows = self._sound(chunk)
            found = self._names.of(rows["nameId"]).select(
                pl.col("id").alias("nameId"), pl.col("value").str.replace(_API_VERSION, "").alias("name")
            )
            rows = joined(rows, "nameId", found, {"name": UNNAMED})
            yield rows.with_columns(constant(lane).alias("lane")).select(
                *_COLUMNS, *(pl.col(c).alias("corr") for c in more)
            )

    def _sound(self, chunk: pl.DataFrame) -> pl.DataFrame:
        rows, damaged = timed(chunk, self._clock_ns)
        self.damaged += damaged
        return rows.with_columns(process_of("globalTid"), thread_of("globalTid"))

    def waits(self, calls: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Waits that CUPTI recorded, called by and put on the thread of the call that caused them."""
        for chunk in self._store.chunks(SYNC, ["start", "end", "correlationId", "globalPid"]):
            rows, damaged = timed(chunk, self._clock_ns)
            self.damaged += damaged
            rows = rows.with_columns(process_of("globalPid"), pl.col("correlationId").alias("corr"))
            causes = calls.join(rows.select("process", "corr").unique(), on=["process", "corr"], how="semi")
            causes = causes.unique(["process", "corr"], keep="first").select(
                "process", "corr", "track", _sync_kind()
            )
            rows = rows.join(causes, on=["process", "corr"], how="left", maintain_order="left")
            yield rows.with_columns(
                pl.col("name").fill_null("Sync").cast(pl.Categorical),
                pl.col("track").fill_null(0),
                constant("sync").alias("lane"),
            ).select(*_COLUMNS, "corr")

    def ranges(self) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """NVTX ranges as rows of ``spans`` and NVTX marks as rows of ``marks``."""
        domains: dict[tuple[int | None, int], str] = {}
        found: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        columns = ["start", "end", "eventType", "globalTid", "textId", "domainId"]
        for chunk in self._store.chunks(NVTX, columns, ["text"]):
            known = self._names.of(chunk["textId"]).rename({"id": "textId", "value": "registered"})
            rows = chunk.join(known, on="textId", how="left", maintain_order="left")
            rows = rows.with_columns(
                pl.coalesce("text", "registered").alias("label"), process_of("globalTid")
            )
            named = rows.filter((pl.col("eventType") == _DOMAIN) & pl.col("domainId").is_not_null())
            for process, domain, name in named.select("process", "domainId", "label").iter_rows():
                domains.setdefault((process, domain), name or "")
            found.append((self._ranges(rows), self._marks(rows)))
        table = pl.DataFrame(
            [(*key, name) for key, name in domains.items()],
            schema={"process": pl.Int64, "domainId": pl.Int64, "domain": pl.String},
            orient="row",
        )
        for ranges, marks in found:
            yield _explained(ranges, table), marks

    def _ranges(self, rows: pl.DataFrame) -> pl.DataFrame:
        rows = rows.filter(pl.col("eventType").is_in(_RANGES))
        ended = rows.filter(pl.col("end").is_not_null() | pl.col("start").is_null())
        self.unended += len(rows) - len(ended)
        name = pl.col("label").str.replace(_OPERATOR_NUMBER, "").fill_null(UNNAMED).cast(pl.Categorical)
        return self._sound(ended).select(
            "process", "track", name.alias("name"), "start_ns", "dur_ns", "domainId"
        )

    def _marks(self, rows: pl.DataFrame) -> pl.DataFrame:
        rows = rows.filter(pl.col("eventType") == _MARK).with_columns(pl.col("start").alias("end"))
        sound, damaged = timed(rows, self._clock_ns)
        self.damaged += damaged
        return sound.select(
            pl.col("start_ns").alias("t_ns"), constant("nvtx").alias("kind"), pl.col("label").alias("text")
        )


def _explained(ranges: pl.DataFrame, domains: pl.DataFrame) -> pl.DataFrame:
    """Ranges with their lane and, where they mark a step, its number."""
    out = ranges.join(
        domains, on=["process", "domainId"], how="left", maintain_order="left", nulls_equal=True
    )
    table = out.select("name", "domain").unique()
    meant = [_meaning(name, domain) for name, domain in table.iter_rows()]
    table = table.with_columns(
        pl.Series("lane", [lane for lane, _ in meant], dtype=pl.Categorical),
        pl.Series("step", [step for _, step in meant], dtype=pl.Int64),
    )
    out = out.join(table, on=["name", "domain"], how="left", maintain_order="left", nulls_equal=True)
    return out.select(*_COLUMNS, "step")


def _sync_kind() -> pl.Expr:
    name = pl.col("name").cast(pl.String)
    kind = pl.lit(None, dtype=pl.String)
    for rule, called in reversed(_SYNCED_BY):
        kind = pl.when(name.str.contains(rule)).then(pl.lit(called)).otherwise(kind)
    return kind.alias("name")


@lru_cache(maxsize=1 << 16)
def _meaning(name: str, domain: str | None) -> tuple[str, int | None]:
    """Lane and step of a range; one that says nothing is what its domain is (``NCCL``)."""
    lane = host_lane(name)
    return (host_lane(domain) if lane == "annotation" and domain else lane), step_of(name)
