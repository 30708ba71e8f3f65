"""From a metric name and its labels to a counter, a device, a host and a series."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from afterrun.loaders.counters.samples import series_text
from afterrun.loaders.counters.vocabulary import counter_of

DEVICE_LABELS = ("gpu", "index", "minor_number", "device", "card", "gpu_id", "gpuid")
HOST_LABELS = ("hostname", "host", "instance", "node", "nodename")
DROPPED = frozenset({"__name__", "job", "monitor"})

_PREFIX = re.compile(r"^(?:nvidia_smi|nvidia_gpu|nvml|dcgm(?=_gpu)|rocm_smi|amd_gpu|gpu_exporter|node)_")
_ENDINGS = {
    "ratio": "ratio",
    "bytes": "b",
    "celsius": "c",
    "watts": "w",
    "hertz": "hz",
    "hz": "hz",
    "percent": "%",
    "mhz": "mhz",
    "milliwatts": "mw",
    "mib": "mib",
}
_UUID = re.compile(r"uuid", re.IGNORECASE)


class Identity(NamedTuple):
    """What a series measures, where, and what tells it apart. Values are multiplied by ``factor``."""

    counter: str
    factor: float
    device: int | None
    host: str | None
    series: str


class Identities:
    """Identities of series; devices that have only a uuid are numbered as they appear."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, name: str, labels: Mapping[str, str]) -> Identity:
        """The identity of one series."""
        lower = {key.lower(): (key, value) for key, value in labels.items()}
        taken: set[str] = set(DROPPED)
        counter, factor, known = _counter(name)
        device = self._device(lower, taken) if known else None
        host = next((lower[k][1] for k in HOST_LABELS if k in lower), None)
        taken |= {k for k in HOST_LABELS if k in lower}
        rest = {key: value for low, (key, value) in lower.items() if low not in taken}
        return Identity(counter, factor, device, host, series_text(rest))

    def _device(self, lower: Mapping[str, tuple[str, str]], taken: set[str]) -> int | None:
        for label in DEVICE_LABELS:
            if label in lower:
                digits = re.search(r"(\d{1,4})$", lower[label][1])
                if digits:
                    taken.add(label)
                    return int(digits[1])
        uuid = next((lower[k][1] for k in lower if _UUID.search(k)), None)
        return None if uuid is None else self._seen.setdefault(uuid, len(self._seen))


def _counter(name: str) -> tuple[str, float, bool]:
    """Canonical counter and factor; the raw name where it is not known."""
    plain = _PREFIX.sub("", name.strip(), count=1)
    stem, _, ending = plain.rpartition("_")
    unit = _ENDINGS.get(ending.lower())
    for raw, said in ((plain, unit), (stem, unit), (name, unit)):
        found = counter_of(raw, said) if raw else None
        if found is not None:
            return found.name, found.factor, True
    return name, 1.0, False


class SeriesRows:
    """Rows of ``samples`` collected series by series."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []

    def __len__(self) -> int:
        return sum(len(p) for p in self._parts)

    def add(self, identity: Identity, t_ns: list[int | None], values: list[float]) -> None:
        """The points of one series, raw values."""
        if not values:
            return
        n = len(values)
        self._parts.append(
            pl.DataFrame(
                {
                    "host": pl.Series([identity.host] * n, dtype=pl.String),
                    "device": pl.Series([identity.device] * n, dtype=pl.Int32),
                    "series": [identity.series] * n,
                    "counter": [identity.counter] * n,
                    "t_ns": pl.Series(t_ns, dtype=pl.Int64),
                    "value": pl.Series(values, dtype=pl.Float64) * identity.factor,
                }
            )
        )

    def frames(self) -> dict[str, pl.DataFrame]:
        """The frame of ``samples``; none without rows."""
        return {"samples": pl.concat(self._parts)} if self._parts else {}
