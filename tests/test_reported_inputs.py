"""The inputs that were handed over with the reported failures of traces, counters, and the page: B50 to B82.

The same failures are tested with inputs written by the tests, beside what they concern; here the files are those of
the list of cases, with its numbers. They are skipped where the folder is not there. Times in ms where no unit is named.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.compare import compare
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.inventory import inventory
from afterrun.analyzer.pipeline import analyse
from afterrun.loaders.collect import collect
from afterrun.plots.report.story import state
from tests.support.loading import CORPUS

INPUTS = CORPUS.parent / "bugs" / "inputs"
MS = 1_000_000
US = 1_000

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not INPUTS.is_dir(), reason="the inputs of the reports are not here"),
]


def look(name: str) -> tuple[dict[str, Any], Analysis]:
    """(the only run of the inventory, everything known)."""
    collection = collect([INPUTS / name])
    (run,) = inventory(collection)["runs"]
    return run, analyse(collection)


def devices(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = look(name)[0]["devices"]
    return found


def said(a: Analysis, code: str) -> list[Finding]:
    return [f for f in a.findings if f.code == code]


def idle(name: str) -> Finding:
    (found,) = said(look(name)[1], "gpu-idle")
    return found


def stands(a: Analysis) -> str:
    (view,) = a.views.values()
    return state(view, a.findings)


def test_b50_two_devices() -> None:
    run, a = look("B50")
    used = [(s["device"], s["points"], s["mean"]) for s in run["samples"] if s["counter"] == "gpu_util_pct"]
    assert used == [(0, 10, 95), (1, 10, 0)]
    (unused,) = [f for f in said(a, "low-utilization") if f.status == "possible"]
    assert unused.where.device == 1
    assert "never used while GPU 0 was in use 95 %" in unused.title


def test_b52_dashes_and_headers_that_come_again() -> None:
    run, _ = look("B52")
    (use,) = [s for s in run["samples"] if s["counter"] == "gpu_util_pct"]
    assert (use["points"], use["mean"], use["max"]) == (8, 28.5, 32)
    assert [s for s in run["samples"] if "mem_temp" in s["counter"]] == []
    assert run["sources"][0]["damaged"] == 0


def test_b53_stale_marks_and_a_gap() -> None:
    run, a = look("B53")
    assert [(s["points"], s["mean"]) for s in run["samples"]] == [(12, 90)]
    (slow,) = said(a, "undersampled")
    # 285 s: 90 s of the gap less 15, 45 s around two stale marks less 15, 30 s around the infinity less 15
    assert slow.values["holes_pct"] == pytest.approx(100 * (75 + 30 + 15) / 285)


def test_b54_idle_of_a_stream() -> None:
    assert [d["idle_ns"] for d in devices("B54")] == [0]
    assert idle("B54").status == "refuted"


def test_b56_busy_is_a_union() -> None:
    (device,) = devices("B56")
    assert (device["busy_ns"], device["span_ns"], device["kernel_sum_ns"]) == (190 * MS, 200 * MS, 250 * MS)


def test_b57_a_capture_without_kernels_is_not_comparable() -> None:
    a = analyse(collect([INPUTS / "B57"]))
    found = compare(a.views["before"], a.views["after"])
    assert not found.comparable
    assert "no GPU activity is recorded in after" in found.missing
    assert state(a.views["after"], [f for f in a.findings if f.run == "after"]) == "unassessed"


def test_b58_calls_alone_are_not_assessable() -> None:
    run, a = look("B58")
    assert run["devices"] == []
    assert "neither 0 nor 100 %" in idle("B58").title
    assert idle("B58").status == "abstained"
    assert stands(a) == "unassessed"


def test_b59_devices_one_to_seven() -> None:
    assert [(d["device"], d["kernels"]) for d in devices("B59")] == [(n, 20) for n in range(1, 8)]


def test_b60_count_and_sum_are_of_the_same_gaps() -> None:
    values = idle("B60").values
    assert (values["gaps"], values["idle_ns"]) == (103, 16 * MS)
    assert values["by_size_ns"]["macro"] == 6 * MS


def test_b61_the_whole_span() -> None:
    values = idle("B61").values
    assert (values["idle_ns"], values["span_ns"]) == (638_980_000, 2_599_980_000)
    assert values["longest"][0]["dur_ns"] == 599 * MS


@pytest.mark.parametrize("layout", ["text_only", "with_textId"])
def test_b62_ranges_of_both_layouts(layout: str) -> None:
    rows = collect([INPUTS / "B62" / f"{layout}.sqlite"]).tables.spans
    steps = rows.filter(pl.col("step").is_not_null()).sort("start_ns")
    assert steps["name"].cast(pl.String).to_list() == [f"step_{i}" for i in range(5)]
    assert set(steps["dur_ns"]) == {9 * MS}


def test_b64_units_of_every_file() -> None:
    kernels = collect([INPUTS / "B64"]).tables.kernels.with_columns(pl.col("run", "metric").cast(pl.String))

    def of(run: str, metric: str) -> list[float]:
        rows = kernels.filter((pl.col("run") == run) & (pl.col("metric") == metric)).sort("launch")
        return rows["value"].to_list()

    assert of("ncu_raw", "gpu__time_duration.sum") == pytest.approx([1_234_560, 12_300])
    assert of("ncu_raw_ms", "gpu__time_duration.sum") == pytest.approx([1_500_000])
    assert of("ncu_raw", "sm__throughput.avg.pct_of_peak_sustained_elapsed") == [61.2]


def test_b65_a_path_that_is_no_json() -> None:
    run, _ = look("B65")
    assert run["spans"]["rows"] == 3
    assert "mended" in run["sources"][0]["note"]


def test_b67_cut_by_a_crash() -> None:
    run, _ = look("B67")
    assert [d["kernels"] for d in run["devices"]] == [23]
    assert run["sources"][0]["status"] == "partial"
    assert run["sources"][0]["note"].startswith("cut")


def test_b68_a_negative_length() -> None:
    run, _ = look("B68")
    assert [d["busy_ns"] for d in run["devices"]] == [20 * US]
    assert run["sources"][0]["damaged"] == 1


def test_b69_a_kernel_that_overruns() -> None:
    run, _ = look("B69")
    assert [(d["busy_ns"], d["span_ns"]) for d in run["devices"]] == [(600 * US, 900 * US)]
    assert "1 kernels claim to run on" in run["sources"][0]["note"]


def test_b70_steps_without_events() -> None:
    _, a = look("B70")
    (found,) = said(a, "gpu-idle")
    assert (found.status, found.values["steps"], found.values["steps_without_gpu_events"]) == (
        "possible",
        32,
        30,
    )
    assert [f.status for f in said(a, "low-utilization")] == ["abstained"]
    assert stands(a) == "faulty"


def test_b72_kernels_before_their_launch() -> None:
    run, _ = look("B72")
    assert [(d["kernels"], d["span_ns"], d["idle_ns"]) for d in run["devices"]] == [(8, 750 * US, 350 * US)]
    assert run["sources"][0]["damaged"] == 2


def test_b73_neither_steps_nor_rank() -> None:
    run, a = look("B73")
    assert [(d["rank"], d["busy_ns"], d["span_ns"]) for d in run["devices"]] == [(None, 600 * US, 960 * US)]
    assert idle("B73").values["steps"] is None
    # less than a millisecond of work is no reason for a warning
    assert [f.code for f in a.findings if f.is_alarm] == []


def test_b74_the_last_step_counts() -> None:
    assert idle("B74").values["steps"] == 3


def test_b77_timelines_without_end() -> None:
    (one, two) = inventory(collect([INPUTS / "B77"]))["runs"]
    assert (one["sources"][0]["status"], one["spans"]["rows"]) == ("empty", 0)
    assert "empty timeline" in one["sources"][0]["note"]
    spans = collect([INPUTS / "B77" / "timeline2.json"]).tables.spans
    assert (two["spans"]["rows"], set(spans["dur_ns"])) == (5, {50 * US})


def test_b78_a_snapshot_that_would_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (good, evil) = inventory(collect([INPUTS / "B78"]))["runs"]
    (reserved,) = [s for s in good["samples"] if s["counter"] == "mem_reserved_bytes"]
    assert reserved["max"] == 2 * 2**20
    assert evil["sources"][0]["status"] == "unreadable"
    assert "_io.open" in evil["sources"][0]["note"]
    assert not any((folder / "PWNED").exists() for folder in (tmp_path, INPUTS / "B78"))


def test_b79_names_stay_text(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "afterrun", "report", INPUTS / "B79", "-o", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout
    assert {p.name for p in tmp_path.iterdir()} == {"out"}
    assert all(len(p.name.encode()) <= 120 and "<" not in p.name for p in tmp_path.rglob("*"))
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<b>run" not in page
    assert "<img src=x" not in page
    assert "&lt;b&gt;run&amp;1" in page


def test_b82_a_small_file_that_unpacks_huge() -> None:
    found = collect([INPUTS / "B82"])
    assert [(u.path, "gzip" in u.reason) for u in found.unclaimed] == [("bomb.csv.gz", True)]
    assert found.tables.run_names() == ["a"]
    done = subprocess.run(
        [sys.executable, "-m", "afterrun", "inspect", INPUTS / "B82" / "bomb.csv.gz"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "unpacked to its end: " in done.stdout + done.stderr
