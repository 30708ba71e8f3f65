"""The CSV that TensorBoard's page downloads: ``Wall time,Step,Value`` in ``run-<run>-tag-<tag>.csv``.

Run and tag stand in the file name only, with ``_`` for ``/``. Files of one run are one sub-run of their folder.
A renamed file is called by its name: a tag of its folder where the name is one of a metric, else a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from afterrun.loaders.names import canonical
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.tables.axes import AxisRule
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_HEADER = ("Wall time", "Step", "Value")
_RULE = AxisRule(step=("step",), soft_step=(), epoch=(), tokens=(), wall=("wall_time",))
_COPY = re.compile(r"(?: ?\(\d+\)| - Copy)$")
_NAME = re.compile(r"run-(.*?)-tag-(.+)", re.DOTALL)


class TensorboardCsv(Loader):
    """A curve downloaded from TensorBoard's page as CSV."""

    format = "tensorboard-csv"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the content says it all
        """The header ``Wall time,Step,Value``."""
        layout = peek(head)
        return layout is not None and layout.names == _HEADER

    def home(self, source: Source) -> str | None:
        """The folder of the file, unless the file is a run of its own."""
        run, tag = _names(source.path)
        known = run is not None or canonical(tag).metric is not None
        return source.name.rpartition("/")[0] if known else None

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the values; the run of the file name is the sub-run."""
        run, tag = _names(source.path)
        for batch in load_wide(source.path, _RULE):
            frames = dict(batch.frames)
            if "metrics" in frames:
                values = frames["metrics"].filter(pl.col("tag") == "Value")
                frames["metrics"] = values.with_columns(tag=pl.lit(tag, dtype=pl.Categorical))
            yield replace(batch, frames=frames, subrun=run)


def _names(path: Path) -> tuple[str | None, str]:
    """(run, tag) of a file by its name; no run where the file was renamed or the run is the root."""
    stem = _COPY.sub("", path.stem)
    match = _NAME.fullmatch(stem)
    if match is None:
        return None, stem
    return (None if match[1] in (".", "_", "") else match[1]), match[2]
