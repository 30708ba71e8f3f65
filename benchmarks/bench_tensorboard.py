"""Event files to a frame beside tbparse, on the same files in one run, as ratios.

    python benchmarks/bench_tensorboard.py           # a tenth of the sizes, under a minute
    python benchmarks/bench_tensorboard.py --full    # the sizes of the goals, two minutes

Goals: one file of 1 M scalars at least 80 x tbparse in at most 300 MB; 200 runs of 5,000 scalars at least
45 x; a file of scalars, histograms and images at least 60 x. Every checksum is checked in all of them.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from afterrun.loaders.formats.curves.tensorboard import TensorBoard
from afterrun.loaders.registry import Source
from tests.support import events as ev

ROUNDS = 5
"""Our readings of each case; tbparse, slower by two orders, reads once or as often as fits in ``PEER_S``."""
PEER_S = 20.0
TAGS = (*(f"train/metric_{i}" for i in range(8)), "train/loss", "learning_rate")
NAME = "events.out.tfevents.1700000000.host.1.0"


def scalars(count: int) -> Iterator[bytes]:
    for i in range(count):
        step = i // len(TAGS)
        value = ev.simple(TAGS[i % len(TAGS)], math.exp(-step / 1000) + i % 7)
        yield ev.event(ev.WALL + i * 0.013, step, ev.summary(value))


def mixed(steps: int) -> Iterator[bytes]:
    """Ten scalars and a histogram of 60 buckets a step, an image of 50 kB every tenth."""
    dice = random.Random(0)
    limits = [i / 10 - 3 for i in range(60)]
    for step in range(steps):
        wall = ev.WALL + step
        for tag in TAGS:
            yield ev.event(wall, step, ev.summary(ev.simple(tag, math.exp(-step / 1000))))
        counts = [float(dice.randrange(1, 99)) for _ in limits]
        yield ev.event(wall, step, ev.summary(ev.histo("weights", limits, counts, -3.0, 3.0)))
        if step % 10 == 0:
            yield ev.event(wall, step, ev.summary(ev.image("sample", dice.randbytes(50_000))))


def ours(folder: Path) -> int:
    """All scalars below a folder as one frame, from the files up; returns its height."""
    frames = []
    for path in sorted(folder.rglob("*tfevents*")):
        source = Source(path=path, name=path.name, size_bytes=path.stat().st_size)
        batches = TensorBoard().load(source)
        frames += [batch.frames["metrics"] for batch in batches if "metrics" in batch.frames]
    return pl.concat(frames).height


def theirs(folder: Path) -> int:
    from tbparse import SummaryReader

    return sum(len(SummaryReader(str(path.parent)).scalars) for path in sorted(folder.rglob("*tfevents*")))


def seconds(read: Callable[[], int], expected: int) -> float:
    start = time.perf_counter()
    height = read()
    taken = time.perf_counter() - start
    assert height == expected, f"{height} scalars instead of {expected}"
    return taken


def compare(title: str, folder: Path, expected: int) -> None:
    """Our median beside tbparse's, the readers taking turns."""
    ours(folder)
    mine, peer = [], []
    for _ in range(ROUNDS):
        mine.append(seconds(lambda: ours(folder), expected))
        if sum(peer) < PEER_S:
            peer.append(seconds(lambda: theirs(folder), expected))
    mine_s, peer_s = statistics.median(mine), statistics.median(peer)
    print(f"{title:40} {mine_s:8.4f} s   tbparse {peer_s:8.3f} s   {peer_s / mine_s:6.1f} x")


def peak_mb(folder: Path) -> float:
    """Peak memory of a process that does nothing but read this folder."""
    command = [sys.executable, __file__, "--only-read", str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def write_cases(root: Path, scale: int) -> None:
    ev.write(root / "one" / NAME, scalars(1_000_000 // scale))
    small = ev.event_file(scalars(5_000))
    for run in range(200 // scale):
        path = root / "many" / f"run{run:03}" / NAME
        path.parent.mkdir(parents=True)
        path.write_bytes(small)
    ev.write(root / "mixed" / NAME, mixed(2_000))


def main() -> None:
    arguments = argparse.ArgumentParser(description="Event files beside tbparse.")
    arguments.add_argument("--full", action="store_true", help="the sizes of the goals, not a tenth of them")
    arguments.add_argument("--only-read", type=Path, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.only_read:
        ours(chosen.only_read)
        status = Path("/proc/self/status").read_text()  # ru_maxrss counts the parent's memory as well
        print(next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024)
        return
    scale = 1 if chosen.full else 10
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_cases(root, scale)
        compare(f"{1_000_000 // scale:,} scalars in one file", root / "one", 1_000_000 // scale)
        print(f"{'  peak memory of the process':40} {peak_mb(root / 'one'):8.0f} MB")
        compare(f"{200 // scale} runs of 5,000 scalars", root / "many", 1_000_000 // scale)
        compare("20,000 scalars, histograms, images", root / "mixed", 20_000)


if __name__ == "__main__":
    main()
