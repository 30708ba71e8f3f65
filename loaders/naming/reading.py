"""What one tag says on its own: its split, its metric, and the words that tell it from its like.

Split words (``val``), words of aggregation (``epoch``, ``avg``) and folders that say nothing (``metrics/``) are
taken off; what is left is looked up in the table of spellings, from the most to the least literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal

from afterrun.loaders.naming.table import PARTS, Metric, Spelt, divided, spelt

Split = Literal["train", "val", "test", "none"]
Telling = Literal["", "folder", "number", "word"]

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

_AGGREGATION = frozenset(
    {
        "epoch", "step", "batch", "iter", "avg", "average", "mean", "main", "running", "ema", "smoothed", "global",
        "metrics", "metric", "per", "vs", "iterations", "scalars", "scalar", "by", "on",
    }
)  # fmt: skip
"""Words that say how a number was aggregated, not what it is."""

_FOLDERS = _AGGREGATION | {
    "rollout", "perf", "performance", "time", "times", "timer", "timers", "optim", "optimizer", "charts", "chart",
    "losses", "throughput", "speed", "counters", "counter", "info", "log", "logs", "stats", "misc", "env", "runners",
    "collection", "trainer", "monitor", "progress", "learner",
}  # fmt: skip
"""Words of folders that sort curves in a viewer and say nothing about them."""

_STATISTICS = frozenset(
    {
        "scale", "scaler", "weight", "weights", "coef", "coeff", "lambda", "std", "stdev", "stddev", "sd", "var",
        "variance", "ratio", "count", "num", "threshold", "thr", "time", "timer", "lr", "gap", "delta", "diff",
        "patience", "wait", "beta", "clip", "window", "target", "steps", "s", "ms", "sec", "seconds", "rate",
    }
)  # fmt: skip
"""Behind a loss or score they make it another quantity."""

_GRADIENTS = frozenset({"grad", "grads", "gradient", "gradients"})
_RATE_CHANGES = frozenset({"scale", "mult", "multiplier", "factor", "decay", "find", "finder", "ratio"})

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_VERSUS = re.compile(r"[\s_]vs[\s_]+\w+$")
_LOADER = re.compile(r"^(.*)/(dataloader_idx_\d+)$")
_LR = re.compile(r"lr\d*")


@dataclass(frozen=True, slots=True)
class Reading:
    """A tag taken apart. ``others``: words that tell it from other curves of its metric, told by ``telling``.

    ``telling`` is ``folder`` or ``number`` where they may only say where the curve was filed.
    """

    split: Split
    spelt: Spelt | None = None
    others: tuple[str, ...] = ()
    telling: Telling = ""
    cut: str = ""
    """``@5`` of ``recall@5``."""

    @property
    def metric(self) -> Metric | None:
        """The metric, without regard to the other words."""
        return None if self.spelt is None else self.spelt.metric


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a tag in one way to divide it.

    ``whole``: as it stands; ``all``: every word; ``kept``: those of the folders that say something; ``own``: those
    of the last part, without split words; ``core``: without words of aggregation either.
    """

    whole: str
    all: list[str]
    rest: list[str]
    kept: list[str]
    own: list[str]
    core: list[str]


def words_of(tag: str) -> list[str]:
    """The words of a tag in lower case, in order: ``Loss/trainEpoch`` is loss, train, epoch."""
    return divided(_spaced(tag.strip()))


def _spaced(text: str) -> str:
    return _CAMEL.sub("_", text).lower()


@cache
def reading(tag: str) -> Reading:
    """What one tag means without its siblings."""
    text = tag.strip()
    if loader := _LOADER.match(text):  # one curve for each of several loaders of validation data
        text = f"{loader[2]}/{loader[1]}"
    text = _VERSUS.sub("", text)
    spaced = _words(_spaced(text))
    forms = [spaced] if spaced.whole == text.lower() else [spaced, _words(text.lower())]
    split = _split(spaced.all)
    for found, others, telling in _looked_up(forms):
        if found is not None:
            return Reading(split, found, others, telling)
    words = list(dict.fromkeys([*spaced.kept, *spaced.core]))
    if _names_rate(words):
        return Reading(split, spelt("lr"))
    return _part(split, words)


