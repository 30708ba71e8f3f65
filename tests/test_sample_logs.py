"""The sample logs show what they are said to show, and the script beside them still writes them.

Read here by TensorBoard's own record loader and the standard library, not by afterrun.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "sample_logs"
LOGS = (
    "bad-shard/events.out.tfevents.1768208400.node1.7745.0",
    "batch-of-two/log.csv",
    "healthy/events.out.tfevents.1768208400.node1.4211.0",
    "killed-and-resumed/events.out.tfevents.1768208400.node1.5187.0",
    "killed-and-resumed/events.out.tfevents.1768210928.node1.6032.0",
    "lr-ended-early/training.csv",
    "lr-too-high/lightning_logs/version_0/metrics.csv",
    "overfit/checkpoint-1200/trainer_state.json",
    "overfit/checkpoint-2400/trainer_state.json",
    "overfit/trainer_state.json",
)
FIRST_ROWS = {"lr-too-high/lightning_logs/version_0/metrics.csv": 400}
"""How far another machine can follow: once a training diverges, rounding decides."""

Points = list[tuple[int, float, float]]
"""Step, value, wall clock in seconds."""


def event_points(path: Path) -> dict[str, Points]:
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    points: dict[str, Points] = defaultdict(list)
    for raw in RawEventFileLoader(str(path)).Load():
        event = Event.FromString(raw)
        for value in event.summary.value:
            points[value.tag].append((event.step, value.simple_value, event.wall_time))
    return dict(points)


def csv_rows(path: Path) -> list[dict[str, float]]:
    """Rows without their empty cells."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def history(path: Path) -> list[dict[str, float]]:
    return json.loads(path.read_text(encoding="utf-8"))["log_history"]


def observations(root: Path, log: str) -> list[tuple[str, float]]:
    """Every number of a log under a name that says where it stands."""
    if "tfevents" in log:
        return [
            observation
            for tag, points in event_points(root / log).items()
            for step, value, wall_s in points
            for observation in ((f"{tag} {step}", value), (f"{tag} {step} wall", wall_s))
        ]
    rows = csv_rows(root / log) if log.endswith(".csv") else history(root / log)
    return [(f"{name} {index}", value) for index, row in enumerate(rows) for name, value in row.items()]


def column(rows: list[dict[str, float]], name: str) -> list[tuple[int, float]]:
    """Index of the row by ``step`` or ``epoch``, and the value, where the row has one."""
    axis = "step" if "step" in rows[0] else "epoch"
    return [(int(row[axis]), row[name]) for row in rows if name in row]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample_logs")
    subprocess.run([sys.executable, "-B", str(ROOT / "make.py"), str(out)], check=True, timeout=120)
    return out


@pytest.mark.slow
def test_script_writes_exactly_the_committed_files(fresh: Path) -> None:
    written = sorted(p.relative_to(fresh).as_posix() for p in fresh.rglob("*") if p.is_file())
    assert written == list(LOGS)
    kept = [p.relative_to(ROOT).as_posix() for p in ROOT.glob("[a-z]*/**/*") if p.is_file()]
    assert sorted(kept) == list(LOGS)


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
def test_training_again_gives_the_committed_numbers(fresh: Path, log: str) -> None:
    committed, again = observations(ROOT, log), observations(fresh, log)
    stop = len(committed)
    if log in FIRST_ROWS:
        rows = csv_rows(ROOT / log)[: FIRST_ROWS[log]]
        stop = sum(len(row) for row in rows)
    assert [name for name, _ in again] == [name for name, _ in committed]
    for (name, expected), (_, value) in zip(committed[:stop], again[:stop], strict=True):
        # An accuracy moves by whole rows: one of 500, or one of 64 in a mean over five batches.
        atol = 0.005 if "acc" in name else 1e-3 if "wall" in name else 1e-6
        rtol = 0 if "wall" in name else 1e-3
        assert value == pytest.approx(expected, rel=rtol, abs=atol, nan_ok=True), name


def test_all_files_together_are_small() -> None:
    assert sum((ROOT / log).stat().st_size for log in LOGS) < 1_500_000


def test_healthy_improves_to_the_end() -> None:
    points = event_points(ROOT / LOGS[2])
    train = [value for _, value, _ in points["loss/train"]]
    val = [value for _, value, _ in points["loss/val"]]
    assert (len(train), len(val)) == (400, 40)
    assert val[-1] == min(val) == pytest.approx(0.6649, abs=1e-3)
    assert statistics.mean(train[-40:]) == pytest.approx(val[-1], rel=0.01)
    blocks = [statistics.mean(train[i : i + 80]) for i in range(0, 400, 80)]
    assert blocks == sorted(blocks, reverse=True)
    # After the first epochs no point stands out of its neighbourhood.
    assert all(b < 1.15 * statistics.median(train[i - 20 : i]) for i, b in enumerate(train) if i >= 60)
    assert max(points["lr"], key=lambda p: p[1])[0] == 80
    shares = [d / s for (_, d, _), (_, s, _) in zip(points["data_time"], points["step_time"], strict=True)]
    assert max(shares) < 0.05


