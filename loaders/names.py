"""Raw tag -> canonical metric, split, unit and direction, by a table that a person can read.

The table is data: ``names.toml`` lists every canonical metric with the spellings that mean it. Split and
aggregation words are taken off a tag first, so ``val/loss``, ``loss_val_epoch`` and ``Loss/Valid`` need no
rows of their own. What the table does not hold stays unknown: ``metric`` null, direction null, never
guessed. Users add rows with ``--map 'TAG=metric:split:min|max'`` or ``[metrics]`` in ``afterrun.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from afterrun.loaders.errors import UsageError

Better = Literal["min", "max"]
Split = Literal["train", "val", "test", "none"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One canonical metric. ``kind``: loss, quality, axis, rate, gradient, time, throughput, memory, other."""

    name: str
    kind: str
    better: Better | None
    unit: str
    spellings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """What a raw tag means. ``metric`` is None where unknown."""

    metric: str | None
    split: Split = "none"
    unit: str = ""
    better: Better | None = None
    kind: str = "other"


def _read_table() -> tuple[Metric, ...]:
    """The rows of ``names.toml``, in its order."""
    table = tomllib.loads(files("afterrun.loaders").joinpath("names.toml").read_text("utf-8"))
    return tuple(
        Metric(name, kind, row["better"] or None, row["unit"], (name, *row["spellings"]))
        for kind, rows in table.items()
        for name, row in rows.items()
    )


METRICS: tuple[Metric, ...] = _read_table()
"""Every canonical metric, as ``names.toml`` lists them."""

SPLIT_WORDS: Mapping[str, Split] = {
    "train": "train",
    "training": "train",
    "trn": "train",
    "tr": "train",
    "trl": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "eval": "val",
    "evaluation": "val",
    "dev": "val",
    "vl": "val",
    "test": "test",
    "testing": "test",
    "holdout": "test",
}

# Words that say how a number was aggregated, not what it is.
_AGGREGATION = frozenset(
    {
        "epoch",
        "step",
        "batch",
        "iter",
        "avg",
        "average",
        "mean",
        "main",
        "running",
        "ema",
        "smoothed",
        "global",
        "metrics",
        "metric",
        "rollout",
        "perf",
        "time",
        "optim",
        "charts",
        "per",
        "vs",
        "iterations",
        "losses",
        "scalars",
        "scalar",
        "by",
        "on",
    }
)

_OPAQUE_LOSS = frozenset(
    {
        "policy",
        "value",
        "entropy",
        "actor",
        "critic",
        "discriminator",
        "generator",
        "disc",
        "gen",
        "adversarial",
        "adv",
        "d",
        "g",
        "gan",
        "pg",
        "kl",
        "aux",
        "contrastive",
    }
)
"""Losses of games: falling is not getting better, so their direction stays unknown."""

_SEPARATORS = re.compile(r"[/\s.:|_-]+")


@cache
def _index() -> dict[str, Metric]:
    index: dict[str, Metric] = {}
    for metric in METRICS:
        for spelling in metric.spellings:
            if index.setdefault(spelling, metric) is not metric:
                raise ValueError(
                    f"the spelling {spelling!r} means both {index[spelling].name} and {metric.name}"
                )
    return index


def metric_of(name: str) -> Metric | None:
    """The canonical metric of this name; None for names outside the table."""
    found = _index().get(name)
    return found if found is not None and found.name == name else None


def direction(metric: str | None) -> Better | None:
    """Whether lower (``min``) or higher (``max``) is better; None where the table does not say."""
    if metric is None:
        return None
    known = metric_of(metric)
    if known:
        return known.better
    words = metric.split("_")
    return "min" if words[-1] == "loss" and not _OPAQUE_LOSS & set(words) else None


