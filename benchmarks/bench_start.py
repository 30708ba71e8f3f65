"""Start-up: ``afterrun --version`` and ``--help`` beside a bare interpreter, as ratios (goal: at most 8).

The commands take turns, so that a busy machine slows all of them alike; medians of ``ROUNDS`` runs each.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 21
BARE = "python -c pass"


def commands() -> dict[str, list[str]]:
    script = str(Path(sys.executable).with_name("afterrun"))
    return {
        BARE: [sys.executable, "-c", "pass"],
        "afterrun --version": [script, "--version"],
        "afterrun --help": [script, "--help"],
        "python -m afterrun --version": [sys.executable, "-m", "afterrun", "--version"],
    }


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in commands()}
    for _ in range(ROUNDS):
        for name, command in commands().items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            seconds[name].append(time.perf_counter() - start)
    bare_s = statistics.median(seconds[BARE])
    for name, measured in seconds.items():
        median_s = statistics.median(measured)
        print(f"{name:30} {1000 * median_s:7.1f} ms   {median_s / bare_s:5.1f} x")


if __name__ == "__main__":
    main()
