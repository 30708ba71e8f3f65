"""Stable-Baselines3 and OpenAI Baselines: ``monitor.csv`` of episodes, ``progress.csv`` of updates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import decode_json
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisColumns, AxisRule
from afterrun.loaders.tables.cells import SECOND_NS, clock_unit_ns, whole
from afterrun.loaders.tables.delimited import Layout, peek
from afterrun.loaders.tables.reader import TableReader
from afterrun.loaders.tables.textblocks import decode_head
from afterrun.loaders.tables.wide import WideTable, load_wide

_PROGRESS_RULE = AxisRule(
    step=(
        "time/total_timesteps",
        "total_timesteps",
        "misc/total_timesteps",
        "timestepssofar",
        "serial_timesteps",
        "num_timesteps",
        "global_step",
        "step",
    ),
    soft_step=("steps", "timesteps"),
    epoch=(),
)
_TELLING = re.compile(
    r"^(?:rollout/ep_\w+|time/(?:fps|iterations|total_timesteps|time_elapsed)|(?:misc/)?(?:serial|total)[_ ]timesteps|"
    r"eprewmean|eplenmean|mean 100 episode reward|num episodes|EpRewMean|EpThisIter|TimestepsSoFar|EpisodesSoFar)$"
)


class Sb3Monitor(Loader):
    """``monitor.csv``: a comment line of JSON, then reward ``r``, length ``l`` and time ``t`` of each episode.

    The step is the number of environment steps at the end of the episode, the running sum of ``l``. The
    wall clock is ``t_start`` of the first line plus ``t``. Where a length is missing the sum is unknown
    from there on, where ``t`` goes back (an appended run) the clock is.
    """

    format = "sb3-monitor"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """A first line ``#{... "t_start": ...}`` and the columns ``r``, ``l``, ``t``."""
        text = decode_head(head).lstrip()
        layout = peek(head) if text.startswith("#{") and '"t_start"' in text else None
        return layout is not None and {"r", "l", "t"} <= set(layout.names)

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; ``t_start``, ``env_id`` and the like become parameters."""
        reader = TableReader(source.path)
        header = _header(reader.layout.comments)
        params = {k: json.dumps(v) for k, v in header.items() if isinstance(v, (str, int, float))}
        if params:
            yield Batch(frames={"params": pl.DataFrame({"key": [*params], "value": [*params.values()]})})
        yield from WideTable(reader, make_axes=_Episodes(header.get("t_start"))).batches()


class Sb3Progress(Loader):
    """``progress.csv`` of SB3 and Baselines; many have no column that counts steps."""

    format = "sb3-progress"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """Names that the two loggers give; Ray's file of the same name has ``training_iteration``."""
        layout = peek(head)
        return layout is not None and not _is_rays(layout) and any(map(_TELLING.match, layout.names))

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; environment steps are the step, where they are logged."""
        yield from load_wide(source.path, _PROGRESS_RULE, source.wanted)


def _is_rays(layout: Layout) -> bool:
    return "training_iteration" in layout.names or "trial_id" in layout.names


def _header(comments: Sequence[str]) -> Mapping[str, Any]:
    """The JSON of the first comment line; empty where it is damaged."""
    try:
        value = decode_json("monitor", comments[0].lstrip("#")) if comments else {}
    except (ValueError, LimitError):
        return {}
    return value if isinstance(value, dict) else {}


class _Episodes:
    """Axis columns of episodes, carried from block to block."""

    def __init__(self, t_start: object) -> None:
        known = isinstance(t_start, float) and clock_unit_ns(pl.Series([t_start])) == SECOND_NS
        self._start_ns = round(float(str(t_start)) * SECOND_NS) if known else None
        self._steps: float | None = 0.0
        self._last_t = -np.inf

    def __call__(self, columns: Mapping[str, pl.Series]) -> AxisColumns:
        return AxisColumns(step=self._count(columns.get("l")), wall_ns=self._clock(columns.get("t")))

    def _count(self, lengths: pl.Series | None) -> pl.Series | None:
        if lengths is None:
            return None
        known = lengths.fill_null(np.nan).to_numpy()
        sums = np.cumsum(known) + (np.nan if self._steps is None else self._steps)
        self._steps = float(sums[-1]) if len(sums) and np.isfinite(sums[-1]) else None
        return whole(pl.Series(sums).fill_nan(None))

    def _clock(self, seconds: pl.Series | None) -> pl.Series | None:
        if seconds is None or self._start_ns is None:
            return None
        t = seconds.fill_null(np.nan).to_numpy()
        seen = np.fmax.accumulate(np.concatenate([[self._last_t], t]))
        fell = t < seen[:-1]
        if fell.any():
            t = np.where(np.arange(len(t)) >= int(np.argmax(fell)), np.nan, t)
            self._last_t = np.inf
        else:
            self._last_t = float(seen[-1])
        ok = np.isfinite(t) & (np.abs(t) < 1e9)
        ns = self._start_ns + np.rint(np.where(ok, t, 0.0) * SECOND_NS).astype(np.int64)
        return pl.Series(ns).set(pl.Series(~ok), None)
