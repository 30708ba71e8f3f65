"""Runs as the logs that trainings leave: each format below a folder of its own, each run a file or folder by its name."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.diagnosis.runs import GRAD, LR, TRAIN, Run

from tests.support import events

UNSEEN: Mapping[str, frozenset[str]] = {
    "hf": frozenset({"throughput-drift", "loader-stall", "step-outliers"}),
    "csv": frozenset(),
    "jsonl": frozenset(),
    "tb": frozenset(),
}
"""Codes that a format records nothing about: a trainer's state has no times."""

_TRAINER = {TRAIN: "loss", LR: "learning_rate", GRAD: "grad_norm", "train/accuracy": "accuracy"}
_HELD_OUT = {"val/loss": "eval_loss", "val/accuracy": "eval_accuracy"}


def rows(run: Run) -> Iterator[dict[str, float]]:
    """What was logged, row by row; a tag that was not logged at a row is absent."""
    logged = {tag: run.at(tag) for tag in run.curves}
    for i in range(run.rows):
        yield {tag: float(values[i]) for tag, values in run.curves.items() if logged[tag][i]}


def write_csv(run: Run, folder: Path) -> None:
    """A wide table with empty cells."""
    with (folder / f"{run.name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *run.curves])
        for step, row in zip(run.step.tolist(), rows(run), strict=True):
            writer.writerow([step, *(_cell(row.get(tag)) for tag in run.curves)])


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def write_jsonl(run: Run, folder: Path) -> None:
    """An object a row with the time; NaN as the bare word."""
    with (folder / f"{run.name}.jsonl").open("w") as file:
        for step, wall_s, row in zip(run.step.tolist(), run.wall_s.tolist(), rows(run), strict=True):
            file.write(json.dumps({"step": step, "timestamp": wall_s, **row}) + "\n")


def write_hf(run: Run, folder: Path) -> None:
    """``trainer_state.json``: rows of training and of evaluations apart, no times."""
    history: list[dict[str, float]] = []
    last = int(run.step.max())
    for step, row in zip(run.step.tolist(), rows(run), strict=True):
        place = {"epoch": round(3 * step / last, 4), "step": step}
        trained = {_TRAINER.get(tag, tag.partition("/")[2]): v for tag, v in row.items() if _of_training(tag)}
        held_out = {_evaluated(tag): value for tag, value in row.items() if tag.startswith("val")}
        history += [{**trained, **place}] if trained else []
        history += [{**held_out, **place}] if held_out else []
    (folder / run.name).mkdir()
    state = {
        "epoch": 3.0,
        "global_step": last,
        "max_steps": last,
        "num_train_epochs": 3,
        "log_history": history,
    }
    (folder / run.name / "trainer_state.json").write_text(json.dumps(state))


def _of_training(tag: str) -> bool:
    return tag in _TRAINER or tag.startswith(("rollout/", "loss_", "train/"))


def _evaluated(tag: str) -> str:
    place, _, metric = tag.partition("/")
    return _HELD_OUT.get(tag, f"eval_{place.removeprefix('val_')}_{metric}")


def write_tb(run: Run, folder: Path) -> None:
    """An event file."""
    path = folder / run.name / "events.out.tfevents.1700000000.node1.7.0"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(events.record(events.version()))
        for step, wall_s, row in zip(run.step.tolist(), run.wall_s.tolist(), rows(run), strict=True):
            file.write(events.record(events.scalars(wall_s, step, **row)))


WRITERS: Mapping[str, Callable[[Run, Path], None]] = {
    "hf": write_hf,
    "csv": write_csv,
    "jsonl": write_jsonl,
    "tb": write_tb,
}
