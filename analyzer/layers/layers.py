"""The tensors of a run by role and layer, each as a curve of its size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from afterrun.analyzer.finding import Evidence, jsonable
from afterrun.analyzer.layers.moments import moments
from afterrun.analyzer.layers.roles import Role, Tensor, tensor_of
from afterrun.analyzer.series import Ints, Series
from afterrun.analyzer.stats import Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer:
    """One tensor over the run, ordered by step; arrays share one length.

    ``size`` is the mean absolute value from histograms, or the recorded norm. ``zero_share`` and ``rms`` are
    None for scalars.
    """

    name: str
    role: Role
    minor: bool
    tag: str
    source: str
    x: Array
    has_step: bool
    size: Array
    wall_ns: Ints | None = None
    zero_share: Array | None = None
    rms: Array | None = None

    def evidence(self, i: int, value: float, note: str) -> Evidence:
        """One point of it as it can be found in the input."""
        return Evidence(
            source=self.source,
            tag=self.tag,
            step=int(self.x[i]) if self.has_step else None,
            value=jsonable(value),
            note=note,
        )


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """Sizes of several layers at the steps that all of them have: ``size`` of shape (steps, layers)."""

    layers: tuple[Layer, ...]
    x: Array
    size: Array


def layers_of(histograms: pl.DataFrame, series: Iterable[Series]) -> tuple[Layer, ...]:
    """All tensors of one run in order of first appearance; histograms go before scalars of one layer."""
    found: dict[tuple[Role, str], Layer] = {}
    for layer in (*_of_histograms(histograms), *_of_scalars(series)):
        found.setdefault((layer.role, layer.name), layer)
    return tuple(found.values())


def of_role(layers: Iterable[Layer], role: Role) -> tuple[Layer, ...]:
    """Tensors of one role without biases and normalisations."""
    return tuple(la for la in layers if la.role == role and not la.minor)


def grid(layers: Iterable[Layer]) -> Grid | None:
    """The layers at their common steps; None where fewer than two layers share none."""
    own = [la for la in layers if len(la.x)]
    if len(own) < 2:
        return None
    shared = own[0].x
    for la in own[1:]:
        shared = np.intersect1d(shared, la.x)
    if not len(shared):
        return None
    sizes = [la.size[np.searchsorted(la.x, shared)] for la in own]
    return Grid(tuple(own), shared, np.stack(sizes, axis=1))


def _of_histograms(histograms: pl.DataFrame) -> Iterator[Layer]:
    if histograms.is_empty():
        return
    rank = pl.col("rank")
    rows = histograms.filter(rank.is_null() | (rank == rank.min()))
    for (tag,), part in rows.partition_by("tag", as_dict=True, maintain_order=True).items():
        tensor = tensor_of(str(tag))
        if tensor is not None:
            yield _layer(str(tag), tensor, part)


def _layer(tag: str, tensor: Tensor, part: pl.DataFrame) -> Layer:
    has_step = part["step"].null_count() == 0
    if has_step:
        part = part.sort("step", maintain_order=True).unique("step", keep="last", maintain_order=True)
    m = moments(part)
    wall = part["wall_ns"]
    return Layer(
        name=tensor.layer,
        role=tensor.role,
        minor=tensor.minor,
        tag=tag,
        source=str(part["source"].cast(pl.String)[-1]),
        x=part["step"].to_numpy().astype(np.float64) if has_step else np.arange(len(part), dtype=np.float64),
        has_step=has_step,
        size=m.mean_abs,
        wall_ns=None if wall.null_count() else wall.to_numpy(),
        zero_share=m.zero_share,
        rms=m.rms,
    )


def _of_scalars(series: Iterable[Series]) -> Iterator[Layer]:
    for s in series:
        tensor = tensor_of(s.tag, scalar=True) if s.metric is None else None
        if tensor is not None:
            yield Layer(
                name=tensor.layer,
                role=tensor.role,
                minor=tensor.minor,
                tag=s.tag,
                source=s.source,
                x=s.x,
                has_step=s.has_step,
                size=s.value,
                wall_ns=s.wall_ns,
            )
