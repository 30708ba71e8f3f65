"""DVCLive: ``plots/metrics/**/<name>.tsv``, one table a metric, ``metrics.json`` with the last values, ``params.yaml``.

The name of a metric is the path of its table below ``plots/metrics``, for its header sometimes holds the last
part only. The run is the folder above ``plots``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from afterrun.loaders.errors import LimitError
from afterrun.loaders.limits import MAX_JSON_BYTES, check_size, decode_json
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.tree import Settings
from afterrun.loaders.settings.yamlfiles import yaml_settings
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_FOLDERS = ("plots", "metrics")
_AXES = ("step", "timestamp")


class DvcliveTable(Loader):
    """A metric of DVCLive, `plots/metrics/**/<name>.tsv`."""

    format = "dvclive"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """A table with tabs and a column ``step`` below ``plots/metrics``."""
        if path.suffix != ".tsv" or _depth(path) is None:
            return False
        layout = peek(head)
        return layout is not None and "step" in layout.names

    def home(self, source: Source) -> str | None:
        """The folder above ``plots``."""
        depth = _depth(source.path)
        return None if depth is None else "/".join(source.name.split("/")[: -depth - 2])

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; its one column is called by the path of the file."""
        depth = _depth(source.path) or 1
        tag = "/".join(source.path.with_suffix("").parts[-depth:])
        for batch in load_wide(source.path):
            metrics = batch.frames.get("metrics")
            if metrics is None:
                yield batch
                continue
            # every table repeats the axes; they are in the columns of the rows already
            name = pl.col("tag").cast(pl.String)
            rows = metrics.filter(~name.is_in(_AXES))
            lone = rows["tag"].n_unique() <= 1
            called = pl.lit(tag) if lone else pl.concat_str(pl.lit(f"{tag}/"), name)
            rows = rows.with_columns(called.cast(pl.Categorical).alias("tag"))
            yield replace(batch, frames={**batch.frames, "metrics": rows})


class DvcliveSummary(Loader):
    """`metrics.json` beside the tables of DVCLive: the last value of each metric."""

    format = "dvclive-summary"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """An object in ``metrics.json`` beside the folder ``plots/metrics``."""
        if path.name != "metrics.json" or not head.lstrip().startswith(b"{"):
            return False
        return path.parent.joinpath(*_FOLDERS).is_dir()

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters ``summary.<name>``; a damaged file gives none."""
        check_size(source.name, source.size_bytes, MAX_JSON_BYTES)
        try:
            value = decode_json(source.name, source.path.read_text("utf-8", "replace"))
        except (ValueError, LimitError):
            yield Batch(damaged=1, notes=("the JSON is damaged",))
            return
        settings = Settings()
        settings.add("summary", value)
        yield Batch(frames=settings.frames(), notes=tuple(settings.notes()))


class DvcliveParams(Loader):
    """`params.yaml` beside the tables of DVCLive: the parameters of the run."""

    format = "dvclive-params"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # any mapping may stand in it
        """A file of that name beside the folder ``plots/metrics``."""
        return path.name == "params.yaml" and path.parent.joinpath(*_FOLDERS).is_dir()

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters by dotted key. Raises ``LimitError`` over ``MAX_YAML_BYTES``."""
        yield yaml_settings(source)


def _depth(path: Path) -> int | None:
    """Number of parts of the metric's name, None where the file lies in no ``plots/metrics``."""
    parts = path.parts
    at = next((i for i in range(len(parts) - 2) if parts[i : i + 2] == _FOLDERS), None)
    return None if at is None else len(parts) - at - 2
