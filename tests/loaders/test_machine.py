"""How many GPUs a run used: what was seen at work before what the machine has."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from afterrun.loaders.runs.machine import devices
from afterrun.loaders.schema import SCHEMAS, Tables


def frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    blank = dict.fromkeys(SCHEMAS[table])
    return pl.DataFrame([blank | row for row in rows], schema=SCHEMAS[table])


def params(**values: str) -> pl.DataFrame:
    return frame("params", [{"key": key.replace("__", "."), "value": text} for key, text in values.items()])


def utilisation(source: str, *values: float, host: str | None = None) -> list[dict[str, Any]]:
    return [
        {"source": source, "host": host, "device": device, "counter": "gpu_util_pct", "value": value}
        for device, value in enumerate(values)
    ]


EIGHT = params(env__gpu_count="8")


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (Tables(), None),
        (Tables(params=EIGHT), 8),
        (Tables(params=params(env__gpu_count="true")), None),
        (Tables(params=EIGHT, samples=frame("samples", utilisation("wandb", 97, 0, 0, 0))), 1),
        (Tables(params=EIGHT, samples=frame("samples", utilisation("wandb", 0, 0))), 8),
        (
            Tables(
                samples=frame("samples", utilisation("a", 5, 6) + utilisation("b", 5, 6, host="node1"))
            ),
            2,
        ),
        (Tables(params=params(env__gpu_count="8", train__world_size="16")), 16),
        (Tables(params=EIGHT, spans=frame("spans", [{"device": 0}, {"device": 1}])), 8),
        (Tables(spans=frame("spans", [{"device": 0, "rank": r} for r in (0, 1, 1)] + [{}])), 2),
        (Tables(metrics=frame("metrics", [{"rank": r} for r in (0, 1, 2, 2)])), 3),
    ],
    ids=[
        "nothing", "listed", "no count", "one of eight at work", "all idle", "two recorders of one machine",
        "world size", "a trace of some", "traces alone", "ranks that logged",
    ],
)  # fmt: skip
def test_devices(tables: Tables, expected: int | None) -> None:
    assert devices(tables) == expected
