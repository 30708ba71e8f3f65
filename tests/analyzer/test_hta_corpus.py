"""Idle time against HolisticTraceAnalysis on the same real traces and the same window.

HTA looks at what was launched between the first step and the start of the last one where steps are marked, and rounds to
whole microseconds. Its idle time is that of all streams of a device together, as ours.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.intervals import union
from afterrun.analyzer.trace.devices import devices_of
from afterrun.loaders.collect import collect

ROOT = Path(os.environ.get("AFTERRUN_CORPUS") or Path(__file__).parents[2].parent / "shared" / "corpus")


def measured() -> list[dict[str, Any]]:
    manifest = ROOT / "manifest.jsonl"
    if not manifest.is_file():
        return []
    records = [json.loads(line) for line in manifest.read_text().splitlines()]
    return [
        {"path": r["path"], **(r["truth"].get("hta_temporal") or [{}])[0]}
        for r in records
        if r["format"] == "kineto" and isinstance(r["truth"], dict) and r["truth"].get("hta_temporal")
    ]


@pytest.mark.corpus
@pytest.mark.parametrize("record", measured(), ids=lambda r: r["path"].split("/")[-2] + "-" + r["path"][-20:])
def test_idle_and_computing_agree_on_its_window(record: dict[str, Any]) -> None:
    spans = collect([ROOT / record["path"]]).tables.spans
    marks = (
        spans.filter(pl.col("device").is_null() & pl.col("step").is_not_null())["start_ns"].unique().sort()
    )
    rows = spans.filter(pl.col("device").is_not_null())
    if len(marks) >= 2:
        calls = (
            spans.filter(pl.col("lane") == "runtime")
            .group_by("corr")
            .agg(pl.col("start_ns").min().alias("called"))
        )
        rows = rows.join(calls, on="corr").filter(
            (pl.col("called") >= marks[0]) & (pl.col("called") < marks[-1])
        )
    (device,) = devices_of(rows)
    computing = union(*(device.of_lanes("kernel")[c].to_numpy() for c in ("start_ns", "end_ns")))
    # HTA cuts every start and length to whole microseconds, so each activity may lose one to idle time
    cut_us = len(rows) + 2
    sync = spans.filter(pl.col("lane") == "sync")
    outside = sync.filter(
        (pl.col("start_ns") < device.low_ns) | (pl.col("start_ns") + pl.col("dur_ns") > device.high_ns)
    )
    if outside.is_empty():  # HTA takes records of synchronisation for activity, which widens its span
        assert device.span_ns / 1000 == pytest.approx(record["kernel_time(us)"], abs=4)
        assert -2 <= record["idle_time(us)"] - device.idle_ns / 1000 <= cut_us
    assert -10 <= computing.total_ns / 1000 - record["compute_time(us)"] <= cut_us
    assert np.all(device.gaps.durations > 0)
