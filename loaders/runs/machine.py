"""Which devices a run had, from what its sources recorded of the machine."""

from __future__ import annotations

import json
import re

import polars as pl

_NAME = re.compile(r"env\.gpu|trace\.device\.\d+\.name")
_COUNT = "env.gpu_count"
_MAX_NAMED = 4


def device_name(params: pl.DataFrame) -> str | None:
    """Names of the devices, several kinds separated by commas; None where no source says it."""
    found = [value for key, value in _facts(params) if _NAME.fullmatch(key) and isinstance(value, str)]
    names = list(dict.fromkeys(name.strip() for name in found if name.strip()))
    shown = ", ".join(names[:_MAX_NAMED])
    return (f"{shown} and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else shown) or None


def devices(params: pl.DataFrame) -> int | None:
    """GPUs of the machine, the largest count where sources differ; None where no source says it."""
    counts = [value for key, value in _facts(params) if key == _COUNT]
    return max((n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n > 0), default=None)


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
