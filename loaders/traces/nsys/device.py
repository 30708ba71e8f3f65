"""What ran on devices: kernels, copies, memsets, and whole CUDA graphs where their kernels are not recorded."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from afterrun.loaders.traces.lanes import COPY_KINDS, copy_name, kernel_lane
from afterrun.loaders.traces.nsys.names import UNNAMED, Names, constant, joined
from afterrun.loaders.traces.nsys.store import Store
from afterrun.loaders.traces.nsys.timing import Sound, on_device, timed

KERNEL, MEMCPY, MEMSET = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
TABLES = (KERNEL, MEMCPY, MEMSET, GRAPH)

_PLACE = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_COLUMNS = ("process", "device", "lane", "track", "name", "start_ns", "dur_ns", "corr")
_UNIFIED = {11: "HtoD", 12: "DtoH", 13: "DtoD"}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
"""Kinds of memory as the exporter numbers them, which is not CUPTI's numbering."""
MEMORY_ENUM = "ENUM_CUDA_MEM_KIND"
_UNKNOWN = "Unknown"


class Devices:
    """Reads the tables of a device one after the other and remembers which launches are recorded node by node."""

    def __init__(self, store: Store, names: Names, clock_ns: int) -> None:
        self._store = store
        self._names = names
        self._clock_ns = clock_ns
        self._memory = _memory_kinds(store)
        self._node = ("graphNodeId",) if store.has(GRAPH) else ()
        self._nodes: list[pl.DataFrame] = []
        self.damaged = 0
        self.expanded = 0
        """Graph launches that were left out, for their kernels are there."""

    def spans(self) -> Iterator[pl.DataFrame]:
        """Rows of ``spans``, table by table."""
        for rows in self._rows(KERNEL, "demangledName", "shortName", *self._node):
            yield self._kernels(rows)
        for rows in self._rows(MEMCPY, "bytes", "copyKind", "srcKind", "dstKind", *self._node):
            yield self._copies(rows)
        for rows in self._rows(MEMSET, "bytes", "memKind", *self._node):
            yield self._sets(rows)
        for rows in self._rows(GRAPH, "graphId", "graphExecId"):
            yield self._graphs(rows)

    def _rows(self, table: str, *columns: str) -> Iterator[pl.DataFrame]:
        for chunk in self._store.chunks(table, [*_PLACE, *columns]):
            sound: Sound = on_device(timed(chunk, self._clock_ns, "deviceId"))
            self.damaged += sound.damaged
            if "graphNodeId" in sound.rows.columns:
                nodes = sound.rows.filter(pl.col("graphNodeId").is_not_null() & pl.col("corr").is_not_null())
                self._nodes.append(nodes.select("process", "corr").unique())
            yield sound.rows

    def _kernels(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Kernels by their full name, as other traces have it."""
        rows = rows.with_columns(pl.coalesce("demangledName", "shortName").alias("id"))
        table = self._names.of(rows["id"]).rename({"value": "name"})
        table = table.with_columns(
            pl.Series("lane", [kernel_lane(n) for n in table["name"]], dtype=pl.String)
        )
        return joined(rows, "id", table, {"name": UNNAMED, "lane": "kernel"}).select(_COLUMNS)

    def _copies(self, rows: pl.DataFrame) -> pl.DataFrame:
        kinds = ("copyKind", "srcKind", "dstKind")
        table = rows.select(kinds).unique(maintain_order=True)
        table = table.with_columns(
            pl.Series("name", [self._copy(*kind) for kind in table.iter_rows()], dtype=pl.Categorical)
        )
        rows = rows.join(table, on=kinds, how="left", maintain_order="left", nulls_equal=True)
        return rows.with_columns(constant("memcpy").alias("lane")).select(*_COLUMNS, "bytes")

    def _copy(self, kind: int | None, source: int | None, target: int | None) -> str:
        if kind in _UNIFIED:
            return copy_name(_UNIFIED[kind], "Managed", "Managed")
        ends = (_UNKNOWN if end is None else self._memory.get(end, _UNKNOWN) for end in (source, target))
        return copy_name(COPY_KINDS.get(kind if kind is not None else 0, _UNKNOWN), *ends)

    def _sets(self, rows: pl.DataFrame) -> pl.DataFrame:
        kinds = rows["memKind"].unique(maintain_order=True)
        names = [f"Memset ({self._memory.get(kind, 'Device')})" for kind in kinds]
        table = pl.DataFrame({"memKind": kinds, "name": pl.Series(names, dtype=pl.Categorical)})
        rows = rows.join(table, on="memKind", how="left", maintain_order="left", nulls_equal=True)
        return rows.with_columns(constant("memset").alias("lane")).select(*_COLUMNS, "bytes")

    def _graphs(self, rows: pl.DataFrame) -> pl.DataFrame:
        whole = rows
        if self._nodes:
            nodes = pl.concat(self._nodes).unique()
            whole = rows.join(
                nodes, on=["process", "corr"], how="anti", nulls_equal=True, maintain_order="left"
            )
        self.expanded += len(rows) - len(whole)
        number = pl.coalesce("graphExecId", "graphId", pl.lit(0)).cast(pl.String)
        return whole.with_columns(
            constant("graph").alias("lane"),
            pl.concat_str(pl.lit("CUDA graph "), number).cast(pl.Categorical).alias("name"),
        ).select(_COLUMNS)


def _memory_kinds(store: Store) -> dict[int, str]:
    """Kinds of memory as the file itself numbers them, where it does."""
    listed = {
        row["id"]: str(row["label"]).removesuffix(" Static")
        for row in store.few(MEMORY_ENUM, ["id"], ["label"])
        if isinstance(row["id"], int) and row["label"]
    }
    return {
        number: kind for number, kind in (listed or _MEMORY).items() if kind in (*_MEMORY.values(), _UNKNOWN)
    }
