"""Nsight Systems exports beside ``pandas.read_sql``, each in a process of its own, with peak memory.

    python benchmarks/bench_nsys.py           # 500,000 kernels, half a minute
    python benchmarks/bench_nsys.py --full    # 5,000,000 kernels on 8 devices, a minute and a half

Goal: six columns of the kernel table at least 8 x as fast as pandas in at most 600 MB. The second line is the whole
loader: nine columns, names joined, rows repaired, and SQLite's check for damage beside it.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
SIX = ("start", "end", "deviceId", "streamId", "correlationId", "shortName")
SPEC = (
    "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! mangledName "
    "launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! "
    "dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
)
"""Columns of the kernel table of schema 3.16; ``!`` for not null."""
COLUMNS = SPEC.split()
NAMES, DEVICES, ROWS_A_TIME, ROUNDS = 200, 8, 100_000, 3
PID = 281474976710656 + (4000 << 24)


def write(path: Path, kernels: int) -> None:
    dice, at = np.random.default_rng(1), 10**10
    made = ", ".join(f'"{c.rstrip("!")}" INTEGER{" NOT NULL" if c.endswith("!") else ""}' for c in COLUMNS)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE {TABLE} ({made})")
        db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(i, f"void kernel_{i}<float>(int)") for i in range(NAMES)]
        )
        for first in range(0, kernels, ROWS_A_TIME):
            n = min(ROWS_A_TIME, kernels - first)
            length, gap = dice.integers(2_000, 60_000, n), dice.integers(500, 3_000, n)
            end = at + np.cumsum(length + gap)
            at = int(end[-1])
            number, name = np.arange(first, first + n), dice.integers(0, NAMES, n)
            values: dict[str, object] = dict.fromkeys(c.rstrip("!") for c in COLUMNS)
            values |= {
                "start": end - length,
                "end": end,
                "deviceId": number % DEVICES,
                "correlationId": number,
            }
            values |= {"gridId": number, "demangledName": name, "shortName": name}
            values |= {"contextId": 1, "streamId": 7, "globalPid": PID, "localMemoryTotal": 205_258_752}
            values |= {c.rstrip("!"): 1 for c in COLUMNS if c.endswith("!") and values[c.rstrip("!")] is None}
            columns = [v.tolist() if isinstance(v, np.ndarray) else [v] * n for v in values.values()]
            db.executemany(
                f"INSERT INTO {TABLE} VALUES ({','.join('?' * len(columns))})", zip(*columns, strict=True)
            )


def peer(path: Path) -> Callable[[], int]:
    import pandas as pd

    query = f"SELECT {', '.join(chr(34) + c + chr(34) for c in SIX)} FROM {TABLE}"
    return lambda: len(pd.read_sql(query, sqlite3.connect(path)))


def six(path: Path) -> Callable[[], int]:
    for name in ("adbc_driver_manager", "adbc_driver_sqlite", "pyarrow"):
        import_module(name)
    from afterrun.loaders.sqlite import opened
    from afterrun.loaders.traces.nsys.sqlite_store import SqliteStore

    def read() -> int:
        with opened(path, check=False) as database:
            return len(pl.concat(list(SqliteStore(database).chunks(TABLE, SIX))))

    return read


def loader(path: Path) -> Callable[[], int]:
    from afterrun.loaders.formats.traces.nsys_sqlite import load_sqlite

    six(path)
    return lambda: sum(len(b.frames["spans"]) for b in load_sqlite(path) if "spans" in b.frames)


WAYS = {
    "pandas.read_sql, 6 columns": peer,
    "afterrun, 6 columns": six,
    "afterrun, whole loader, checked": loader,
}


def one(way: str, path: Path, kernels: int) -> None:
    """Time and memory of this process, as JSON."""
    read = WAYS[way](path)
    start = time.perf_counter()
    rows = read()
    taken = time.perf_counter() - start
    assert rows == kernels, f"{rows} rows"
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
    print(json.dumps([taken, peak]))


def main() -> None:
    arguments = argparse.ArgumentParser(description="Nsight Systems exports beside pandas.")
    arguments.add_argument("--full", action="store_true", help="5,000,000 kernels")
    arguments.add_argument("--only", nargs=3, metavar=("WAY", "FILE", "KERNELS"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.only:
        way, path, kernels = chosen.only
        one(way, Path(path), int(kernels))
        return
    kernels = 5_000_000 if chosen.full else 500_000
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.sqlite"
        write(path, kernels)
        print(f"{kernels:,} kernels, {path.stat().st_size / 1e6:.0f} MB")
        taken: dict[str, list[list[float]]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, found in taken.items():
                command = [sys.executable, __file__, "--only", way, str(path), str(kernels)]
                found.append(
                    json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                )
    peer_s = statistics.median(s for s, _ in taken["pandas.read_sql, 6 columns"])
    for way, found in taken.items():
        seconds, peak = statistics.median(s for s, _ in found), max(mb for _, mb in found)
        print(f"{way:34} {seconds:7.2f} s {peer_s / seconds:6.1f} x {peak:7.0f} MB")


if __name__ == "__main__":
    main()