def test_overfit_turns_at_step_450_and_checkpoints_repeat_its_beginning() -> None:
    rows = history(ROOT / "overfit/trainer_state.json")
    train, val = column(rows, "loss"), column(rows, "eval_loss")
    assert (len(train), len(val)) == (300, 60)
    best_step, best = min(val, key=lambda point: point[1])
    assert (best_step, best) == (450, pytest.approx(0.6558, abs=1e-4))
    assert val[-1][1] / best == pytest.approx(1.438, abs=1e-3)
    assert dict(train)[450] == pytest.approx(0.7296, abs=1e-4)
    assert train[-1] == (3000, pytest.approx(0.2498, abs=1e-4))
    for step in (1200, 2400):
        part = history(ROOT / f"overfit/checkpoint-{step}/trainer_state.json")
        assert part == rows[: len(part)]
        assert part[-1]["step"] == step


def test_lr_too_high_falls_rises_and_overflows() -> None:
    rows = csv_rows(ROOT / "lr-too-high/lightning_logs/version_0/metrics.csv")
    assert not [row for row in rows if "train_loss" in row and "val_loss" in row]
    train, val = column(rows, "train_loss"), column(rows, "val_loss")
    assert (len(train), len(val)) == (660, 60)
    calm = [value for step, value in train if 100 <= step < 200]
    assert statistics.median(calm) < 0.6
    assert train[0][1] > 1.3
    broken = [(step, value) for step, value in train if not math.isfinite(value)]
    assert broken[0] == (501, math.inf)
    assert [step for step, _ in broken] == list(range(501, 660))
    assert sum(math.isnan(value) for _, value in broken) == 156
    assert dict(train)[500] > 1e30
    assert math.isnan(val[-1][1])


def test_killed_run_resumes_before_the_place_where_it_died() -> None:
    first, second = (event_points(ROOT / log) for log in LOGS[3:5])
    assert first["loss/train"][-1][0] == 1110
    assert second["loss/train"][0][0] == 805
    assert sum(step <= 1110 for step, _, _ in second["loss/train"]) == 62
    assert second["loss/train"][0][2] - first["loss/train"][-1][2] > 40 * 60
    assert second["lr"][0][1] == pytest.approx({step: value for step, value, _ in first["lr"]}[805])
    # Cut inside the record of accuracy/train at step 1,110, at the end of a block.
    assert first["accuracy/train"][-1][0] == 1105
    assert (ROOT / LOGS[3]).stat().st_size == 16 * 4096


def test_lr_ended_early_stands_still_from_epoch_59() -> None:
    rows = csv_rows(ROOT / "lr-ended-early/training.csv")
    assert [row["epoch"] for row in rows] == list(range(300))
    lr = [row["learning_rate"] for row in rows]
    assert next(i for i, value in enumerate(lr) if value < 1e-3 * max(lr)) == 58
    val = [row["val_loss"] for row in rows]
    assert val[59] - val[-1] == pytest.approx(0.0005, abs=2e-4)
    assert val[0] - val[59] > 1.6
    assert rows[-1]["accuracy"] < 0.92


def test_bad_shard_makes_one_spike() -> None:
    points = event_points(ROOT / LOGS[0])
    late = {step: value for step, value, _ in points["loss/train"] if step > 700}
    usual = statistics.median(late.values())
    assert max(late, key=late.__getitem__) == 902
    assert sorted(step for step, value in late.items() if value > 1.1 * usual) == [900, 902, 904]
    norms = {step: value for step, value, _ in points["grad_norm"] if step > 700}
    assert max(norms, key=norms.__getitem__) == 902


def test_batch_of_two_is_noisy_in_training_only() -> None:
    rows = csv_rows(ROOT / "batch-of-two/log.csv")
    train, val = column(rows, "train_loss"), column(rows, "val_loss")
    assert (len(train), len(val)) == (1200, 40)
    assert statistics.stdev(math.log(value) for _, value in train[600:]) == pytest.approx(1.33, abs=0.02)
    steady = [value for _, value in val[20:]]
    assert max(steady) / min(steady) < 1.03
    assert steady[-1] == pytest.approx(0.4625, abs=1e-3)
