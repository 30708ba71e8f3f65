"""What the memory of a device holds, by the part of training that asked for it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from afterrun.analyzer.counters.memory import gib
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.prose import percent
from afterrun.analyzer.view import RunView
from afterrun.plots.canvas.paint import paint
from afterrun.plots.content.compose import run_title
from afterrun.plots.content.device import notes_of, time_unit
from afterrun.plots.registry import Figure, Prepared, Skip
from afterrun.plots.spec import Key, Panel, XAxis, rows, stack

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

    from afterrun.plots.theme import Theme

COUNTER = "mem_category_bytes"
COLUMNS = 900
"""Columns of time; in each the moment with the most memory is drawn, so no peak is lost."""

SMALL_SHARE = 1e-3
"""A category that never holds so much of the peak is not drawn."""

_KINDS: Mapping[str, tuple[str, str]] = {
    "before the record": ("other", "held before the record began"),
    "parameters": ("compute", "parameters (moved or built)"),
    "optimizer": ("checkpoint", "optimizer"),
    "backward": ("dataloader", "backward pass (gradients)"),
    "forward": ("launch", "forward pass (activations)"),
    "communication": ("comm", "communication"),
    "data": ("sync", "data"),
    "other": ("kernel_gap", "other"),
}
"""Category, from the bottom up: its role and words."""


class MemoryCategories(Figure):
    """Stacked bytes of each category, of the device that held most."""

    name = "memory-by-category"
    title = "Memory by category"
    codes: ClassVar[tuple[str, ...]] = ("memory-growth", "fragmentation", "memory-limit", "batch-headroom")

    def prepare(self, view: RunView, findings: Sequence[Finding]) -> Prepared | Skip:
        """Held bytes by category in every column of time."""
        samples = view.tables.samples.filter(pl.col("counter").cast(pl.String) == COUNTER)
        if len(samples) < 2:
            return Skip("no memory snapshot with call stacks is recorded")
        devices = samples.partition_by("rank", "device", maintain_order=True)
        at, held = max((_held(d) for d in devices), key=lambda pair: float(sum(pair[1].values()).max()))  # type: ignore[union-attr]  # not empty
        total = np.sum(list(held.values()), axis=0)
        peak = int(np.argmax(total))
        timed = samples["t_ns"].null_count() == 0
        unit = time_unit(max(float(at[-1] - at[0]), 1.0))
        x = (at - at[0]) / unit.ns if timed else at - at[0]
        kept = _peaks(total)
        parts, keys, base = [], [], np.zeros(len(kept))
        for name, (role, words) in _KINDS.items():
            if name not in held or float(held[name].max()) < SMALL_SHARE * float(total.max()):
                continue
            top = base + held[name][kept] / 2**30
            parts.append(rows("main", "area", name, x[kept], low=base, high=top))
            keys.append(Key("box", role, words))
            base = top
        most = sorted(((float(v[peak]) / float(total[peak]), n) for n, v in held.items()), reverse=True)[:3]
        shares = ", ".join(f"{n} {percent(100 * share)}" for share, n in most if share >= SMALL_SHARE)
        return Prepared(
            frame=stack(parts),
            title=run_title(view, "memory by category"),
            note=f"peak of {gib(float(total[peak]))} in tensors: {shares}; by the call stack of each allocation",
            alt=f"At the peak of {gib(float(total[peak]))}: {shares}.",
            x=XAxis(
                f"time since the first action, {unit.name}" if timed else "action of the allocator",
                0.0,
                max(float(x[-1]), 1e-9),
                whole=False,
            ),
            panels=(Panel("main", "memory, GiB", 0.0, 1.06 * max(float(total.max()) / 2**30, 1e-6)),),
            keys=tuple(reversed(keys)),
            marks=notes_of(findings, self.codes),
            roles={name: role for name, (role, _) in _KINDS.items()},
        )

    def draw(self, prepared: Prepared, theme: Theme) -> MplFigure:
        """Stacked areas."""
        return paint(prepared, theme)


def _held(samples: pl.DataFrame) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[np.float64]]]:
    """(time in ns, or order, of every change; held bytes of each category from then on) of one device."""
    ordered = samples.with_row_index("at").with_columns(
        category=pl.col("series").cast(pl.String).str.extract('category="(.*)"')
    )
    clock = ordered["t_ns"] if ordered["t_ns"].null_count() == 0 else ordered["at"]
    wide = ordered.select("at", "category", "value").pivot("category", index="at", values="value").sort("at")
    filled = wide.select(pl.exclude("at").forward_fill().fill_null(0.0))
    known = {name: filled[name].to_numpy() for name in filled.columns if name in _KINDS}
    return clock.to_numpy().astype(np.float64), known


def _peaks(total: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """The moment of the most memory in each of ``COLUMNS`` stretches, and both ends."""
    if len(total) <= COLUMNS:
        return np.arange(len(total))
    edges = np.unique(np.linspace(0, len(total), COLUMNS + 1).astype(np.int64))
    tops = [int(a + np.argmax(total[a:b])) for a, b in itertools.pairwise(edges)]
    return np.unique([0, *tops, len(total) - 1])
