"""Nsight Compute's own container, through NVIDIA's reader where it is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from afterrun.loaders.errors import UnreadableError
from afterrun.loaders.ncu.rows import KernelRows
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.schema import Batch

MAGIC = b"NVR\0"


class NcuRep(Loader):
    """Nsight Compute's `.ncu-rep`, read by NVIDIA's `ncu-report` (the extra `ncu`); without it named with its export command."""

    format = "ncu-rep"
    family = "traces"

    def sniff(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  # the first bytes say it
        """The mark of the container."""
        return head.startswith(MAGIC)

    def load(self, source: Source) -> Iterator[Batch]:
        """Metrics with a number, of every launch."""
        try:
            reader: Any = importlib.import_module("ncu_report")
        except ImportError:
            raise UnreadableError(
                f"{source.name}: a report of Nsight Compute needs NVIDIA's reader: pip install 'afterrun[ncu]', "
                f"or export it: ncu --import {source.path.name} --csv --page raw > {source.path.stem}.csv"
            ) from None
        rows, damaged, launch = KernelRows(), 0, 0
        try:
            report = reader.load_report(str(source.path))
            ranges = [report.range_by_idx(i) for i in range(report.num_ranges())]
        except Exception as error:  # a compiled reader may raise anything on a damaged file
            raise UnreadableError(f"{source.name}: ncu-report cannot read it: {error}") from error
        for one in ranges:
            for i in range(one.num_actions()):
                damaged += not _launch(rows, one.action_by_idx(i), launch)
                launch += 1
        yield Batch(
            frames=rows.frames(),
            damaged=damaged,
            notes=("durations are of replayed, serialised kernels and no wall-clock time",),
        )


def _launch(rows: KernelRows, action: Any, launch: int) -> bool:
    """All metrics of one launch; False where the reader gave up on it."""
    try:
        name = str(action.name())
        for metric in action.metric_names():
            found = action.metric_by_name(metric)
            if found is not None and found.has_value() and not isinstance(found.value(), str):
                rows.add(launch, name, str(metric), str(found.unit() or ""), float(found.value()))
    except Exception:  # noqa: BLE001  # as above: one launch is lost, not the file
        return False
    return True
