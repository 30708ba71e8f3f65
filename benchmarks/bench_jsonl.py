"""JSON lines to long rows of ``metrics`` beside ``polars.read_ndjson`` to a wide frame (goal: at most 2 x).

1,080,000 rows of ten names, about 280 MB. The two take turns; medians of ``ROUNDS`` runs each, wall and CPU.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from afterrun.loaders.jsonlines import JsonLines
from afterrun.loaders.jsontable import JsonTable

ROWS, ROUNDS = 1_080_000, 5


def write(path: Path) -> None:
    rng = random.Random(0)
    with path.open("w") as file:
        for i in range(ROWS):
            row = {
                "step": i,
                "epoch": i / 50_000,
                "loss": 3 / (1 + i / 10_000) + rng.random() / 10,
                "lr": 1e-3 * (1 - i / ROWS),
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
    lines = JsonLines(path)
    batches = list(JsonTable(lines.blocks(), lines.losses).batches())
    return sum(len(b.frames["metrics"]) for b in batches if "metrics" in b.frames)


def peer(path: Path) -> int:
    return len(pl.read_ndjson(path))


def main() -> None:
    ways: dict[str, Callable[[Path], int]] = {"polars": peer, "afterrun": ours}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        write(path)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                wall, cpu = time.perf_counter(), time.process_time()
                way(path)
                taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    medians = {name: [statistics.median(x) for x in zip(*runs, strict=True)] for name, runs in taken.items()}
    for name, (wall, cpu) in medians.items():
        ratios = wall / medians["polars"][0], cpu / medians["polars"][1]
        print(f"{name:10} {wall:6.2f} s {ratios[0]:5.1f} x   CPU {cpu:6.2f} s {ratios[1]:5.1f} x")


if __name__ == "__main__":
    main()
