"""Collects samples and what is known of devices, for readers of small files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from afterrun.loaders.settings.tree import Settings


def series_text(labels: Mapping[str, object]) -> str:
    """``key="value"`` pairs in order of key: what tells apart the series of one counter."""
    return ",".join(f'{key}="{_quoted(value)}"' for key, value in sorted(labels.items()))


def _quoted(value: object) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Samples:
    """Rows of ``samples`` in written order."""

    def __init__(self) -> None:
        self._counter: list[str] = []
        self._value: list[float] = []
        self._device: list[int | None] = []
        self._series: list[str] = []
        self._t_ns: list[int | None] = []
        self._rank: list[int | None] = []

    def __len__(self) -> int:
        return len(self._value)

    def add(
        self,
        counter: str,
        value: float,
        *,
        device: int | None = None,
        series: str = "",
        t_ns: int | None = None,
        rank: int | None = None,
    ) -> None:
        """One sample in the unit of its counter."""
        self._counter.append(counter)
        self._value.append(value)
        self._device.append(device)
        self._series.append(series)
        self._t_ns.append(t_ns)
        self._rank.append(rank)

    def frames(self) -> dict[str, pl.DataFrame]:
        """The frame of ``samples``; none without rows."""
        if not self._value:
            return {}
        frame = pl.DataFrame(
            {
                "rank": pl.Series(self._rank, dtype=pl.Int32),
                "device": pl.Series(self._device, dtype=pl.Int32),
                "series": self._series,
                "counter": self._counter,
                "t_ns": pl.Series(self._t_ns, dtype=pl.Int64),
                "value": pl.Series(self._value, dtype=pl.Float64),
            }
        )
        return {"samples": frame}


def device_settings(names: Mapping[int, str], others: Mapping[str, str]) -> Settings:
    """Settings ``trace.device.N.name`` and ``trace.<other>``, in order of device."""
    settings = Settings()
    for device, name in sorted(names.items()):
        settings.add(f"trace.device.{device}.name", name)
    for key, value in others.items():
        settings.add(f"trace.{key}", value)
    return settings


def diagnostics_frame(found: Sequence[tuple[int, str]]) -> dict[str, pl.DataFrame]:
    """Marks of what a tool said instead of samples: pairs of line number and text; none without any."""
    if not found:
        return {}
    at, texts = zip(*found, strict=True)
    return {"marks": pl.DataFrame({"line": at, "kind": ["diagnostic"] * len(at), "text": texts})}
