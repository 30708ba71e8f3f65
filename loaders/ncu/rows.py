"""Rows of ``kernels`` collected launch by launch."""

from __future__ import annotations

import polars as pl

from afterrun.loaders.ncu.units import to_base


class KernelRows:
    """Metrics of launches in written order. ``launch`` numbers are made here, for several processes may share a file."""

    def __init__(self) -> None:
        self._device: list[int | None] = []
        self._name: list[str] = []
        self._launch: list[int] = []
        self._metric: list[str] = []
        self._unit: list[str | None] = []
        self._value: list[float] = []

    def __len__(self) -> int:
        return len(self._value)

    def add(
        self, launch: int, name: str, metric: str, unit: str, value: float, device: int | None = None
    ) -> None:
        """One metric, turned into its base unit."""
        base, factor = to_base(unit)
        self._launch.append(launch)
        self._name.append(name)
        self._device.append(device)
        self._metric.append(metric)
        self._unit.append(base or None)
        self._value.append(value * factor)

    def frames(self) -> dict[str, pl.DataFrame]:
        """The frame of ``kernels``; none without rows."""
        if not self._value:
            return {}
        frame = pl.DataFrame(
            {
                "device": pl.Series(self._device, dtype=pl.Int32),
                "name": self._name,
                "launch": pl.Series(self._launch, dtype=pl.Int64),
                "metric": self._metric,
                "unit": pl.Series(self._unit, dtype=pl.String),
                "value": pl.Series(self._value, dtype=pl.Float64),
            }
        )
        return {"kernels": frame}
