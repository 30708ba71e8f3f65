"""What the W&B client writes offline: history, configuration, summary, system metrics, and how the run ended.

The client writes ``run-ID.wandb`` and ``files/output.log``; the other files of ``files/`` are made when it is online.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.writers.harness import Recorded, needs, write

needs("wandb")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("wandb") / "logs"
    write("wandb_offline", folder, "finished")
    return folder


def test_history(logs: Path) -> None:
    found = Recorded(logs)
    (run,) = found.runs
    assert found.points(run, "train/loss") == [
        (0, 1.0), (1, 0.5), (2, "nan"), (3, "inf"), (4, "-inf"), (5, 0.125),
    ]  # fmt: skip
    assert found.points(run, "nested.a.b") == [(i, i * 2.0) for i in range(6)]
    assert found.points(run, "nested.c") == [(i, 1.5) for i in range(6)]
    assert found.points(run, "Größe λ") == [(i, 0.1 * i) for i in range(6)]
    assert found.points(run, "flag") == [(i, 1.0) for i in range(6)]
    assert found.points(run, "single")[0] == (0, float(np.float32(0.1)))
    assert found.rows(run, "train/loss")["epoch"].to_list() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert found.points(run, "jump") == [(20, 1.0), (25, 3.0)]
    assert found.points(run, "beside") == [(20, 2.0)], "rows of one step are one row"
    assert "word" not in found.tags(run)
    assert "word" in found.notes(run)
    assert found.sound()


def test_the_time_of_a_row_lies_within_the_run(logs: Path) -> None:
    found = Recorded(logs)
    (run,) = found.runs
    (started,), (ended,) = (found.tables.runs[name] for name in ("started_ns", "ended_ns"))
    times = found.times_ns(run, "train/loss")
    assert times == sorted(times)
    assert started <= times[0] <= times[-1] <= ended


def test_histograms_and_media(logs: Path) -> None:
    """Media are named and left out; their sizes and widths are no metrics."""
    found = Recorded(logs)
    (run,) = found.runs
    assert found.histograms(run, "given") == [(6, [0.0, 1.0, 2.0, 4.0], [1.0, 2.0, 3.0])]
    assert found.histograms(run, "counted") == [(7, [0.0, 0.75, 1.5, 2.25, 3.0], [1.0, 2.0, 0.0, 1.0])]
    assert found.points(run, "loss") == [(8, 0.25)]
    assert not [tag for tag in found.tags(run) if tag.startswith(("image", "table", "given", "counted"))]
    notes = found.notes(run)
    assert "1 value of type image-file skipped: image" in notes
    assert "1 value of type table-file skipped: table" in notes
    assert not [key for key in found.params(run) if key.startswith(("summary.image", "summary.table"))]


def test_configuration_and_summary(logs: Path) -> None:
    found = Recorded(logs)
    (run,) = found.runs
    params = found.params(run)
    expected = {
        "lr": 0.1, "optimizer.name": "adam", "optimizer.betas": [0.9, 0.999], "größe": "λ", "none": None,
        "amp": True, "late": 5, "summary.final": 42, "summary.deep.x.y": 1, "summary.nested.a.b": 10,
        "summary.train/loss": 0.125, "summary.word": "said", "wandb.run_id": "abc123",
        "wandb.project": "projekt ü", "wandb.name": "a run", "wandb.group": "g", "wandb.job_type": "train",
    }  # fmt: skip
    assert {key: params[key] for key in expected} == expected


def test_system_metrics_and_console(logs: Path) -> None:
    found = Recorded(logs)
    (run,) = found.runs
    counters = found.counters(run)
    assert {"rss_bytes", "host_mem_used_pct", "host_mem_available_bytes", "disk_used_pct"} <= set(counters)
    assert all(1e6 < value < 1e11 for value in counters["rss_bytes"])
    assert all(0 < value < 100 for value in counters["host_mem_used_pct"])
    assert "2 lines of console output" in found.notes(run)


def test_the_end_of_a_run(logs: Path) -> None:
    found = Recorded(logs)
    (run,) = found.runs
    assert [(kind, text) for kind, _, text in found.marks(run)] == [
        ("start", "W&B run started"),
        ("finish", "W&B run ended with exit code 0"),
    ]
    assert found.outcome(run) == "finished"


def test_a_run_that_ended_with_an_exception(tmp_path: Path) -> None:
    write("wandb_offline", tmp_path / "logs", "failed", fails=True)
    found = Recorded(tmp_path / "logs")
    (run,) = found.runs
    assert ("crash", None, "W&B run ended with exit code 1") in found.marks(run)
    assert found.points(run, "jump") == [(20, 1.0), (25, 3.0)]


def test_a_run_that_was_killed(tmp_path: Path) -> None:
    """The client writes behind: of a killed run the end may be missing, and nothing before that."""
    write("wandb_offline", tmp_path / "logs", "killed", fails=True)
    found = Recorded(tmp_path / "logs")
    (run,) = found.runs
    assert len(found.points(run, "train/loss")) == 6
    many = found.points(run, "many")
    assert 500 < len(many) <= 2000
    assert many == [(25 + i, i / 4) for i in range(len(many))]
    assert "finish" not in {kind for kind, _, _ in found.marks(run)}
    assert "no exit record" in found.notes(run)
    assert found.outcome(run) in ("unknown", "running")
    assert found.tables.sources["damaged"].sum() == 0
