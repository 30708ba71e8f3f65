"""The names of all tags of real logs: whole words are understood, splits agree, little stays unknown."""

from __future__ import annotations

import re
from functools import cache

import polars as pl
import pytest

from afterrun.loaders.collect import collect
from afterrun.loaders.names import SPLIT_WORDS, metric_of
from tests.support.loading import CORPUS, needs_corpus

pytestmark = [pytest.mark.corpus, needs_corpus]

MIN_NAMED = 0.70
"""Share of (run, tag) pairs with a metric; timers, counts and measures of one project have none."""

_KNOWN_WORDS = re.compile(
    r"(?<![a-z])(loss|acc|accuracy|perplexity|ppl|wer|bleu|iou|f1|auc|rmse)(?![a-z])", re.IGNORECASE
)
_OTHER_QUANTITY = re.compile(r"grad_norm_loss|acc_x")
_AXIS = re.compile(r"(?:\w+/)?(?:global_step|_step|step|epoch|iter|iteration|total_timesteps)", re.IGNORECASE)


@cache
def tags() -> pl.DataFrame:
    """Distinct (run, tag, metric, split) of the curves of the corpus, as text."""
    metrics = collect([CORPUS / "curves"]).tables.metrics
    columns = [pl.col(c).cast(pl.String) for c in ("run", "tag", "metric", "split")]
    return metrics.select(columns).unique(maintain_order=True)


def rows() -> list[tuple[str, str | None, str]]:
    return tags().select("tag", "metric", "split").unique(maintain_order=True).rows()


def _words(tag: str) -> set[str]:
    return set(re.split(r"[^a-z]+", tag.lower()))


def test_a_known_word_in_a_tag_is_understood() -> None:
    missed = {
        t
        for t, metric, _ in rows()
        if metric is None and _KNOWN_WORDS.search(t) and not _OTHER_QUANTITY.search(t)
    }
    assert missed == set()


def test_losses_fall_and_scores_rise() -> None:
    for tag, metric, _ in rows():
        known = metric_of(metric) if metric else None
        if known is None:
            continue
        if known.kind == "loss":
            assert known.better in ("min", None), tag
            assert not {"acc", "accuracy", "f1", "auc", "iou", "reward"} & _words(tag), tag
        if known.kind == "quality":
            assert known.better in ("max", None), tag
            assert not {"loss", "error", "ppl", "perplexity"} & _words(tag), tag


def test_splits_agree_with_the_words_of_the_tag() -> None:
    for tag, _, split in rows():
        told = {SPLIT_WORDS[w] for w in _words(tag) if w in SPLIT_WORDS}
        if told:
            assert split in told, tag
            assert split != "train" or told == {"train"}, tag
        else:
            assert split in ("none", "train"), tag


def test_axes_are_recognised() -> None:
    missed = {t for t, metric, _ in rows() if _AXIS.fullmatch(t) and metric not in ("step", "epoch")}
    assert missed == set()


def test_units_are_told_by_the_tag_and_not_guessed() -> None:
    """A time in seconds or a rate per second says so, or is known to be one."""
    said = re.compile(r"time|wall|runtime|per_second|/s|s/it|wps|ups|fps|eta|timers", re.IGNORECASE)
    for tag, metric, _ in rows():
        known = metric_of(metric) if metric else None
        if known is not None and known.unit in ("s", "tokens/s", "samples/s", "steps/s", "frames/s"):
            assert said.search(tag), f"{tag} is {metric}"


def test_little_stays_unknown() -> None:
    named = tags()["metric"].is_not_null().mean()
    unknown = sorted({t for t, metric, _ in rows() if metric is None})
    assert isinstance(named, float)
    assert named >= MIN_NAMED, f"{named:.0%} of tags are named; unknown: {'; '.join(unknown)}"
