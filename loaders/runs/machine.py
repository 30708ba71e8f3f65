"""Which devices a run had, from what its sources recorded of the machine."""

from __future__ import annotations

import json
import re

import polars as pl

from afterrun.loaders.schema import Tables

_NAME = re.compile(r"env\.gpu|trace\.device\.\d+\.name")
_LISTED = "env.gpu_count"
_WORLD = r"(?i)(?:^|[./])world_size$"
_MOST = 1 << 20
"""No run has more devices."""
_MAX_NAMED = 4


def device_name(params: pl.DataFrame) -> str | None:
    """Names of the devices, several kinds separated by commas; None where no source says it."""
    found = [value for key, value in _facts(params) if _NAME.fullmatch(key) and isinstance(value, str)]
    names = list(dict.fromkeys(name.strip() for name in found if name.strip()))
    shown = ", ".join(names[:_MAX_NAMED])
    return (f"{shown} and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else shown) or None


def devices(tables: Tables) -> int | None:
    """GPUs that the run used, the most that anything shows; None where no source says it.

    A recorder lists all GPUs of the machine, which others may use. So that count stands only where nothing says more:
    ranks that logged, a recorded world size, GPUs whose counters moved. A trace is asked last: it may be of one rank
    of many.
    """
    shown = max(_ranks(tables), _world_size(tables.params), _active(tables.samples))
    return shown or _listed(tables.params) or _traced(tables.spans) or None


def _ranks(tables: Tables) -> int:
    ranks = tables.metrics["rank"].drop_nulls().n_unique()
    return ranks if ranks > 1 else 0


def _world_size(params: pl.DataFrame) -> int:
    told = params.filter(pl.col("key").cast(pl.String).str.contains(_WORLD))["value"]
    return max((_count(_decoded(value)) for value in told), default=0)


def _active(samples: pl.DataFrame) -> int:
    """GPUs that were seen at work at least once."""
    busy = (pl.col("counter").cast(pl.String) == "gpu_util_pct") & (pl.col("value") > 0)
    seen = samples.filter(busy & pl.col("device").is_not_null()).select("source", "host", "device").unique()
    return int(seen.group_by("source").len()["len"].max() or 0)  # type: ignore[arg-type]  # a number of rows


def _listed(params: pl.DataFrame) -> int:
    return max((_count(value) for key, value in _facts(params) if key == _LISTED), default=0)


def _traced(spans: pl.DataFrame) -> int:
    return spans.filter(pl.col("device").is_not_null()).select("rank", "device").n_unique()


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST else 0


def _facts(params: pl.DataFrame) -> list[tuple[str, object]]:
    told = params.select(pl.col("key").cast(pl.String), "value").filter(
        pl.col("key").str.starts_with("env.") | pl.col("key").str.starts_with("trace.device.")
    )
    return [(key, _decoded(value)) for key, value in told.iter_rows()]


def _decoded(value: str) -> object:
    try:
        return json.loads(value)
    except ValueError:
        return None
