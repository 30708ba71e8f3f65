"""Inputs of the golden case of runs that several sources tell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from tests.support import events

STEPS = range(25, 301, 25)
LAUNCH = "runs/Nov14_22-13-20_node1/events.out.tfevents.1700000000.node1.60.0"


def loss(step: int) -> float:
    """A smooth descent from 2.4 to 0.6, rounded as the Trainer does."""
    return round(0.6 + 1.8 * math.exp(-step / 80), 4)


def many_sources(root: Path) -> None:
    """A fine-tuning in three sources and its printed lines above them; a job with two streams; two charts; a contradiction."""
    _trainer(root / "tuned")
    _streams(root / "job")
    _charts(root / "charts")
    _contradiction(root / "torn")


def _trainer(folder: Path) -> None:
    history, records, lines = [], [], []
    for step in STEPS:
        epoch = step / 100
        rate = 5e-5 * (1 - step / 300)
        history.append({"epoch": epoch, "learning_rate": rate, "loss": loss(step), "step": step})
        told = {"train/loss": loss(step), "train/learning_rate": rate, "train/epoch": epoch}
        records.append(events.scalars(events.WALL + step, step, **told))
        lines.append({"loss": loss(step), "learning_rate": rate, "epoch": epoch})
        if step % 100 == 0:
            held = loss(step) + 0.1 + 1 / step
            history.append({"epoch": epoch, "eval_loss": held, "step": step})
            records.append(events.scalars(events.WALL + step + 1, step, **{"eval/loss": held}))
            lines.append({"eval_loss": held, "eval_samples_per_second": 100.5 + step, "epoch": epoch})
    state = {
        "epoch": 3.0,
        "global_step": 300,
        "is_hyper_param_search": False,
        "log_history": history,
        "max_steps": 300,
    }
    _write(folder / "out" / "trainer_state.json", json.dumps(state, separators=(",", ":")))
    events.write(folder / "out" / LAUNCH, records)
    _write(folder / "train.log", "".join(f"{line}\n" for line in lines))


def _streams(folder: Path) -> None:
    told = [f"step {s} loss {loss(s):.3f} lr 1.0e-03\n" for s in STEPS]
    _write(folder / "slurm-4711.out", "".join(told))
    error = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\nValueError: shapes differ\n'
    _write(folder / "slurm-4711.err", "".join(told[:5]) + error)
    rows = "".join(f"{s},{loss(s)}\n" for s in STEPS)
    _write(folder / "metrics.csv", "step,train_loss\n" + rows)


def _charts(folder: Path) -> None:
    for name, tag, offset in (("loss.csv", "train/loss", 0.0), ("held.csv", "val/loss", 0.25)):
        rows = "".join(f'"{s}","{loss(s) + offset:.4f}","{loss(s) + offset + 1:.4f}"\n' for s in STEPS)
        _write(folder / name, f'"Step","calm-tree-1 - {tag}","red-sea-2 - {tag}"\n' + rows)


def _contradiction(folder: Path) -> None:
    rows = "".join(f"{s},{loss(s)}\n" for s in STEPS)
    _write(folder / "metrics.csv", "step,val_loss\n" + rows)
    records = [
        events.scalars(events.WALL + s, s, **{"val/loss": loss(s) if s < 200 else loss(s) + 0.5})
        for s in STEPS
    ]
    events.write(folder / "events.out.tfevents.1700000000.node1.61.0", records)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


WRITERS: tuple[Callable[[Path], None], ...] = (many_sources,)