@cache
def canonical(tag: str) -> Name:
    """What one tag means on its own, without its siblings."""
    flat = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", tag.strip()).lower()
    whole = re.sub(r"[\s]+", "_", flat)
    words = [w for w in _SEPARATORS.split(flat) if w]
    splits = [SPLIT_WORDS[w] for w in words if w in SPLIT_WORDS]
    split: Split = next((s for s in splits if s != "train"), splits[0] if splits else "none")
    rest = [w for w in words if w not in SPLIT_WORDS]
    for candidate in _candidates(whole, flat, words, rest):
        metric = _index().get(candidate)
        if metric:
            return Name(metric.name, split, metric.unit, metric.better, metric.kind)
    core = [w for w in rest if w not in _AGGREGATION]
    if core and core[-1] == "loss":
        name = "_".join(core)
        return Name(name, split, "", direction(name), "loss")
    if len(core) > 1 and core[0] == "loss":
        name = "_".join([*core[1:], "loss"])
        return Name(name, split, "", direction(name), "loss")
    return Name(None, split)


def _candidates(whole: str, flat: str, words: list[str], rest: list[str]) -> Iterable[str]:
    """Spellings to look up, from the most to the least literal."""
    yield whole
    yield "_".join(words)
    tail = flat.rsplit("/", 1)[-1]
    yield "_".join(w for w in re.split(r"[\s_]+", tail) if w and w not in SPLIT_WORDS)
    yield "_".join(rest)
    core = [w for w in rest if w not in _AGGREGATION]
    yield "_".join(core)
    if len(core) > 1 and core[0] == core[-1]:  # loss/train_loss, Accuracy/val_accuracy
        yield "_".join(core[1:])
    if core and core[0] in ("lr", "learning"):  # one lr for each parameter group or optimiser
        yield "lr"


def resolve(points: Mapping[str, int], overrides: Mapping[str, Name] | None = None) -> dict[str, Name]:
    """Names of all tags of one run, given the number of points of each.

    A loss or quality metric without a split word is the training one where a validation or test
    sibling exists and no tag with at least as many points says ``train`` itself (Keras and the HF
    Trainer write ``loss`` beside ``val_loss`` / ``eval_loss``).
    """
    names = {tag: canonical(tag) for tag in points}
    held_out = {n.metric for n in names.values() if n.split in ("val", "test") and n.metric}
    explicit: dict[str, int] = {}
    for tag, n in names.items():
        if n.split == "train" and n.metric:
            explicit[n.metric] = max(explicit.get(n.metric, 0), points[tag])
    for tag, n in names.items():
        if (
            n.split == "none"
            and n.kind in ("loss", "quality")
            and n.metric in held_out
            and points[tag] > explicit.get(n.metric or "", 0)
        ):
            names[tag] = replace(n, split="train")
    for tag, name in (overrides or {}).items():
        if tag in names:
            names[tag] = name
    return names


def parse_map(text: str) -> tuple[str, Name]:
    """``TAG=metric[:split[:min|max]]`` -> (tag, name). Raises ``UsageError`` saying what is wrong."""
    tag, eq, right = text.rpartition("=")
    parts = right.split(":")
    if not eq or not tag or not parts[0] or len(parts) > 3:
        raise UsageError(f"--map {text!r}: write 'TAG=metric:split:min|max', for example 'dev/xent=loss:val'")
    metric = parts[0].strip()
    split = parts[1].strip() if len(parts) > 1 and parts[1].strip() else canonical(tag).split
    if split not in ("train", "val", "test", "none"):
        raise UsageError(f"--map {text!r}: the split is train, val, test or none, not {split!r}")
    better = parts[2].strip() if len(parts) > 2 else direction(metric)
    if better not in ("min", "max", None):
        raise UsageError(f"--map {text!r}: the direction is min or max, not {better!r}")
    known = metric_of(metric)
    kind = known.kind if known else "loss" if better == "min" else "quality" if better == "max" else "other"
    return tag, Name(metric, split, known.unit if known else "", better, kind)  # type: ignore[arg-type]  # checked above
