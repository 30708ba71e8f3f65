"""PyTorch Lightning's ``CSVLogger``: ``lightning_logs/version_N/metrics.csv``, and ``hparams.yaml`` beside it.

One row for each call of the logger, so training and validation values stand on separate rows and most
cells are empty; the order of columns says nothing. Lightning counts ``step`` over the whole run. The same
quantity may come twice, as ``loss_step`` and ``loss_epoch``: two tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch
from afterrun.loaders.settings.yamlfiles import yaml_settings
from afterrun.loaders.tables.axes import AxisRule
from afterrun.loaders.tables.delimited import peek
from afterrun.loaders.tables.wide import load_wide

_RULE = AxisRule(step=("step",), soft_step=(), epoch=("epoch",))
_FORKED = re.compile(r"_(?:step|epoch)$")
_LOGS = ("metrics.csv", "events.out.tfevents.*")
_FOLDER = re.compile(r"^(?:lightning_logs|version_\d+)$")


class LightningCsv(Loader):
    """``metrics.csv`` of Lightning's CSV logger."""

    format = "lightning-csv"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:
        """``epoch`` and ``step`` with values that alternate between rows, or the names Lightning makes."""
        layout = peek(head)
        if layout is None or layout.delimiter != "," or not {"epoch", "step"} <= set(layout.names):
            return False
        if path.name == "metrics.csv" or any(_FOLDER.match(p.name) for p in path.parents[:2]):
            return True
        forked = {_FORKED.sub("", n) for n in layout.names if _FORKED.search(n)}
        rows = [row for row in layout.sample if len(row) == len(layout.names)]
        return bool(forked) or (bool(rows) and not any(all(row) for row in rows))

    def load(self, source: Source) -> Iterator[Batch]:
        """Stream the table; ``step`` and ``epoch`` are the axes."""
        yield from load_wide(source.path, _RULE, source.wanted)


class LightningHparams(Loader):
    """`hparams.yaml` beside the logs of a Lightning run: its hyper-parameters."""

    format = "lightning-hparams"
    family = "curves"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # any mapping may stand in it
        """A file of that name beside a `metrics.csv` or an event file."""
        return path.name == "hparams.yaml" and any(any(path.parent.glob(name)) for name in _LOGS)

    def load(self, source: Source) -> Iterator[Batch]:
        """Parameters by dotted key. Raises ``LimitError`` over ``MAX_YAML_BYTES``."""
        yield yaml_settings(source)
