"""Writes exports of Nsight Systems as small SQLite files of four schemas: event by event, tables only where needed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl

SCHEMAS = ("2020", "3.1.7", "3.16.1", "3.25.0")
"""No version recorded, the first with one, with memsets and diagnostics, of 2026."""

UTC_NS = 1_760_000_000_000_000_000
"""When the clock of the session begins, where the schema says it."""

ANY_STREAM = 4_294_967_295
PID = 4000

_GPU = "start! end! deviceId! contextId! {green}streamId! correlationId globalPid "
_COLUMNS: Mapping[str, str] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _GPU
    + "demangledName! shortName! {mangled}launchType gridX! gridY! gridZ! blockX! blockY! blockZ! registersPerThread! graphNodeId {newest}",
    "CUPTI_ACTIVITY_KIND_MEMCPY": _GPU
    + "bytes! copyKind! srcKind dstKind srcDeviceId dstDeviceId graphNodeId {copies}",
    "CUPTI_ACTIVITY_KIND_MEMSET": _GPU + "value! bytes! graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _GPU + "graphId! graphExecId!",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _GPU + "syncType! eventId!",
    "OSRT_API": "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId!",
    "NVTX_EVENTS": "start! end eventType! rangeId category color t:text globalTid endGlobalTid textId domainId",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! t:text! globalPid",
    "GPU_METRICS": "timestamp! typeId! metricId! value!",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! t:typeName! metricId! t:metricName!",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs t:utcTime t:localTime {system}",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "META_DATA_CAPTURE": "t:name! t:value",
    "META_DATA_EXPORT": "t:name! t:value",
    "EXPORT_META_DATA": "t:name! t:value",
    "TARGET_INFO_GPU": "vmId! id! t:name totalMemory smCount cuDevice computeMajor computeMinor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid!",
    "TARGET_INFO_CUDA_GPU": "vmId! deviceId! t:name! globalMemorySize! numMultiprocessors! computeCapabilityMajor! computeCapabilityMinor!",
    "SCHED_EVENTS": "start! cpu! isSchedIn! globalTid",
    "ENUM_CUDA_MEM_KIND": "id! t:name t:label",
    "ProcessStreams": "contentId! filenameId! globalPid!",
}
_PARTS: Mapping[str, Mapping[str, str]] = {
    "2020": {},
    "3.1.7": {"mangled": "mangledName "},
    "3.16.1": {"mangled": "mangledName ", "green": "greenContextId "},
    "3.25.0": {
        "mangled": "mangledName ",
        "green": "greenContextId ",
        "newest": "graphId clusterX t:tensorSizeMinusOneElements!",
        "copies": "copyCount",
        "system": "systemClockNs",
    },
}
_WAITS = {"3.16.1": {"device": 0, "event": 1, "stream": 2, "wait": 3}}
_WAITS_ELSEWHERE = {"event": 1, "wait": 2, "stream": 3, "device": 4}
MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")


def packed(pid: int, tid: int = 0) -> int:
    """A process and a thread as one number, as the exporter packs them."""
    return 281474976710656 + (pid << 24) + tid


class Export:
    """One export; ``write`` makes the file. Times are ns of the session's clock."""

    def __init__(self, schema: str = "3.16.1", *, anchored: bool = True) -> None:
        self.schema = schema
        self.suffix = ""
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.strings: dict[str, int] = {"[Unknown]": 0}
        self._corr = 100
        self.add("ProcessStreams", contentId=0, filenameId=0, globalPid=packed(PID))
        if schema != "2020":
            table = "EXPORT_META_DATA" if schema.startswith("3.1.") else "META_DATA_EXPORT"
            self.add(table, name="EXPORT_SCHEMA_VERSION", value=schema)
            self.add(table, name="EXPORT_PRODUCT_VERSION", value="2024.6.2.225")
            if anchored:
                self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=UTC_NS, utcTime="", localTime="")
            for i, label in enumerate(MEMORY):
                self.add("ENUM_CUDA_MEM_KIND", id=i, name=label.upper(), label=label)

    def add(self, table: str, **values: Any) -> Export:
        """One row; columns that the schema lacks are left out, those that are not given are null."""
        self.rows.setdefault(table, []).append(values)
        return self

    def string(self, text: str) -> int:
        """The number of a string."""
        return self.strings.setdefault(text, len(self.strings))

    def launch(
        self,
        name: str = "cudaLaunchKernel_v7000",
        *,
        at: int = 0,
        dur: int = 5,
        tid: int = PID,
        pid: int = PID,
    ) -> int:
        """A CUDA call; returns its correlation id."""
        self._corr += 1
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=at, end=at + dur, eventClass=0, globalTid=packed(pid, tid),
            correlationId=self._corr, nameId=self.string(name), returnValue=0,
        )  # fmt: skip
        return self._corr

    def kernel(
        self,
        start: int,
        end: int,
        *,
        name: str = "void gemm<float>(int)",
        corr: int | None = None,
        **place: Any,
    ) -> Export:
        """A kernel; ``place`` are columns other than those of stream 7 of device 0."""
        more = {
            "demangledName": self.string(name),
            "shortName": self.string(name.partition("<")[0].removeprefix("void ")),
        }
        return self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL", **(self._on_device(start, end, corr) | _ONE_BLOCK | more | place)
        )

    def copy(
        self,
        start: int,
        end: int,
        *,
        kind: int = 1,
        ends: tuple[int | None, int | None] = (0, 2),
        size: int = 4096,
        **place: Any,
    ) -> Export:
        """A copy between kinds of memory as the exporter numbers them."""
        more = {"bytes": size, "copyKind": kind, "srcKind": ends[0], "dstKind": ends[1]}
        return self.add("CUPTI_ACTIVITY_KIND_MEMCPY", **(self._on_device(start, end, None) | more | place))

    def set_(self, start: int, end: int, *, size: int = 64, **place: Any) -> Export:
        """A memset."""
        more = {"bytes": size, "value": 0, "memKind": 2}
        return self.add("CUPTI_ACTIVITY_KIND_MEMSET", **(self._on_device(start, end, None) | more | place))

    def graph(self, start: int, end: int, *, corr: int | None = None, **place: Any) -> Export:
        """The replay of a whole graph as one row."""
        more = {"graphId": 4, "graphExecId": 5}
        return self.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **(self._on_device(start, end, corr) | more | place)
        )

    def wait(self, start: int, end: int, kind: str, corr: int | None) -> Export:
        """A wait of kind device, stream, event or wait, numbered as the schema does."""
        number = _WAITS.get(self.schema, _WAITS_ELSEWHERE)[kind]
        place = {**self._on_device(start, end, corr), "streamId": 7 if kind == "stream" else ANY_STREAM}
        return self.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **place, syncType=number, eventId=ANY_STREAM)

    def range(
        self,
        start: int,
        end: int | None,
        text: str,
        *,
        registered: bool = False,
        event: int = 59,
        domain: int = 0,
        tid: int = PID,
    ) -> Export:
        """An NVTX event: 59 and 60 are ranges, 34 a mark, 75 names the domain."""
        name = {"textId": self.string(text)} if registered else {"text": text}
        return self.add(
            "NVTX_EVENTS",
            start=start,
            end=end,
            eventType=event,
            globalTid=packed(PID, tid),
            domainId=domain,
            **name,
        )

    def os_call(self, start: int, end: int, name: str = "poll", tid: int = PID) -> Export:
        """A call of the operating system."""
        place = {"globalTid": packed(PID, tid), "nameId": self.string(name), "eventClass": 27}
        return self.add("OSRT_API", start=start, end=end, returnValue=0, callchainId=0, **place)

    def _on_device(self, start: int, end: int, corr: int | None) -> dict[str, Any]:
        place = {
            "deviceId": 0,
            "contextId": 1,
            "streamId": 7,
            "correlationId": corr,
            "globalPid": packed(PID),
        }
        return {"start": start, "end": end, **place}

    def write(self, path: Path, *, page_bytes: int = 4096) -> Path:
        """The file."""
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"PRAGMA page_size = {page_bytes}")
            db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
            db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(i, s) for s, i in self.strings.items()])
            for table, rows in self.rows.items():
                columns = dict(self.columns(table))
                made = ", ".join(f'"{name}" {rest}' for name, rest in columns.items())
                db.execute(f'CREATE TABLE "{table}{self.suffix}" ({made})')
                values = [[_value(row, name, rest) for name, rest in columns.items()] for row in rows]
                db.executemany(
                    f'INSERT INTO "{table}{self.suffix}" VALUES ({",".join("?" * len(columns))})', values
                )
        return path

    def columns(self, table: str) -> Iterator[tuple[str, str]]:
        """Name and type of each column of a table in this schema."""
        parts = {"green": "", "mangled": "", "newest": "", "copies": "", "system": "", **_PARTS[self.schema]}
        for spec in _COLUMNS[table].format(**parts).split():
            name = spec.removeprefix("t:").rstrip("!")
            kind = "TEXT" if spec.startswith("t:") else "INTEGER"
            yield name, kind + (" NOT NULL" if spec.endswith("!") else "")


def _value(row: Mapping[str, Any], name: str, declared: str) -> Any:
    """What was given, or the least that the column takes."""
    if name in row or "NOT NULL" not in declared:
        return row.get(name)
    return "" if declared.startswith("TEXT") else 0


_ONE_BLOCK = {f"{what}{axis}": 1 for what in ("grid", "block") for axis in "XYZ"}


def steady(kernels: int, *, dur: int = 80, gap: int = 20, schema: str = "3.16.1") -> Export:
    """Kernels of one length at one distance, each launched by a call 30 ns before it starts."""
    export = Export(schema)
    for i in range(kernels):
        start = 1000 + i * (dur + gap)
        export.kernel(start, start + dur, corr=export.launch(at=start - 30))
    return export


def as_parquet(database: Path, folder: Path, **options: Any) -> Path:
    """The tables of an export as a folder of parquet files."""
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = db.execute(f'PRAGMA table_info("{table}")').fetchall()
            schema = {name: pl.String if kind == "TEXT" else pl.Int64 for _, name, kind, *_ in columns}
            rows = db.execute(f'SELECT * FROM "{table}"').fetchall()
            pl.DataFrame(rows, schema=schema, orient="row").write_parquet(
                folder / f"{table}.parquet", **options
            )
    return folder
