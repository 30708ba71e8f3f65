"""What a reader of counters made of a file, and files as samplers write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from afterrun.loaders.schema import LOADER_COLUMNS, conform
from tests.support.loading import claimed, source

BEGIN = datetime(2026, 1, 3, 15, 36, 53, 507_000, tzinfo=UTC)
BEGIN_NS = 1_767_454_613_507_000_000


@dataclass(frozen=True)
class Sampled:
    """All batches of one file put together."""

    format: str
    samples: pl.DataFrame
    marks: pl.DataFrame
    params: dict[str, Any]
    damaged: int
    notes: tuple[str, ...]

    def values(self, counter: str, device: int | None = 0, series: str = "") -> list[float]:
        """Values of one series in written order."""
        return self._of(counter, device, series)["value"].to_list()

    def times(self, counter: str, device: int | None = 0, series: str = "") -> list[int | None]:
        """Times of one series in written order."""
        return self._of(counter, device, series)["t_ns"].to_list()

    def counters(self) -> set[str]:
        """Names of all counters."""
        return set(self.samples["counter"])

    def devices(self) -> set[int | None]:
        """All devices."""
        return set(self.samples["device"])

    def said(self, words: str) -> bool:
        """Whether a note holds these words."""
        return any(words in note for note in self.notes)

    def _of(self, counter: str, device: int | None, series: str) -> pl.DataFrame:
        same = pl.col("device").eq_missing(pl.lit(device)) & (pl.col("series") == series)
        return self.samples.filter((pl.col("counter") == counter) & same)


def sampled(path: Path) -> Sampled:
    """The file read by the loader that claims it."""
    from afterrun.loaders.registry import loaders

    name = claimed(path)
    assert name is not None, "no loader takes the file"
    loader = next(x for x in loaders() if x.format == name)
    batches = list(loader.load(source(path)))
    tables = {}
    for table in ("samples", "marks", "params"):
        frames = [conform(table, b.frames[table]) for b in batches if table in b.frames]
        frame = pl.concat(frames) if frames else pl.DataFrame(schema=LOADER_COLUMNS[table])
        tables[table] = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    return Sampled(
        format=name,
        samples=tables["samples"],
        marks=tables["marks"],
        params={k: json.loads(v) for k, v in tables["params"].select("key", "value").iter_rows()},
        damaged=sum(b.damaged for b in batches),
        notes=tuple(n for b in batches for n in b.notes),
    )


def stamp(seconds: float) -> str:
    """A time as ``nvidia-smi`` writes it, so many seconds after ``BEGIN``."""
    return f"{BEGIN + timedelta(seconds=seconds):%Y/%m/%d %H:%M:%S.%f}"[:-3]


def rows(cells: Iterable[Sequence[object]], header: Sequence[str] = (), sep: str = ", ") -> str:
    """Lines of a table."""
    lines = [sep.join(map(str, row)) for row in ([header] if header else [])]
    return "".join(line + "\n" for line in [*lines, *(sep.join(map(str, row)) for row in cells)])


QUERY = ("timestamp", "index", "name", "utilization.gpu [%]", "memory.used [MiB]", "power.draw [W]")


def query(seconds: int, devices: int = 1) -> list[tuple[object, ...]]:
    """Rows of a query: device d has 90 + second % 10 per cent minus 50 d, 1000 (d + 1) MiB, 100.5 W."""
    return [
        (
            stamp(s + d / 1000),
            d,
            "NVIDIA H100",
            f"{90 + s % 10 - 50 * d} %",
            f"{1000 * (d + 1)} MiB",
            "100.50 W",
        )
        for s in range(seconds)
        for d in range(devices)
    ]


def drawn(devices: Sequence[tuple[str, int, int, int]], date: str = "", processes: Sequence[str] = ()) -> str:
    """A drawn table: (name, temperature, MiB used, utilisation) a device, and maybe a date before it."""
    line = "+-----------------------------------------+------------------------+----------------------+\n"
    out = (f"{date}       \n" if date else "") + line.replace("+", "-").replace("-", "+", 1)
    out += "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
    out += (
        line + "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
    )
    out += "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
    out += "|=========================================+========================+======================|\n"
    for i, (name, temp, used, util) in enumerate(devices):
        out += f"|   {i}  {name:<27} On  |   00000000:{i:02X}:00.0 Off |                    0 |\n"
        out += f"| N/A   {temp}C    P0             32W /  350W | {used:>7}MiB /  46068MiB |    {util:>3}%      Default |\n"
        out += (
            "|                                         |                        |                  N/A |\n"
            + line
        )
    out += "| Processes:                                                                              |\n"
    for process in processes:
        out += f"|    0   N/A  N/A   {process} |\n"
    return out + line
