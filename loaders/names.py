"""Raw tag -> canonical metric, split, unit and direction, by a table that a person can read.

The table is data: ``names.toml`` lists every canonical metric with the spellings that mean it. Split and
aggregation words are taken off a tag first, so ``val/loss``, ``loss_val_epoch`` and ``Loss/Valid`` need no
rows of their own (``afterrun.loaders.naming.reading``). What the table does not hold stays unknown: ``metric`` null,
direction null, never guessed. Users add rows with ``--map 'TAG=metric:split:min|max'`` or ``[metrics]`` in
``afterrun.toml``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from afterrun.loaders.errors import UsageError
from afterrun.loaders.naming.reading import SPLIT_WORDS, Reading, Split, reading, words_of
from afterrun.loaders.naming.table import METRICS, Better, Metric, Spelt, direction, metric_of

__all__ = [
    "METRICS", "SPLIT_WORDS", "Better", "Metric", "Name", "Split",
    "canonical", "direction", "metric_of", "parse_map", "resolve", "words_of",
]  # fmt: skip

_SIDES: Mapping[Split, str] = {"train": "train", "none": "train", "val": "val", "test": "test"}
"""Tags without a split word stand with the training ones."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a raw tag means. ``metric`` is None where unknown."""

    metric: str | None
    split: Split = "none"
    unit: str = ""
    better: Better | None = None
    kind: str = "other"


@cache
def canonical(tag: str) -> Name:
    """What one tag means on its own, without its siblings."""
    return _name(reading(tag))


def _name(r: Reading) -> Name:
    metric = r.metric
    if metric is None:
        return Name(None, r.split)
    if (r.others or r.cut) and metric.kind in ("loss", "quality"):
        part = metric_of("_".join([*r.others, metric.name + r.cut]))
        metric = part if part is not None else metric
    elif r.others and metric.kind not in ("axis", "rate"):
        return Name(None, r.split)  # of one layer, worker or phase: not that of the run
    return Name(metric.name, r.split, metric.unit, metric.better, metric.kind)


def resolve(points: Mapping[str, int], overrides: Mapping[str, Name] | None = None) -> dict[str, Name]:
    """Names of all tags of one run, given the number of points of each.

    What a tag says on its own is completed by its siblings: folders and numbers that tell no curves apart are
    dropped, ``time`` beside ``data_time`` is the time of a step, two spellings of one metric are two curves, and a
    loss without a split word is the training one where a validation sibling exists.
    """
    readings = _without_idle_words({tag: reading(tag) for tag in points})
    readings |= _told_by_company(readings)
    names = {tag: _name(r) for tag, r in readings.items()}
    names = _with_training_split(names, points)
    names |= _own_spellings(names, readings, points)
    for tag, name in (overrides or {}).items():
        if tag in names:
            names[tag] = name
    return names


def _without_idle_words(readings: dict[str, Reading]) -> dict[str, Reading]:
    """Folders and numbers are dropped where all curves of the metric on one side have the same.

    A held-out curve keeps them if its training sibling does: ``val/rpn/loss`` beside ``train/rpn/loss``.
    """
    told: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for r in readings.values():
        if r.metric:
            told[r.metric.name, _SIDES[r.split]].add(r.others)

    def idle(r: Reading) -> bool:
        if r.metric is None or r.telling not in ("folder", "number"):
            return False
        if r.metric.better and r.metric.kind in ("loss", "quality") and _name(r).better is None:
            return False  # the loss of one player
        train = told[r.metric.name, "train"]
        distinct = _SIDES[r.split] != "train" and r.others in train and len(train) > 1
        return len(told[r.metric.name, _SIDES[r.split]]) == 1 and not distinct

    return {tag: replace(r, others=(), telling="") if idle(r) else r for tag, r in readings.items()}


def _told_by_company(readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Words too common to mean anything alone, by what stands beside them in their folder."""
    flat = {tag.strip().lower() for tag in readings}
    found: dict[str, Reading] = {}
    for tag, r in readings.items():
        folder, slash, word = tag.strip().lower().rpartition("/")
        for metric in METRICS if r.metric is None else ():
            beside = any(folder + slash + other in flat for other in metric.beside.get(word, ()))
            if beside and not any(folder + slash + other in flat for other in metric.not_beside):
                found[tag] = Reading(r.split, Spelt(metric, 0))
    return found


def _with_training_split(names: Mapping[str, Name], points: Mapping[str, int]) -> dict[str, Name]:
    """A loss or quality metric without a split word is the training one where a validation or test sibling
    exists and no tag with at least as many points says ``train`` itself (Keras and the HF Trainer write
    ``loss`` beside ``val_loss`` / ``eval_loss``).
    """
    held_out = {n.metric for n in names.values() if n.split in ("val", "test") and n.metric}
    explicit: dict[str, int] = {}
    for tag, n in names.items():
        if n.split == "train" and n.metric:
            explicit[n.metric] = max(explicit.get(n.metric, 0), points[tag])

    def training(tag: str, n: Name) -> bool:
        told = n.split == "none" and n.kind in ("loss", "quality") and n.metric in held_out
        return told and points[tag] > explicit.get(n.metric or "", 0)

    return {tag: replace(n, split="train") if training(tag, n) else n for tag, n in names.items()}


def _own_spellings(
    names: Mapping[str, Name], readings: Mapping[str, Reading], points: Mapping[str, int]
) -> dict[str, Name]:
    """Losses and scores that go by their own spelling, for a more usual one with as many points has the name."""
    most: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for tag, r in readings.items():
        if r.spelt and not r.others and r.spelt.metric.kind in ("loss", "quality"):
            counts = most[r.spelt.metric.name, _SIDES[names[tag].split]]
            counts[r.spelt.place] = max(counts.get(r.spelt.place, 0), points[tag])
    second = {
        (metric, place)
        for (metric, _), counts in most.items()
        for place, n in counts.items()
        if any(other < place and m >= n for other, m in counts.items())
    }
    return {
        tag: replace(names[tag], metric=r.spelt.metric.spellings[r.spelt.place])
        for tag, r in readings.items()
        if r.spelt and not r.others and (r.spelt.metric.name, r.spelt.place) in second
    }


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
