"""A trial of Ray Tune or RLlib: ``progress.csv``, ``result.json`` (the same rows as JSON lines) and ``params.json``.

``timesteps_total`` is the step where it is counted, else ``training_iteration``, as in Ray's own event files.
What every row repeats of the configuration, and lists of single episodes, are no curves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from afterrun.loaders.errors import LimitError
from afterrun.loaders.jsonlog.lines import JsonBlock, JsonLines
from afterrun.loaders.jsonlog.peek import peek_rows
from afterrun.loaders.jsonlog.table import JsonTable
from afterrun.loaders.limits import MAX_JSON_BYTES, check_size, decode_json
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.tables.axes import AxisRule
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_RULE = AxisRule(
    step=("timesteps_total", "num_env_steps_sampled_lifetime", "training_iteration"),
    soft_step=(),
    epoch=(),
    wall=("timestamp",),
)
_TELLING = frozenset(
    {"time_this_iter_s", "time_total_s", "timesteps_total", "trial_id", "iterations_since_restore", "done"}
)
_SEEN_EARLY = _TELLING | {
    "training_iteration",
    "episode_reward_mean",
    "episode_reward_max",
    "env_runners",
    "custom_metrics",
}
_NO_CURVE = re.compile(r"^config/|^(?:[\w/]*/)?hist_stats/|\[\d+\]$")
_MACHINE = frozenset({"node_ip", "hostname", "pid", "experiment_tag"})


class RayProgress(Loader):
    """`progress.csv` of a trial of Ray Tune or RLlib."""

    format = "ray-progress"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """``training_iteration`` beside another column that Ray adds to every result."""
        layout = peek(head)
        return (
            layout is not None and "training_iteration" in layout.names and bool(_TELLING & set(layout.names))
        )

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; the columns of the configuration are left out."""
        for batch in load_wide(source.path, _RULE):
            yield _without_config(batch)


class RayResult(Loader):
    """`result.json` of a trial of Ray Tune or RLlib: an object a result."""

    format = "ray-result"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Objects a line with ``training_iteration`` and its like, or the file name and what of them is in sight."""
        rows = peek_rows(head)
        if rows is None:
            return False
        if "training_iteration" in rows.names:
            return bool(_TELLING & rows.names)
        return path.name == "result.json" and bool(_SEEN_EARLY & (rows.names | rows.containers))

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the lines; nested names are joined by ``/`` as in ``progress.csv``."""
        lines = JsonLines(source.path)
        yield from JsonTable(_curves(lines.blocks()), lines.losses, _RULE).batches()


class RayParams(Loader):
    """`params.json` beside the results of a Ray trial: its configuration."""

    format = "ray-params"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """The file name beside ``result.json`` or ``progress.csv``, and an object in it."""
        if path.name != "params.json" or not head.lstrip().startswith(b"{"):
            return False
        return any((path.parent / name).is_file() for name in ("result.json", "progress.csv"))

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters with dotted names; a damaged file gives none."""
        check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
        try:
            value = decode_json(source.name, source.path.read_text("utf-8", "replace"))
        except (ValueError, LimitError):
            yield Batch(damaged=1, notes=("the JSON is damaged",))
            return
        settings = Settings()
        settings.add("", value if isinstance(value, dict) else {"config": value})
        yield Batch(frames=settings.frames(), notes=tuple(settings.notes()))


def _without_config(batch: Batch) -> Batch:
    """Columns of the configuration are no curves, and words about the machine no parameters."""
    frames = {}
    for name, frame in batch.frames.items():
        key = "tag" if name == "metrics" else "key"
        if name == "metrics":
            frames[name] = frame.filter(~pl.col(key).cast(pl.String).str.contains(_NO_CURVE.pattern))
        else:
            settings = Settings()
            for entry, value in frame.rows():
                if not _NO_CURVE.search(entry) and entry not in _MACHINE:
                    settings.add(entry, decode_json(entry, value))
            frames |= settings.frames()
    return Batch(frames=frames, damaged=batch.damaged, notes=batch.notes, status=batch.status)


def _curves(blocks: Iterable[JsonBlock]) -> Iterator[JsonBlock]:
    for block in blocks:
        numbers = {n: c for n, c in block.numbers.items() if not _NO_CURVE.search(n)}
        words = {n: c for n, c in block.words.items() if not _NO_CURVE.search(n) and n not in _MACHINE}
        yield JsonBlock(block.rows, numbers, words)
