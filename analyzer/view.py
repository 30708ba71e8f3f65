"""One run as the passes see it: curves built once, pairs, learning rate, cost of a stretch of steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Finding
from afterrun.analyzer.layers.layers import Layer, layers_of
from afterrun.analyzer.series import Better, Series, build_series
from afterrun.analyzer.trace.trace import Trace
from afterrun.loaders.names import Name, direction, metric_of, words_of
from afterrun.loaders.schema import Tables


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """A training curve and the held-out curve of the same metric."""

    train: Series
    val: Series

    @property
    def same_axis(self) -> bool:
        """Whether both count the same thing: the ranges of their axes overlap for most of the shorter one."""
        a, b = self.train.x, self.val.x
        low, high = max(a[0], b[0]), min(a[-1], b[-1])
        shorter, longer = sorted((float(a[-1] - a[0]), float(b[-1] - b[0])))
        return high - low >= 0.5 * shorter and shorter >= 0.25 * longer


@dataclass(frozen=True, eq=False, kw_only=True)
class RunView:
    """All of one run. Frozen; series are built on first use and shared by all passes."""

    name: str
    tables: Tables
    """The rows of this run alone."""
    now_ns: int | None = None
    """The newest time recorded in the whole input, or what ``--now`` says."""
    overrides: Mapping[str, Name] = field(default_factory=dict)
    """Meaning of tags given by the user (``--map``)."""
    pairs_given: tuple[tuple[str, str], ...] = ()
    """Pairs of tags given by the user (``--pair TRAIN=VAL``)."""
    earlier: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    """Findings of the passes that ran before, by code; what a pass names in ``after`` is there."""

    def with_earlier(self, findings: list[Finding]) -> RunView:
        """A copy that also knows these findings; built series are kept."""
        merged = dict(self.earlier)
        for f in findings:
            merged[f.code] = (*merged.get(f.code, ()), f)
        copy = replace(self, earlier=merged)
        own = {f.name for f in fields(self)}
        # no cached property reads ``earlier``, so all that was built stays true
        copy.__dict__.update({k: v for k, v in self.__dict__.items() if k not in own})
        return copy

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """All curves with at least one surviving point, in order of first appearance."""
        sampled = set(self.tables.sources.filter(pl.col("sampled"))["source"].cast(pl.String))
        rows = self.tables.metrics.sort("attempt", "seq", maintain_order=True)
        rows = rows.with_columns(pl.col("tag", "metric", "split", "source").cast(pl.String))
        built = [
            build_series(
                part,
                run=self.name,
                better=self._better(part["tag"][0], part["metric"][0]),
                sampled=part["source"][0] in sampled,
            )
            for part in rows.partition_by(["rank", "tag"], maintain_order=True)
        ]
        return tuple(s for s in built if s is not None)

    def _better(self, tag: str, metric: str | None) -> Better | None:
        given = self.overrides.get(tag)
        return given.better if given else direction(metric)

    def pick(self, metric: str, *splits: str) -> Series | None:
        """The curve of this metric with the most finite points, of the first split that has one.

        Rank 0 (or no rank) first: other ranks are compared by passes of their own.
        """
        for split in splits or ("train", "none", "val", "test"):
            found = [s for s in self.lead if s.metric == metric and s.split == split and len(s.y)]
            if found:
                return max(found, key=lambda s: len(s.y))
        return None

    def map_hint(self, metric: str, split: str) -> str:
        """The option to paste that gives ``metric`` and ``split`` to a curve whose name is not known.

        Proposes the unnamed curve whose tag holds a word for the metric and whose split does not contradict, the one
        with the most points where several do; else, for the training side, the only curve there is. ``TAG`` stands in
        elsewhere: a curve of anything is no proposal.
        """
        drawn = [s for s in self.curves if len(s.y)]
        unnamed = [s for s in drawn if s.metric is None and s.split in (split, "none")]
        free = [s for s in unnamed if _sounds_like(s.tag, metric)]
        if not free and split == "train" and len(drawn) == 1:
            free = unnamed
        tag = max(free, key=lambda s: (s.split == split, len(s.y))).tag if free else "TAG"
        text = f"{tag}={metric}:{split}".replace("'", "'\"'\"'")
        return f"--map '{text}'"

    @cached_property
    def lead(self) -> tuple[Series, ...]:
        """The curves of the lowest rank, or those without a rank."""
        ranks = [s.rank for s in self.series if s.rank is not None]
        low = min(ranks) if ranks else None
        return tuple(s for s in self.series if s.rank in (None, low))

    @cached_property
    def curves(self) -> tuple[Series, ...]:
        """``lead`` without the axis tags (epoch, step, tokens), which are no measurement."""
        return tuple(s for s in self.lead if s.kind != "axis")

    @cached_property
    def trace(self) -> Trace:
        """Devices, host threads and gaps of the profiler traces; without devices where none is recorded."""
        return Trace(spans=self.tables.spans)

    @cached_property
    def train_loss(self) -> Series | None:
        """The main training objective: ``loss`` of the training split, else of no split, else the only loss."""
        main = self.pick("loss", "train", "none")
        if main is not None:
            return main
        parts = [s for s in self.lead if s.split in ("train", "none") and s.better == "min" and len(s.y)]
        return max(parts, key=lambda s: len(s.y)) if parts else None

    @cached_property
    def lr(self) -> Series | None:
        """The learning rate with the most points; the first parameter group where there are several."""
        return self.pick("lr", "train", "none", "val")

    @cached_property
    def grad_norm(self) -> Series | None:
        """The total gradient norm."""
        return self.pick("grad_norm", "train", "none")

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Gradients, weights and activations by layer, from histograms and from scalars a layer."""
        return layers_of(self.tables.histograms, self.lead)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Training and held-out curves of the same metric; given pairs first, then ``loss``, then the others."""
        by_tag = {s.tag: s for s in self.lead}
        given = [
            Pair(train=by_tag[a], val=by_tag[b]) for a, b in self.pairs_given if a in by_tag and b in by_tag
        ]
        seen = {p.val.tag for p in given}
        metrics = dict.fromkeys(s.metric for s in self.lead if s.metric and s.better and _is_quality(s))
        found: list[Pair] = []
        for metric in sorted(metrics, key=lambda m: m != "loss"):
            train = self.pick(metric, "train", "none")
            held = [s for s in self.lead if s.metric == metric and s.split in ("val", "test") and len(s.y)]
            if train is not None:
                found += [Pair(train=train, val=v) for v in held if v.tag not in seen and v.tag != train.tag]
        return (*given, *found)

    @cached_property
    def devices(self) -> int | None:
        """GPUs the run held; None where nothing says it."""
        if self.tables.runs.is_empty():
            return None
        row = self.tables.runs.row(0, named=True)
        count = row["devices"] or row["world_size"]
        return int(count) if count else None

    @cached_property
    def outcome(self) -> str:
        """How the run ended, from the ``runs`` table."""
        return (
            "unknown" if self.tables.runs.is_empty() else str(self.tables.runs["outcome"].cast(pl.String)[0])
        )

    @cached_property
    def _clock(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Steps and wall clock of all surviving rows that have both, both non-decreasing."""
        rows = self.tables.metrics.filter(
            pl.col("step").is_not_null() & pl.col("wall_ns").is_not_null() & ~pl.col("superseded")
        ).select("step", "wall_ns")
        if len(rows) < 2:
            return None
        rows = rows.group_by("step").agg(pl.col("wall_ns").max()).sort("step")
        return rows["step"].to_numpy().astype(np.float64), np.maximum.accumulate(rows["wall_ns"].to_numpy())

    def wall_s_between(self, start: float, end: float) -> float | None:
        """Seconds of wall clock between two steps of the surviving run; None where not recorded."""
        if self._clock is None:
            return None
        steps, wall = self._clock
        a, b = np.interp([start, end], steps, (wall - wall[0]) / 1e9)
        return float(b - a)

    def gpu_s_between(self, start: float, end: float) -> float | None:
        """GPU-seconds between two steps; None where the clock or the number of GPUs is not recorded."""
        wall = self.wall_s_between(start, end)
        return None if wall is None or self.devices is None else wall * self.devices

    @cached_property
    def params(self) -> dict[str, str]:
        """Parameters of the run, values as JSON text; those of the latest attempt where they differ."""
        frame = self.tables.params.sort("attempt", maintain_order=True)
        return dict(zip(frame["key"].cast(pl.String), frame["value"], strict=True))


_STEMS: Mapping[str, tuple[str, ...]] = {
    "loss": ("loss", "err", "cost", "xent", "nll", "obj", "crit", "ppl", "perplex", "bce", "mse"),
    "lr": ("lr", "learn"),
    "grad_norm": ("grad",),
    "reward": ("rew", "return", "score"),
    "accuracy": ("acc",),
}
"""How words of a tag begin or end that may mean a metric, where its name is not known."""


def _sounds_like(tag: str, metric: str) -> bool:
    """Whether a word of the tag begins or ends as words for this metric do."""
    stems = _STEMS.get(metric, (metric,))
    return any(word.startswith(stems) or word.endswith(stems) for word in words_of(tag))


def _is_quality(s: Series) -> bool:
    known = metric_of(s.metric) if s.metric else None
    return known is None or known.kind in ("loss", "quality")
