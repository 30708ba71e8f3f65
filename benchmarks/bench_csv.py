"""Four columns of a wide CSV to rows of ``metrics`` beside a raw read of its bytes and a scan by polars.

    python benchmarks/bench_csv.py           # 191 columns, 100 MB
    python benchmarks/bench_csv.py --full    # 191 columns, 1 GB

Goal: at most 2 x a raw read (all bytes, 2 MB at a time). Both are measured twice: with the file in the page cache, and
after the kernel was asked to drop it from there (``POSIX_FADV_DONTNEED``; on other systems the second part is left out).
The ways take turns; medians of ``ROUNDS`` runs each, wall and CPU. Peak memory is that of a process that reads the
file once and does nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from afterrun.loaders.formats.curves.csv_log import CsvLog
from afterrun.loaders.registry import Source
from afterrun.loaders.wanted import Wanted

ROUNDS, COLUMNS, ROWS_A_TIME = 5, 191, 10_000
FULL_ROWS, SMALL_ROWS = 270_000, 27_000
CHUNK_BYTES = 2 * 2**20
NAMES = ("step", "train_loss", "val_loss", *(f"layer.{i}.grad_norm" for i in range(COLUMNS - 4)), "lr")
CHOICES = {
    "next to each other": NAMES[1:4],
    "far apart": (NAMES[2], NAMES[100], NAMES[-1]),
}
"""Three tags, read with the step they need."""


def write(path: Path, rows: int) -> None:
    dice = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write((",".join(NAMES) + "\n").encode())
        for first in range(0, rows, ROWS_A_TIME):
            n = min(ROWS_A_TIME, rows - first)
            columns: dict[str, object] = {"step": np.arange(first, first + n)}
            columns |= {name: dice.random(n) for name in NAMES[1:]}
            pl.DataFrame(columns).write_csv(file, include_header=False)


def raw(path: Path) -> int:
    size = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            size += len(chunk)
    return size


def ours(path: Path, tags: tuple[str, ...]) -> int:
    source = Source(path=path, name=path.name, size_bytes=path.stat().st_size, wanted=Wanted(tags))
    return sum(len(b.frames["metrics"]) for b in CsvLog().load(source) if "metrics" in b.frames)


def scan(path: Path, tags: tuple[str, ...]) -> int:
    return pl.scan_csv(path).select("step", *tags).collect().height * len(tags)


def drop(path: Path) -> None:
    """Ask the kernel to forget the file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def peak_mb(path: Path, tags: tuple[str, ...]) -> int:
    """Highest resident memory of a process of its own; its ``ru_maxrss`` would begin with that of this one."""
    script = (
        "import re, sys; from pathlib import Path; from benchmarks.bench_csv import ours; ours(Path(sys.argv[1]), tuple(sys.argv[2:])); "
        "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), *tags],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    return int(done.stdout) // 1000


def measure(path: Path, *, cold: bool) -> None:
    ways: dict[str, Callable[[], int]] = {"raw read": lambda: raw(path)}
    for name, tags in CHOICES.items():
        ways[f"afterrun, {name}"] = lambda tags=tags: ours(path, tags)  # type: ignore[misc]  # bound at once
        ways[f"polars, {name}"] = lambda tags=tags: scan(path, tags)  # type: ignore[misc]  # as above
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            if cold:
                drop(path)
            wall, cpu = time.perf_counter(), time.process_time()
            way()
            taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    medians = {name: [statistics.median(x) for x in zip(*runs, strict=True)] for name, runs in taken.items()}
    print("dropped from the page cache before each" if cold else "in the page cache")
    for name, (wall, cpu) in medians.items():
        print(
            f"  {name:30} {wall:6.2f} s {wall / medians['raw read'][0]:5.1f} x   CPU {cpu:6.2f} s", flush=True
        )


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--full", action="store_true", help="1 GB instead of 100 MB")
    rows = FULL_ROWS if options.parse_args().full else SMALL_ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.csv"
        write(path, rows)
        for tags in CHOICES.values():
            assert ours(path, tags) == scan(path, tags)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {COLUMNS} columns, {rows:,} rows; step and three tags")
        measure(path, cold=False)
        if hasattr(os, "posix_fadvise"):
            measure(path, cold=True)
        for name, tags in CHOICES.items():
            print(f"peak memory, {name}: {peak_mb(path, tags)} MB")


if __name__ == "__main__":
    main()
