"""Failures that users of other readers of Nsight Systems reported, with the right answers. Times in ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.nsys import Export

MS = 1_000_000


def device(path: Path) -> dict[str, Any]:
    (run,) = inventory(collect([path]))["runs"]
    (found,) = run["devices"]
    return dict(found)


def gaps_ms(path: Path) -> list[float]:
    """Gaps between consecutive rows of one device that do not overlap."""
    rows = collect([path]).tables.spans.sort("start_ns")
    ends = (rows["start_ns"] + rows["dur_ns"])[:-1]
    return [gap / MS for gap in rows["start_ns"][1:] - ends if gap]


def kernels(*spans: tuple[float, float, int]) -> Export:
    """Kernels from (start, end, stream)."""
    export = Export()
    for start, end, stream in spans:
        export.kernel(round(start * MS), round(end * MS), streamId=stream)
    return export


def test_b54_idle_of_a_stream_is_not_idle_of_the_device(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/240"""
    path = kernels((0, 1, 7), (50, 51, 7), (0, 51, 8)).write(tmp_path / "p.sqlite")
    assert device(path)["idle_ns"] == 0
    assert device(path)["largest_gap_ns"] == 0


def test_b56_busy_is_a_union_not_a_sum(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/574"""
    found = device(kernels((0, 100, 7), (110, 200, 7), (20, 80, 21)).write(tmp_path / "p.sqlite"))
    assert found["busy_ns"] == 190 * MS
    assert found["kernel_sum_ns"] == 250 * MS
    assert found["span_ns"] == 200 * MS


def test_b57_a_capture_without_kernels_is_no_improvement(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/384"""
    path = Export().range(0, 10 * MS, "step").write(tmp_path / "after.sqlite")
    (run,) = inventory(collect([path]))["runs"]
    assert run["devices"] == []
    assert "no GPU activity recorded" in run["sources"][0]["note"]


def test_b58_calls_are_no_gpu_activity(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/566"""
    export = Export("2020")
    export.launch(at=5)
    (run,) = inventory(collect([export.write(tmp_path / "p.sqlite")]))["runs"]
    assert run["devices"] == []
    assert run["spans"]["rows"] == 1
    assert run["sources"][0]["note"].startswith("no GPU activity recorded")


def test_b59_devices_keep_their_own_numbers(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/467"""
    export = Export()
    for number in range(1, 8):
        for i in range(20):
            export.kernel(i * 10 * MS, i * 10 * MS + 9 * MS, deviceId=number)
    (run,) = inventory(collect([export.write(tmp_path / "p.sqlite")]))["runs"]
    assert [(d["device"], d["kernels"]) for d in run["devices"]] == [(number, 20) for number in range(1, 8)]


def test_b60_count_and_sum_of_gaps_are_of_the_same_set(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/610"""
    export, at = Export(), 0.0
    for i in range(104):
        export.kernel(round(at * MS), round((at + 1) * MS))
        at += 1 + (2 if i in (20, 50, 80) else 0.1)
    path = export.write(tmp_path / "p.sqlite")
    found = gaps_ms(path)
    assert (len(found), sum(found)) == (103, pytest.approx(16.0))
    assert [gap for gap in found if gap >= 1] == [2.0, 2.0, 2.0]
    assert device(path)["idle_ns"] == 16 * MS


def test_b61_the_whole_span_counts(tmp_path: Path) -> None:
    """https://github.com/GindaChen/nsys-ai/issues/133"""
    spans = [(0.0, 1.0, 7), *((600.0 + i, 600.98 + i, 7) for i in range(2000))]
    found = device(kernels(*spans).write(tmp_path / "p.sqlite"))
    assert found["span_ns"] == 2_599_980_000
    assert found["idle_ns"] == 638_980_000
    assert found["largest_gap_ns"] == 599 * MS


@pytest.mark.parametrize("registered", [False, True])
def test_b62_names_of_ranges_in_either_column(tmp_path: Path, registered: bool) -> None:
    """https://github.com/GindaChen/nsys-ai/pull/101"""
    export = Export()
    for i in range(5):
        export.range(i * 10 * MS, i * 10 * MS + 9 * MS, f"step_{i}", registered=registered)
    rows = collect([export.write(tmp_path / "p.sqlite")]).tables.spans.sort("start_ns")
    assert rows["name"].cast(pl.String).to_list() == [f"step_{i}" for i in range(5)]
    assert rows["step"].to_list() == [0, 1, 2, 3, 4]
    assert set(rows["dur_ns"]) == {9 * MS}
