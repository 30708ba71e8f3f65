"""The canonical metrics: one row each of ``names.toml``, looked up by spelling."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Better = Literal["min", "max"]

_OPAQUE = frozenset(
    {
        "policy", "value", "entropy", "actor", "critic", "discriminator", "generator", "disc", "gen", "adversarial",
        "adv", "d", "g", "gan", "pg", "kl", "aux", "contrastive", "vf", "pi", "q", "qf", "qf1", "qf2", "alpha", "td",
        "temperature", "ent", "objective", "agent", "demo", "expert", "real", "fake", "code", "prob", "codebook", "vq",
        "surrogate", "baseline", "signal",
    }
)  # fmt: skip
"""Parts of games and of codebooks: one direction is not the better one, so it stays unknown."""

_SEPARATORS = re.compile(r"[/\s.:|_-]+")


@dataclass(frozen=True, slots=True)
class Metric:
    """One canonical metric. ``kind``: loss, quality, axis, rate, gradient, time, throughput, memory, other."""

    name: str
    kind: str
    better: Better | None
    unit: str
    spellings: tuple[str, ...]
    """Most usual first; the name itself is the first."""
    parts: tuple[str, ...] = ()
    """Words that name it within a longer tag."""
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Word -> tags one of which must stand beside it to give it this meaning."""
    not_beside: tuple[str, ...] = ()


class Spelt(NamedTuple):
    """A metric, and which of its spellings was met (0: the name itself)."""

    metric: Metric
    place: int


def _read_table() -> tuple[Metric, ...]:
    """The rows of ``names.toml``, in its order."""
    table = tomllib.loads(files("afterrun.loaders.naming").joinpath("names.toml").read_text("utf-8"))
    return tuple(
        Metric(
            name=name,
            kind=kind,
            better=row["better"] or None,
            unit=row["unit"],
            spellings=(name, *row["spellings"]),
            parts=tuple(row.get("parts", ())),
            beside={word: tuple(others) for word, others in row.get("beside", {}).items()},
            not_beside=tuple(row.get("not_beside", ())),
        )
        for kind, rows in table.items()
        for name, row in rows.items()
    )


METRICS: tuple[Metric, ...] = _read_table()
"""Every canonical metric, as ``names.toml`` lists them."""

PARTS: Mapping[str, Metric] = {word: metric for metric in METRICS for word in metric.parts}
"""Word -> the metric it names within a longer tag."""


def divided(text: str) -> list[str]:
    """The words between separators."""
    return [w for w in _SEPARATORS.split(text) if w]


@cache
def _index() -> dict[str, Spelt]:
    """Every spelling as it stands and with its words joined by ``_``; the literal one wins."""
    index: dict[str, Spelt] = {}
    for metric in METRICS:
        for place, spelling in enumerate(metric.spellings):
            if index.setdefault(spelling, Spelt(metric, place)).metric is not metric:
                raise ValueError(
                    f"the spelling {spelling!r} means both {index[spelling].metric.name} and {metric.name}"
                )
    for spelling, spelt in list(index.items()):
        index.setdefault("_".join(divided(spelling)), spelt)
    return index


def spelt(spelling: str) -> Spelt | None:
    """The metric of exactly this spelling (lower case)."""
    return _index().get(spelling)


@cache
def metric_of(name: str) -> Metric | None:
    """The metric of this name, or of a part of one (``box_loss``, ``recall@5``); None for other names.

    A part of a game (``policy_loss``) has no better direction.
    """
    found = spelt(name)
    if found is not None:
        return found.metric if found.metric.name == name else replace(found.metric, name=name)
    *others, last = name.split("_")
    base = PARTS.get(last.partition("@")[0])
    if base is None:
        return None
    return Metric(name, base.kind, None if _OPAQUE & set(others) else base.better, base.unit, base.spellings)


def direction(metric: str | None) -> Better | None:
    """Whether lower (``min``) or higher (``max``) is better; None where the table does not say."""
    known = metric_of(metric) if metric is not None else None
    return known.better if known is not None else None
