"""Reported failures of other tools on text logs; numbers are those of the list of cases, inputs are written here."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.inventory import inventory
from afterrun.analyzer.pipeline import analyse
from afterrun.cli import run as command
from afterrun.loaders.collect import collect


def look(path: Path) -> tuple[dict[str, Any], Analysis]:
    """(the only run of the inventory, everything known)."""
    collection = collect([path])
    (found,) = inventory(collection)["runs"]
    return found, analyse(collection)


def said(a: Analysis, code: str) -> list[Finding]:
    return [f for f in a.findings if f.code == code and f.status in ("confirmed", "possible")]


def metric(run: dict[str, Any], tag: str) -> dict[str, Any]:
    (found,) = [m for m in run["metrics"] if m["tag"] == tag]
    return found


def iteration(i: int, total: int, loss: str, grad: str) -> str:
    return (
        f" iteration {i:8d}/{total:8d} | consumed samples: {i * 64:12d} | elapsed time per iteration (ms): 7613.1 | learning rate: 6.680E-06 | "
        f"global batch size:    64 | {loss}loss scale: 1.0 | grad norm: {grad} | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |\n"
    )


def test_b47_a_loss_that_is_no_longer_written_is_nan(tmp_path: Path) -> None:
    good = "".join(
        iteration(i, 8000, f"lm loss: {0.9 - (i - 3370) / 1000:.6E} | ", "0.75") for i in range(3370, 3385)
    )
    bad = "".join(iteration(i, 8000, "", "nan") for i in range(3385, 3395))
    (tmp_path / "train.log").write_text(good + bad)
    run, a = look(tmp_path)
    loss, grad = metric(run, "lm loss"), metric(run, "grad norm")
    assert (loss["points"], loss["nan"], loss["last_step"], loss["last"]) == (15, 0, 3384, 0.886)
    assert (grad["points"], grad["nan"], grad["last_step"]) == (25, 10, 3394)
    assert metric(run, "number of nan iterations")["max"] == 0, "the counter of the log says nothing"
    (broken,) = said(a, "non-finite")
    assert (broken.status, broken.severity, broken.where.step_start) == ("confirmed", "critical", 3385)
    ends = [f for f in said(a, "incomplete") if f.status == "confirmed"]
    assert [(f.values["reached"], f.values["planned"]) for f in ends] == [(3394, 8000)]
    assert run["marks"] == {"nan": 1}


@pytest.fixture
def cut_short(tmp_path: Path) -> Path:
    """B48: a log that ends at iteration 41 of 100."""
    rows = "".join(
        f" iteration {i:6d}/   100 | elapsed time per iteration (ms): 200.0 | throughput per GPU (TFLOP/s/GPU): 310.1 | "
        f"lm loss: {3 - i / 50:.4E} |\n"
        for i in range(1, 42)
    )
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "training.log").write_text(rows)
    return folder


def test_b48_a_log_that_stops_in_the_middle_is_not_finished(cut_short: Path) -> None:
    run, a = look(cut_short)
    loss = metric(run, "lm loss")
    assert (loss["points"], loss["first_step"], loss["last_step"], loss["last"]) == (41, 1, 41, 2.18)
    assert metric(run, "throughput per GPU (TFLOP/s/GPU)")["points"] == 41
    assert run["params"]["max_steps"] in ("100", 100)
    assert run["outcome"] == "unknown"
    (f,) = said(a, "incomplete")
    assert (f.status, f.values["reached"], f.values["planned"]) == ("confirmed", 41, 100)
    assert not [x for x in a.findings if x.code == "crash" and x.status != "abstained"], "no failure is told"


@pytest.mark.parametrize(
    ("flags", "code"), [(["--fail-on", "incomplete"], 1), (["--fail-on", "crash"], 0), ([], 0)]
)
def test_b48_the_exit_code_follows_fail_on(
    cut_short: Path, tmp_path: Path, flags: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(
        sys, "argv", ["afterrun", "report", str(cut_short), "-o", str(out), "--no-figures", *flags]
    )
    with pytest.raises(SystemExit) as stop:
        command()
    assert stop.value.code == code
    findings = json.loads((out / "findings.json").read_text())["findings"]
    assert [f["title"] for f in findings if f["code"] == "incomplete" and f["status"] == "confirmed"] == [
        "Not finished: 41 of 100 steps (59 % missing), and no record of the end."
    ]


def test_words_that_say_nan_on_healthy_lines_are_no_nan(tmp_path: Path) -> None:
    rows = "".join(
        f"step {i:6d}/60 | loss {9 * 0.97**i:f} (+nanz)| norm 1.5 (-0.30z)| lr 6.00e-04 | 350.00 ms | 37.3% bf16 MFU | 145016 tok/s\n"
        for i in range(1, 61)
    )
    (tmp_path / "train.log").write_text(rows)
    run, a = look(tmp_path)
    assert metric(run, "loss")["nan"] == 0
    assert run["outcome"] == "finished"
    assert [f.code for f in a.findings if f.is_alarm] == []


def test_a_loss_of_nan_from_the_first_step(tmp_path: Path) -> None:
    rows = "".join(
        f"step {i:6d}/60 | loss      nan (+nanz)| norm    nan (+nanz)| lr 6.00e-04 | 350.00 ms | 37.3% bf16 MFU | 145016 tok/s\n"
        for i in range(1, 41)
    )
    (tmp_path / "train.log").write_text(rows)
    run, a = look(tmp_path)
    assert (metric(run, "loss")["points"], metric(run, "loss")["nan"]) == (40, 40)
    assert math.isclose(metric(run, "step_time")["last"], 0.35)
    assert run["outcome"] == "nan"
    assert [f.severity for f in said(a, "non-finite")] == ["critical"]
