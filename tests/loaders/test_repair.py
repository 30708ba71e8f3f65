"""Device rows that cannot be true: who launched them, and which stream they block."""

from __future__ import annotations

from typing import Any

import polars as pl

from afterrun.loaders.schema import conform
from afterrun.loaders.traces import repair as module
from afterrun.loaders.traces.repair import repair

S = 10**9


def row(lane: str, start: int, dur: int = 10, **more: Any) -> dict[str, Any]:
    device = None if lane == "runtime" else 0
    base = {"process": 1, "device": device, "lane": lane, "track": 7, "name": lane, "corr": None}
    return base | {"start_ns": start, "dur_ns": dur} | more


def table(*rows: dict[str, Any]) -> pl.DataFrame:
    return conform("spans", pl.DataFrame(list(rows), infer_schema_length=None))


def test_a_call_of_another_process_says_nothing() -> None:
    calls = [row("runtime", 5 * S, corr=1), row("runtime", 50 * S, corr=1, process=2)]
    kernels = [row("kernel", 6 * S, corr=1), row("kernel", 7 * S, corr=1, process=2)]
    done = repair(table(*calls, *kernels))
    assert done.spans.filter(pl.col("device") == 0)["start_ns"].to_list() == [6 * S]
    assert done.damaged == 1


def test_the_first_call_of_a_number_counts() -> None:
    calls = [row("runtime", 50 * S, corr=1), row("runtime", 5 * S, corr=1), row("runtime", 90 * S, corr=2)]
    done = repair(table(*calls, row("kernel", 5 * S, corr=1), row("kernel", 6 * S, corr=3)))
    assert done.damaged == 0


def test_files_without_a_process() -> None:
    calls = table(row("runtime", 9 * S, corr=1, process=None))
    device = table(row("kernel", 2 * S, corr=1, process=None), row("kernel", 9 * S, corr=1, process=None))
    done = repair(device, calls)
    assert done.spans["start_ns"].to_list() == [9 * S]
    assert (done.damaged, done.notes) == (
        1,
        ("1 device events start long before their own launch and were left out",),
    )


def test_one_second_ahead_is_still_true() -> None:
    calls = table(row("runtime", 9 * S, corr=1))
    assert repair(table(row("kernel", 8 * S, corr=1)), calls).damaged == 0
    assert repair(table(row("kernel", 8 * S - 1, corr=1)), calls).damaged == 1


def test_overruns_are_cut_alike_however_streams_are_numbered(monkeypatch: Any) -> None:
    long = [
        row("kernel", 1000 * i, 100_000_000 if i == 3 else 100, track=t)
        for i in range(9)
        for t in (7, 90_000)
    ]
    wide = [r | {"process": p} for p in (1, None) for r in long]
    plain = repair(table(*wide))
    assert plain.notes == ("4 kernels claim to run on past later kernels of their stream and were cut there",)
    assert plain.spans["dur_ns"].max() == 1000
    monkeypatch.setattr(module, "_few_streams", lambda kernels: None)
    assert repair(table(*wide)).spans.equals(plain.spans)
    assert repair(table(*long)).spans["dur_ns"].to_list() == plain.spans["dur_ns"].to_list()[: len(long)]
