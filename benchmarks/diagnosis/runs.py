"""One synthetic training: what a loop would have logged, and what is wrong with it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from benchmarks.diagnosis.shapes import (
    NOISES,
    SCHEDULES,
    Bools,
    Dice,
    Floats,
    Ints,
    descent,
    fading,
    falls,
    noise,
    rises,
    schedule,
)

TRAIN, VAL, LR, GRAD, STEP_S, DATA_S = "train/loss", "val/loss", "lr", "grad_norm", "step_time", "data_time"


@dataclass(frozen=True)
class Fault:
    """What a pass has to find: its code and the step at which it begins."""

    code: str
    onset: int


@dataclass
class Run:
    """Curves by tag, one value a row; a tag that is in ``logged`` was logged at those rows only.

    ``allowed``: codes that are a fair second reading, neither right nor wrong. A run without faults is healthy:
    every alarm about it is false.
    """

    kind: str
    seed: int
    step: Ints
    curves: dict[str, Floats]
    logged: dict[str, Bools] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    allowed: set[str] = field(default_factory=set)
    noise_sd: float = 0.0
    noise_kind: str = "white"
    start: float = 1.0
    floor: float = 0.0
    smooth: Floats = field(default_factory=lambda: np.empty(0))
    """The training loss without noise."""

    @property
    def name(self) -> str:
        """Name of its folder or file."""
        return f"{self.kind}-{self.seed:05d}"

    @property
    def rows(self) -> int:
        """Number of logged rows."""
        return len(self.step)

    @property
    def wall_s(self) -> Floats:
        """Seconds since the epoch at the end of each row."""
        every = float(np.median(np.abs(np.diff(self.step)))) if self.rows > 1 else 1.0
        return np.asarray(1.7e9 + np.cumsum(self.curves.get(STEP_S, np.ones(self.rows)) * every))

    def at(self, tag: str) -> Bools:
        """Rows at which a tag was logged."""
        return self.logged.get(tag, np.ones(self.rows, np.bool_))

    def fault(self, code: str, row: int, *allowed: str) -> Run:
        """Mark a fault that begins at a row."""
        self.faults.append(Fault(code, int(self.step[row])))
        self.allowed |= set(allowed)
        return self

    def scale(self, tag: str, factor: Floats) -> None:
        """Multiply a curve, where the run has it."""
        if tag in self.curves:
            self.curves[tag] = self.curves[tag] * factor

    def evaluated(self, tag: str, smooth: Floats, dice: Dice, share: float = 0.25) -> None:
        """Log a curve at the rows of evaluations, with a share of the noise of the training loss."""
        self.curves[tag] = smooth * noise(dice, self.rows, self.noise_sd * share)
        self.logged[tag] = self.logged[VAL]


Kind = Callable[[Dice, int], Run]
KINDS: dict[str, Kind] = {}


def kind(make: Callable[[Dice], Run]) -> Callable[[Dice], Run]:
    """Register a function that makes one kind of run, under its name."""

    def named(dice: Dice, seed: int) -> Run:
        run = make(dice)
        run.kind, run.seed = make.__name__, seed
        return run

    KINDS[make.__name__] = named
    return make


def make(name: str, seed: int) -> Run:
    """The run of this kind and seed; the same pair always gives the same arrays."""
    return KINDS[name](np.random.default_rng([seed, zlib.crc32(name.encode())]), seed)


def _task(dice: Dice) -> tuple[float, float, float]:
    """Loss at the start, its floor, and the noise of a point."""
    kind_ = dice.integers(5)
    if kind_ == 0:  # a language model from nothing
        return math.log(dice.integers(5_000, 200_000)), dice.uniform(2.0, 3.8), dice.uniform(0.005, 0.03)
    if kind_ == 1:  # a fine-tuning
        return dice.uniform(1.2, 3.0), dice.uniform(0.4, 1.0), dice.uniform(0.02, 0.10)
    if kind_ == 2:  # a classifier
        return math.log(dice.integers(2, 2000)), dice.uniform(0.02, 0.4), dice.uniform(0.02, 0.10)
    if kind_ == 3:  # a regression or a diffusion model
        return 10 ** dice.uniform(-2, 2), 0.0, dice.uniform(0.03, 0.12)
    return (
        math.log(2 ** dice.integers(6, 15)),
        dice.uniform(0.3, 2.0),
        dice.uniform(0.01, 0.05),
    )  # contrastive


def rows_of(dice: Dice, least: int = 60, most: int = 4000) -> int:
    """A number of logged rows; each magnitude is as likely as another."""
    return int(10 ** dice.uniform(math.log10(least), math.log10(most)))


def world(
    dice: Dice,
    *,
    rows: int | None = None,
    sd: float | None = None,
    noise_kind: str | None = None,
    lr: str | None = None,
    evaluations: int | None = None,
) -> Run:
    """A healthy run; every fault is cut into one. What is not given is drawn."""
    n = rows_of(dice) if rows is None else rows
    start, floor, drawn_sd = _task(dice)
    sd = drawn_sd if sd is None else sd
    floor = floor or start * 10 ** dice.uniform(-2, -0.7)
    noise_kind = noise_kind or str(dice.choice(NOISES))
    rate = schedule(dice, n, lr or str(dice.choice([k for k in SCHEDULES if k != "restarts"])))
    smooth = floor + (start - floor) * descent(dice, n)
    for at in falls(rate):  # a lower rate takes the loss down at once
        smooth = smooth * (1 - dice.uniform(0.05, 0.2) * (1 - fading(n, at, n * 0.01)) * (np.arange(n) >= at))
    for at in rises(rate):  # a restart costs a little for a while
        smooth = smooth * (1 + dice.uniform(0.02, 0.08) * fading(n, at, n * 0.02))
    count = int(evaluations or min(n, dice.integers(12, 60)))
    logged = np.zeros(n, np.bool_)
    logged[max(1, n // count) - 1 :: max(1, n // count)] = True
    calm, wild = dice.uniform(0.2, 1.5), dice.uniform(1.5, 8)
    step_s = 10 ** dice.uniform(-1.2, 0.8) * noise(dice, n, dice.uniform(0.02, 0.08))
    step_s[: min(3, n)] *= dice.uniform(1.2, 6)
    run = Run(
        kind="world",
        seed=0,
        step=(np.arange(n, dtype=np.int64) + 1) * int(dice.choice([1, 5, 10, 50])),
        curves={
            TRAIN: smooth * noise(dice, n, sd, noise_kind),
            LR: rate,
            GRAD: (calm + wild * np.exp(-np.arange(n) / (0.05 * n))) * noise(dice, n, dice.uniform(0.1, 0.3)),
            STEP_S: step_s,
            DATA_S: step_s * dice.uniform(0.005, 0.05) * noise(dice, n, 0.3),
        },
        logged={VAL: logged},
        noise_sd=sd,
        noise_kind=noise_kind,
        start=start,
        floor=floor,
        smooth=smooth,
    )
    run.evaluated(VAL, smooth * (1 + dice.uniform(0.01, 0.05) * np.linspace(0.3, 1, n)), dice)
    return run
