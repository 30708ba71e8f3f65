"""One curve of one run, as every pass sees it: surviving rows in write order, on a work scale."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.finding import Evidence, jsonable
from afterrun.analyzer.smoothing import Smoothing, choose_alpha, ewma
from afterrun.analyzer.stats import Array, noise_scale
from afterrun.loaders.names import metric_of

Scale = Literal["log", "logit", "raw"]
Better = Literal["min", "max"]

Ints = npt.NDArray[np.int64]

LOGIT_CLIP = 1e-4
"""Accuracies are clipped to [1e-4, 1 - 1e-4] before the logit."""

WARMUP_POINTS = 20
WARMUP_SHARE = 0.01


HUGE = 1e150
"""Sums of squares of larger values overflow; no training that computes in floats of 32 bits gets there."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Points of one (run, rank, tag) that survive restarts. Arrays share one length n.

    ``x`` is the axis all passes use: the step where it is recorded, else the write order, and strictly
    increasing. ``value`` keeps NaN and infinities: they are evidence. ``better`` is None where the
    direction is unknown; passes that need it abstain.
    """

    run: str
    tag: str
    metric: str | None
    split: str
    rank: int | None
    source: str
    better: Better | None
    x: Array
    has_step: bool
    value: Array
    wall_ns: Ints | None
    epoch: Array | None
    attempt: npt.NDArray[np.int32]
    superseded: int = 0
    """Rows of this tag that a restart or a rewrite replaced."""
    sampled: bool = False
    """The source is known to hold only a sample of the points."""
    frame: pl.DataFrame = field(repr=False, default_factory=pl.DataFrame)
    """All rows of the tag, superseded ones included, in write order."""

    def __len__(self) -> int:
        """Surviving points, non-finite ones included."""
        return len(self.value)

    @property
    def kind(self) -> str:
        """What the metric is (``loss``, ``quality``, ``axis``, ``gradient``, ...); ``other`` where unknown."""
        known = metric_of(self.metric) if self.metric else None
        if known is not None:
            return known.kind
        return "loss" if self.metric and self.metric.endswith("loss") else "other"

    @cached_property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Mask of finite values, shape (n,). What is larger than ``HUGE`` counts as infinite: its square is."""
        return np.abs(self.value) <= HUGE

    @cached_property
    def y(self) -> Array:
        """The finite values, shape (m,)."""
        return self.value[self.finite]

    @cached_property
    def xf(self) -> Array:
        """The axis at the finite values, shape (m,)."""
        return self.x[self.finite]

    @cached_property
    def scale(self) -> Scale:
        """The work scale: logit for shares in [0, 1] where higher is better, log for positive values."""
        y = self.y
        if not len(y):
            return "raw"
        if self.better == "max" and float(y.min()) >= 0.0 and float(y.max()) <= 1.0:
            return "logit"
        return "log" if float(y.min()) > 0.0 else "raw"

    def to_work(self, values: Array) -> Array:
        """Values on the work scale."""
        if self.scale == "log":
            return np.asarray(np.log(values), dtype=np.float64)
        if self.scale == "logit":
            p = np.clip(values, LOGIT_CLIP, 1.0 - LOGIT_CLIP)
            return np.asarray(np.log(p / (1.0 - p)), dtype=np.float64)
        return values

    def from_work(self, u: Array) -> Array:
        """The inverse of ``to_work``."""
        if self.scale == "log":
            return np.asarray(np.exp(u), dtype=np.float64)
        if self.scale == "logit":
            return np.asarray(1.0 / (1.0 + np.exp(-u)), dtype=np.float64)
        return u

    @cached_property
    def u(self) -> Array:
        """The finite values on the work scale, shape (m,)."""
        return self.to_work(self.y)

    @cached_property
    def cost(self) -> Array:
        """``u`` turned so that lower is better, shape (m,); as it is where the direction is unknown."""
        return -self.u if self.better == "max" else self.u

    @cached_property
    def warmup(self) -> int:
        """Finite points at the start that noise and plateau statistics leave out: max(20, 1 %), at most 10 % of a short series."""
        m = len(self.y)
        return min(max(WARMUP_POINTS, int(WARMUP_SHARE * m)), m // 10)

    @cached_property
    def sigma(self) -> float:
        """Noise on the work scale after warm-up (see ``stats.noise_scale``)."""
        return noise_scale(self.u[self.warmup :])

    @cached_property
    def smoothing(self) -> Smoothing | None:
        """The alpha chosen on the work scale after warm-up; None for fewer than 8 points."""
        return choose_alpha(self.u[self.warmup :])

    @cached_property
    def smooth_u(self) -> Array:
        """EWMA of ``u`` with the chosen alpha, shape (m,); ``u`` itself where too short."""
        return ewma(self.u, self.smoothing.alpha) if self.smoothing else self.u

    @property
    def span(self) -> float:
        """Length of the axis from the first to the last point."""
        return float(self.x[-1] - self.x[0]) if len(self) > 1 else 0.0

    def step_at(self, i: int) -> int | None:
        """The recorded step of the i-th finite point; None where no step is recorded."""
        return int(self.xf[i]) if self.has_step else None

    def evidence(self, row: int, note: str = "") -> Evidence:
        """The surviving point number ``row`` (non-finite ones counted) as it can be found in the input."""
        return Evidence(
            source=str(self._alive["source"][row]),
            tag=self.tag,
            step=int(self.x[row]) if self.has_step else None,
            value=jsonable(float(self.value[row])),
            note=note,
        )

    def row_of(self, i: int) -> int:
        """The number among all surviving points of the i-th finite one."""
        return int(np.flatnonzero(self.finite)[i])

    @cached_property
    def _alive(self) -> pl.DataFrame:
        return surviving(self.frame)

    def wall_at(self, i: int) -> int | None:
        """Wall clock in ns of the i-th finite point; None where it is not recorded."""
        return int(self.wall_ns[self.finite][i]) if self.wall_ns is not None else None


def surviving(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of one tag that no restart replaced and that hold a value, in the order of their axis.

    Where the step is recorded everywhere it is strictly increasing afterwards: of two rows at one step
    the one written last stays.
    """
    alive = frame
    if frame["superseded"].to_numpy().any() or frame["value"].null_count():
        alive = frame.filter(~pl.col("superseded") & pl.col("value").is_not_null())
    step = alive["step"]
    if step.null_count() or _increases(step.to_numpy()):
        return alive
    return alive.sort("step", maintain_order=True).unique("step", keep="last", maintain_order=True)


def _increases(x: npt.NDArray[np.int64]) -> bool:
    return bool((x[1:] > x[:-1]).all())


def build_series(
    frame: pl.DataFrame, *, run: str, better: Better | None, sampled: bool = False
) -> Series | None:
    """One ``Series`` from all metric rows of one (run, rank, tag) in write order.

    Null values (not recorded) are left out. None where nothing survives.
    """
    alive = surviving(frame)
    if alive.is_empty():
        return None
    first = frame.row(0, named=True)
    has_step = alive["step"].null_count() == 0
    x = alive["step"].to_numpy() if has_step else np.arange(len(alive))
    wall = alive["wall_ns"]
    epoch = alive["epoch"]
    return Series(
        run=run,
        tag=str(first["tag"]),
        metric=first["metric"],
        split=str(first["split"]),
        rank=first["rank"],
        source=str(alive["source"][-1]),
        better=better,
        x=x.astype(np.float64),
        has_step=has_step,
        value=alive["value"].to_numpy().astype(np.float64),
        wall_ns=wall.to_numpy().astype(np.int64) if wall.null_count() == 0 else None,
        epoch=epoch.to_numpy().astype(np.float64) if epoch.null_count() == 0 else None,
        attempt=alive["attempt"].to_numpy().astype(np.int32),
        superseded=int(np.count_nonzero(frame["superseded"].to_numpy())),
        sampled=sampled,
        frame=frame,
    )
