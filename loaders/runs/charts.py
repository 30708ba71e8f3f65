"""Exports of several charts in one folder: whether a run of the same name in two of them is the same run.

A chart knows its runs by the names shown in it, which their users choose and repeat. Two runs of one name in one
chart cannot be told apart in another chart, and where two charts hold different values of one metric at one step
they are of different runs: the charts may come from different projects, so then none is joined with another.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from afterrun.loaders.joining.matching import AGREE_SHARE, Curve, by_step
from afterrun.loaders.runs.placing import Loaded

CHARTS = frozenset({"wandb-panel-csv"})
"""Formats whose runs have nothing but the name that is shown."""

_NUMBERED = re.compile(r"~\d+$")


def not_joined(files: Iterable[Loaded]) -> frozenset[str]:
    """Names of runs of these charts that may be another run in another chart."""
    charts = [f for f in files if f.subrun is not None and f.member.format in CHARTS]
    named: dict[str, list[Loaded]] = defaultdict(list)
    for loaded in charts:
        named[str(loaded.subrun)].append(loaded)
    if len({f.name for f in charts}) < 2:
        return frozenset()
    if any(_contradict(mine) for mine in named.values()):
        return frozenset(named)
    twice = {_NUMBERED.sub("", name) for name in named if _NUMBERED.search(name)}
    return frozenset(name for name in named if _NUMBERED.sub("", name) in twice)


def _contradict(files: Sequence[Loaded]) -> bool:
    """Whether two charts hold different values of one tag at most of the steps that they share."""
    curves: dict[str, list[Curve]] = defaultdict(list)
    for loaded in files if len(files) > 1 else ():
        stepped = loaded.table("metrics").filter(pl.col("step").is_not_null())
        for (tag,), rows in stepped.partition_by("tag", as_dict=True, maintain_order=True).items():
            curves[str(tag)].append(_curve(rows))
    return any(_differ(a, b) for same in curves.values() for i, a in enumerate(same) for b in same[i + 1 :])


def _curve(rows: pl.DataFrame) -> Curve:
    """The rows of one tag of one chart."""
    every = np.arange(len(rows))
    value, step = rows["value"].to_numpy(), rows["step"].to_numpy()
    return Curve(rows=every, value=value, alive=np.ones(len(rows), np.bool_), step=step)


def _differ(a: Curve, b: Curve) -> bool:
    match = by_step(a, b)
    return match is not None and int(match.agree.sum()) < AGREE_SHARE * len(match.agree)
