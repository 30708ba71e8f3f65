"""Runs a script that writes with a real library in a process of its own, and reads back what it left.

A process for each script: the libraries warn, keep state, patch streams and wait at exit; none of that is to
touch the process of the tests, and some scripts end themselves.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.collection import Collection

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT_S = 300

_OFFLINE = {
    "CUDA_VISIBLE_DEVICES": "",
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "TOKENIZERS_PARALLELISM": "false",
    "WANDB_MODE": "offline",
}
"""What keeps the libraries from looking for a network, an account or an accelerator."""


def needs(*modules: str) -> None:
    """Skip the test module that calls this, and say so, where one of these is not installed. Imports nothing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        pytest.skip(f"{names} not installed; `make writers` has all of them", allow_module_level=True)


@dataclass(frozen=True)
class Ended:
    """How a script ended and what it printed."""

    code: int
    stdout: str
    stderr: str


def write(script: str, folder: Path, *args: str, fails: bool = False) -> Ended:
    """Run ``scripts/<script>.py`` with these arguments in ``folder``; ``fails``: it is to end badly."""
    folder.mkdir(parents=True, exist_ok=True)
    home = folder.parent / f"{folder.name}-home"
    home.mkdir(exist_ok=True)
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WANDB_CACHE_DIR")
    env = {**os.environ, **_OFFLINE, **dict.fromkeys(names, str(home))}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{script}.py"), *args],
        cwd=folder,
        env=env,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
        timeout=LIMIT_S,
    )
    assert bool(done.returncode) == fails, f"{script}: exit code {done.returncode}\n{done.stderr[-4000:]}"
    return Ended(done.returncode, done.stdout, done.stderr)


class Recorded:
    """What is read back from a path, by run and tag."""

    def __init__(self, path: Path) -> None:
        self.collection: Collection = collect([path])
        self.tables = self.collection.tables

    @property
    def runs(self) -> list[str]:
        """Names of the runs."""
        return self.tables.run_names()

    def outcome(self, run: str) -> str:
        """How the run ended."""
        return str(self.tables.of_run(run).runs["outcome"][0])

    def rows(self, run: str, tag: str) -> pl.DataFrame:
        """Rows of ``metrics`` of one tag, in write order."""
        return self.tables.metrics.filter((pl.col("run") == run) & (pl.col("tag") == tag)).sort("seq")

    def tags(self, run: str) -> set[str]:
        """Tags of one run."""
        return set(self.tables.of_run(run).metrics["tag"].cast(pl.String))

    def points(self, run: str, tag: str) -> list[tuple[int | None, float | str]]:
        """(step, value) in write order, without superseded rows; what is not finite is spelled."""
        kept = self.rows(run, tag).filter(~pl.col("superseded"))
        return [(step, plain(value)) for step, value in kept.select("step", "value").iter_rows()]

    def times_ns(self, run: str, tag: str) -> list[int | None]:
        """Wall times in write order."""
        return self.rows(run, tag)["wall_ns"].to_list()

    def params(self, run: str) -> dict[str, Any]:
        """Parameters decoded; the first source that has one counts."""
        rows = self.tables.of_run(run).params.select("key", "value").iter_rows()
        return {str(key): json.loads(value) for key, value in reversed(list(rows))}

    def histograms(self, run: str, tag: str) -> list[tuple[int | None, list[float], list[float]]]:
        """(step, edges, counts) in write order."""
        frame = self.tables.of_run(run).histograms.filter(pl.col("tag") == tag)
        return frame.select("step", "edges", "counts").rows()

    def marks(self, run: str) -> list[tuple[str, int | None, str]]:
        """(kind, step, text), in order."""
        return self.tables.of_run(run).marks.select("kind", "step", "text").rows()

    def counters(self, run: str) -> dict[str, list[float]]:
        """Values of each counter in order of time, all series together."""
        frame = self.tables.of_run(run).samples.with_columns(pl.col("counter").cast(pl.String)).sort("t_ns")
        return {str(c[0]): f["value"].to_list() for c, f in frame.group_by("counter", maintain_order=True)}

    def notes(self, run: str) -> str:
        """Everything that is said about the sources of a run."""
        return "\n".join(self.tables.of_run(run).sources["note"].drop_nulls())

    def sound(self) -> bool:
        """Whether nothing counts as damaged and every source was read or skipped on purpose."""
        sources = self.tables.sources
        states = set(sources["status"].cast(pl.String))
        return sources["damaged"].sum() == 0 and states <= {"read", "skipped", "empty"}


def plain(value: float) -> float | str:
    """A finite number as it is; NaN and infinities as text, for NaN is unequal to itself."""
    return value if math.isfinite(value) else str(value)


def ns(seconds: float) -> int:
    """Seconds as a double to the nearest nanosecond, exactly."""
    return round(Fraction(seconds) * 10**9)