def _words(flat: str) -> _Words:
    segments = [divided(s) for s in flat.split("/")]
    bare = [[w for i, w in enumerate(s) if not _is_split(s, i)] for s in segments]
    last = next((i for i in reversed(range(len(bare))) if bare[i]), 0)
    own = bare[last] if bare else []
    kept = [w for s in bare[:last] for w in s if w not in _FOLDERS]
    return _Words(
        whole=re.sub(r"\s+", "_", flat),
        all=[w for s in segments for w in s],
        rest=[w for s in bare for w in s],
        kept=kept,
        own=own,
        core=[w for w in own if w not in _AGGREGATION],
    )


def _is_split(words: Sequence[str], i: int) -> bool:
    deviation = words[i] == "dev" and i > 0 and words[i - 1] in ("std", "standard")
    return words[i] in SPLIT_WORDS and not deviation


def _split(words: Sequence[str]) -> Split:
    found = [SPLIT_WORDS[w] for i, w in enumerate(words) if _is_split(words, i)]
    return next((s for s in found if s != "train"), found[0] if found else "none")


def _looked_up(forms: Sequence[_Words]) -> Iterator[tuple[Spelt | None, tuple[str, ...], Telling]]:
    """What the table says, from the most to the least literal spelling."""
    for f in forms:
        yield spelt(f.whole) or spelt("_".join(f.all)), (), ""
    for f in forms:
        yield spelt("_".join(f.rest)) or spelt("_".join([*f.kept, *f.own])), (), ""
        yield spelt("_".join([*f.kept, *f.core])), (), ""
    for f in forms:
        yield _filed(f)
    for f in forms:
        *words, number = f.own or [""]
        found = spelt("_".join(words)) or spelt("_".join(w for w in words if w not in _AGGREGATION))
        counted = number.isdigit() and not f.kept and found is not None and found.metric.parts
        yield found if counted else None, (number,), "number"


def _filed(f: _Words) -> tuple[Spelt | None, tuple[str, ...], Telling]:
    """The last part alone is the metric; a folder's own words then tell the curve from others."""
    found = spelt("_".join(f.own)) or spelt("_".join(f.core))
    if found is None:
        return None, (), ""
    if any(PARTS.get(w, found.metric) is not found.metric for w in f.kept):
        return None, (), ""  # loss/reward, loss_d/epoch: a loss, of this or aggregated so
    others = tuple(dict.fromkeys(w for w in f.kept if w not in f.own))
    return found, others, "folder" if others else ""


def _names_rate(words: Sequence[str]) -> bool:
    """One learning rate for each parameter group or optimiser."""
    pairs = set(pairwise(words))
    named = any(_LR.fullmatch(w) for w in words) or ("learning", "rate") in pairs
    return named and not _RATE_CHANGES & set(words) and not any(w in PARTS for w in words)


def _part(split: Split, words: Sequence[str]) -> Reading:
    """A loss or score among other words; losses go first, for a ``dice_loss`` is no ``dice``."""
    heads = [w.partition("@")[0] for w in words]
    places = [i for i, head in enumerate(heads) if head in PARTS]
    if not places or _of_gradients(words):
        return Reading(split)
    losses = [i for i in places if PARTS[heads[i]].name == "loss"]
    at = (losses or places)[-1]
    if _STATISTICS & set(words[at + 1 :]):
        return Reading(split)
    others = (*words[:at], *words[at + 1 :])
    return Reading(split, Spelt(PARTS[heads[at]], 0), others, "word", words[at][len(heads[at]) :])


def _of_gradients(words: Sequence[str]) -> bool:
    """The norm of a gradient, or the gradient of a layer that is called after a loss."""
    norms = bool(_GRADIENTS & set(words)) and "norm" in words
    return norms or words[0] in _GRADIENTS or bool({"gnorm", "gradnorm"} & set(words))
