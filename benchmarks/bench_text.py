"""Text logs to rows of ``metrics`` beside a plain reader, one regular expression a line, on the same files.

    python benchmarks/bench_text.py           # 20 MB of each kind of line
    python benchmarks/bench_text.py --full    # 200 MB of each

Goal: at least 50 MB/s on lines that match. The two take turns; medians of ``ROUNDS`` runs of ours, wall and CPU. Rows are counted
on both sides and must agree. Peak memory is that of a process that reads the largest file and nothing else.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from afterrun.loaders.textlog.clean import Damage, clean_blocks
from afterrun.loaders.textlog.reader import TextLogReader

ROUNDS = 5
MB = 10**6
_N = r"([-+0-9.eE]+)"


@dataclass(frozen=True)
class Kind:
    """Lines of one trainer, and the expression a person would write for them."""

    name: str
    line: Callable[[int], str]
    pattern: str
    tags: tuple[str, ...]


KINDS = (
    Kind(
        "Megatron, 330 bytes",
        lambda i: f" iteration {i:8d}/ 900000 | consumed samples: {i * 64:12d} | elapsed time per iteration (ms): {7600 + i % 37 / 3:.1f} | "
        f"learning rate: {1e-4 / (1 + i):.3E} | global batch size:    64 | lm loss: {3 + 1 / (1 + i):.6E} | loss scale: 1.0 | "
        f"grad norm: {0.7 + i % 10 / 7:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        rf"iteration\s+(\d+)/\s*\d+ \| consumed samples:\s*{_N} \| elapsed time per iteration \(ms\): {_N} \| learning rate: {_N} \| "
        rf"global batch size:\s*{_N} \| lm loss: {_N} \| loss scale: {_N} \| grad norm: {_N} \| number of skipped iterations:\s*{_N} \| "
        rf"number of nan iterations:\s*{_N} \|",
        ("consumed samples", "elapsed", "learning rate", "batch", "lm loss", "loss scale", "grad norm", "skipped", "nan"),
    ),
    Kind(
        "logging and key=value, 90 bytes",
        lambda i: f"2024-05-{1 + i // 86400 % 28:02d} {i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d},{i % 1000:03d} INFO trainer: step {i} "
        f"loss={3 + 1 / (1 + i):.4f} grad_norm={0.7 + i % 10 / 7:.3f} lr={1e-4 / (1 + i):.2e}\n",
        rf"(?:\S+ \S+) INFO \w+: step (\d+) loss={_N} grad_norm={_N} lr={_N}",
        ("loss", "grad_norm", "lr"),
    ),
    Kind(
        "key=value an epoch, 70 bytes",
        lambda i: f"Epoch {i}/9000000 time={3 + i % 7 / 3:.1f}s train_loss={3 + 1 / (1 + i):.4f} val_loss={3 + 1 / (1 + i):.4f} lr={1e-4 / (1 + i):.2e}\n",
        rf"Epoch (\d+)/\d+ time={_N}s train_loss={_N} val_loss={_N} lr={_N}",
        ("time", "train_loss", "val_loss", "lr"),
    ),
    Kind(
        "nanoGPT, 50 bytes",
        lambda i: f"iter {i}: loss {3 + 1 / (1 + i):.4f}, time {190 + i % 37 / 3:.2f}ms, mfu {30 + i % 5 / 3:.2f}%\n",
        rf"iter (\d+): loss {_N}, time {_N}ms, mfu {_N}%",
        ("loss", "time", "mfu"),
    ),
)  # fmt: skip


def write(kind: Kind, path: Path, size: int) -> None:
    with path.open("w") as file:
        i = 1
        while file.tell() < size:
            file.write("".join(kind.line(j) for j in range(i, i + 5000)))
            i += 5000


def ours(path: Path) -> int:
    damage = Damage()
    batches = TextLogReader(clean_blocks(path, damage), damage).batches()
    return sum(len(b.frames["metrics"]) for b in batches if "metrics" in b.frames)


def peer(kind: Kind, path: Path) -> int:
    """A loop over lines: match, convert, collect, one frame at the end."""
    pattern = re.compile(kind.pattern)
    columns: dict[str, list[object]] = {"tag": [], "step": [], "value": []}
    with path.open() as file:
        for line in file:
            match = pattern.search(line)
            if match:
                step = int(match[1])
                for tag, value in zip(kind.tags, match.groups()[1:], strict=True):
                    columns["tag"].append(tag)
                    columns["step"].append(step)
                    columns["value"].append(float(value))
    return len(pl.DataFrame(columns))


def peak_mb(path: Path) -> float:
    """Highest resident memory of a process of its own; its ``ru_maxrss`` would begin with that of this one."""
    script = (
        "import re, sys; from pathlib import Path; from benchmarks.bench_text import ours; ours(Path(sys.argv[1])); "
        "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    return int(done.stdout) / 1000


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--full", action="store_true", help="200 MB of each kind instead of 20")
    size = (200 if options.parse_args().full else 20) * MB
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        for kind in KINDS:
            write(kind, path, size)
            megabytes = path.stat().st_size / MB
            start = time.perf_counter()
            expected = peer(kind, path)
            plain_s = time.perf_counter() - start
            taken = []
            for _ in range(ROUNDS):
                wall, cpu = time.perf_counter(), time.process_time()
                rows = ours(path)
                taken.append((time.perf_counter() - wall, time.process_time() - cpu))
                assert rows == expected, (kind.name, rows, expected)
            wall_s, cpu_s = (statistics.median(x) for x in zip(*taken, strict=True))
            print(
                f"{kind.name:34} {megabytes / wall_s:6.1f} MB/s ({megabytes / cpu_s:.1f} of CPU)   plain reader {megabytes / plain_s:5.1f} MB/s   "
                f"{plain_s / wall_s:4.1f} x   {rows:,} rows   peak {peak_mb(path):.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
