"""JSON lines to long rows of ``metrics`` beside ``polars.read_ndjson`` to a wide frame (goal: at most 2 x).

    python benchmarks/bench_jsonl.py           # 108,000 rows of ten names, about 28 MB
    python benchmarks/bench_jsonl.py --full    # 1,150,000 rows, about 300 MB

The two take turns; medians of ``ROUNDS`` runs each, wall and CPU. Peak memory is that of a process of its own each.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from afterrun.loaders.jsonlog.lines import JsonLines
from afterrun.loaders.jsonlog.table import JsonTable

FULL_ROWS, SMALL_ROWS, ROUNDS = 1_150_000, 108_000, 7


def write(path: Path, rows: int) -> None:
    rng = random.Random(0)
    with path.open("w") as file:
        for i in range(rows):
            row = {
                "step": i,
                "epoch": i / 50_000,
                "loss": 3 / (1 + i / 10_000) + rng.random() / 10,
                "lr": 1e-3 * (1 - i / rows),
                "grad_norm": rng.random(),
                "tokens_per_second": 1e5 + 1e3 * rng.random(),
                "data_time": rng.random() / 100,
                "step_time": 0.3 + rng.random() / 100,
                "timestamp": 1.7e9 + 0.3 * i,
            }
            if i % 100 == 0:
                row["eval/loss"] = rng.random()
            file.write(json.dumps(row) + "\n")


def ours(path: Path) -> int:
    """Batch by batch, as they come."""
    lines = JsonLines(path)
    batches = JsonTable(lines.blocks(), lines.losses).batches()
    return sum(len(b.frames["metrics"]) for b in batches if "metrics" in b.frames)


def peer(path: Path) -> int:
    return len(pl.read_ndjson(path))


WAYS: dict[str, Callable[[Path], int]] = {"polars": peer, "afterrun": ours}


def peak_mb(path: Path, way: str) -> int:
    """Highest resident memory of a process of its own; its ``ru_maxrss`` would begin with that of this one."""
    script = (
        "import re, sys; from pathlib import Path; from benchmarks.bench_jsonl import WAYS; WAYS[sys.argv[2]](Path(sys.argv[1])); "
        "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), way],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    return int(done.stdout) // 1000


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--full", action="store_true", help="300 MB instead of 28 MB")
    rows = FULL_ROWS if options.parse_args().full else SMALL_ROWS
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        write(path, rows)
        for _ in range(ROUNDS):
            for name, way in WAYS.items():
                wall, cpu = time.perf_counter(), time.process_time()
                way(path)
                taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
        peaks = {name: peak_mb(path, name) for name in WAYS}
        print(f"{path.stat().st_size / 1e6:.0f} MB, {rows:,} rows")
    medians = {name: [statistics.median(x) for x in zip(*runs, strict=True)] for name, runs in taken.items()}
    for name, (wall, cpu) in medians.items():
        ratios = wall / medians["polars"][0], cpu / medians["polars"][1]
        print(
            f"{name:10} {wall:6.2f} s {ratios[0]:5.1f} x   CPU {cpu:6.2f} s {ratios[1]:5.1f} x   peak {peaks[name]} MB"
        )


if __name__ == "__main__":
    main()
