"""Train the models whose logs lie beside this file, and write those logs again.

    python sample_logs/make.py [OUT]

Every loss, accuracy and gradient norm is what the training gave; only the clock is simulated (see
``_clock.py``). Seeds are fixed and BLAS runs on one thread: the same machine writes the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from _clock import Clock
from _data import diabetes, digits
from _loops import Evaluation, checkpointed, chunks, killed_at, log_scalars, mean
from _models import (
    AdamW,
    Array,
    Mlp,
    Plan,
    Sgd,
    Step,
    cross_entropy,
    squared_error,
    train,
    warmup_cosine,
    warmup_linear,
)
from _writers import EventFile, Killed, short, write_csv, write_trainer_state

HIDDEN = 64


def healthy(out: Path) -> None:
    """Digits with noisy inputs and smoothed labels, AdamW, warm-up and cosine."""
    rng = np.random.default_rng(1)
    training, validation = digits(rng, 1280, smoothing=0.1)
    model, optimizer = Mlp.create(rng, (64, HIDDEN, 10), cross_entropy), AdamW(weight_decay=0.05)
    plan = Plan(2000, 64, warmup_cosine(2e-3, 80, 2000, floor=1e-4), _add_noise)
    clock = Clock(seed=10)
    steps = train(model, optimizer, training, plan, rng)
    with EventFile(out, clock.now_s, pid=4211) as events:
        clock.start()
        log_scalars(events, clock, steps, Evaluation(model, validation, every=50), log_every=5)


def killed_and_resumed(out: Path) -> None:
    """The same training with another seed; killed at step 1,130, resumed from the checkpoint of step 800."""
    rng = np.random.default_rng(2)
    training, validation = digits(rng, 1280, smoothing=0.1)
    model, optimizer = Mlp.create(rng, (64, HIDDEN, 10), cross_entropy), AdamW(weight_decay=0.05)
    plan = Plan(2000, 64, warmup_cosine(2e-3, 80, 2000, floor=1e-4), _add_noise)
    clock = Clock(seed=20)
    saved = [(0, model, optimizer)]
    steps = killed_at(1130, checkpointed(train(model, optimizer, training, plan, rng), saved, every=400))
    try:
        with EventFile(out, clock.now_s, pid=5187) as events:
            clock.start()
            log_scalars(events, clock, steps, Evaluation(model, validation, every=50), log_every=5)
    except Killed:
        clock.stand_still(40 * 60)
    start, model, optimizer = saved[-1]
    steps = train(model, optimizer, training, plan, np.random.default_rng(3), start)
    with EventFile(out, clock.now_s, pid=6032) as events:
        clock.start()
        log_scalars(events, clock, steps, Evaluation(model, validation, every=50), log_every=5)


def bad_shard(out: Path) -> None:
    """Digits; at steps 900 to 903 the loader hands over pixels that nobody scaled to 0..1."""
    rng = np.random.default_rng(4)
    training, validation = digits(rng, 1280, smoothing=0.1)
    model, optimizer = Mlp.create(rng, (64, HIDDEN, 10), cross_entropy), Sgd(momentum=0.9)
    plan = Plan(1500, 128, warmup_cosine(0.1, 60, 1500, floor=0.01), _unscaled_at_900)
    clock = Clock(seed=40)
    steps = train(model, optimizer, training, plan, rng)
    with EventFile(out, clock.now_s, pid=7745) as events:
        clock.start()
        log_scalars(events, clock, steps, Evaluation(model, validation, every=50), log_every=2)


def overfit(out: Path) -> None:
    """240 digits of which a quarter have a random label, no regularisation, far too many epochs."""
    rng = np.random.default_rng(5)
    training, validation = digits(rng, 240, wrong_labels=0.25)
    model, optimizer = Mlp.create(rng, (64, 128, 10), cross_entropy), AdamW()
    plan = Plan(3000, 24, warmup_linear(1.2e-3, 60, 3000))
    clock = Clock(seed=50)
    clock.start()
    began_s = clock.now_s
    history: list[dict[str, Any]] = []
    settings = {
        "eval_steps": 50,
        "logging_steps": 10,
        "max_steps": plan.steps,
        "num_train_epochs": 300,
        "save_steps": 1200,
        "train_batch_size": plan.batch,
    }
    for window in chunks(train(model, optimizer, training, plan, rng), 10):
        for _ in window:
            clock.step()
        history.append(_train_row(window))
        if window[-1].step % 50 == 0:
            row = _evaluation_row(window[-1], *model.evaluate(validation.x, validation.targets))
            history.append({**row, "eval_runtime": round(clock.evaluate(), 4)})
        if window[-1].step % 1200 == 0:
            write_trainer_state(out / f"checkpoint-{window[-1].step}", history, settings)
    final = {"epoch": 300.0, "step": plan.steps, "train_runtime": round(clock.now_s - began_s, 4)}
    history.append({**final, "train_loss": mean(row["loss"] for row in history if "loss" in row)})
    write_trainer_state(out, history, settings)


def _train_row(window: list[Step]) -> dict[str, float]:
    last = window[-1]
    return {
        "epoch": last.epoch,
        "grad_norm": short(last.grad_norm),
        "learning_rate": short(last.lr),
        "loss": round(mean(s.loss for s in window), 4),
        "step": last.step,
    }


def _evaluation_row(at: Step, loss: float, accuracy: float) -> dict[str, float]:
    return {"epoch": at.epoch, "eval_accuracy": short(accuracy), "eval_loss": short(loss), "step": at.step}


def lr_too_high(out: Path) -> None:
    """Regression with a learning rate whose warm-up leads past what the loss surface bears."""
    rng = np.random.default_rng(6)
    training, validation = diabetes(rng)
    model = Mlp.create(rng, (10, 16, 1), squared_error)
    plan = Plan(660, 32, lambda step: 0.7 * min(1.0, step / 600))
    rows: list[dict[str, float]] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for s in train(model, Sgd(), training, plan, rng):
            place = {"epoch": (s.step - 1) // 11, "step": s.step - 1}
            rows.append({**place, "lr-SGD": s.lr, "train_loss": s.loss, "grad_norm": s.grad_norm})
            if s.step % 11 == 0:
                rows.append({**place, "val_loss": model.evaluate(validation.x, validation.targets)[0]})
    columns = ["epoch", "grad_norm", "lr-SGD", "step", "train_loss", "val_loss"]
    write_csv(out / "lightning_logs" / "version_0" / "metrics.csv", columns, rows)


def lr_ended_early(out: Path) -> None:
    """Digits; the cosine was planned for 60 epochs, the training lasts 300."""
    rng = np.random.default_rng(7)
    training, validation = digits(rng, 1280)
    model = Mlp.create(rng, (64, HIDDEN, 10), cross_entropy)
    per_epoch = 1280 // 64
    plan = Plan(300 * per_epoch, 64, warmup_cosine(0.02, 20, 60 * per_epoch, floor=2e-6), _add_noise)
    rows = []
    for window in chunks(train(model, Sgd(), training, plan, rng), per_epoch):
        val_loss, val_accuracy = model.evaluate(validation.x, validation.targets)
        rows.append(
            {
                "epoch": window[-1].step // per_epoch - 1,
                "accuracy": mean(s.accuracy for s in window),
                "learning_rate": window[-1].lr,
                "loss": mean(s.loss for s in window),
                "val_accuracy": val_accuracy,
                "val_loss": val_loss,
            }
        )
    write_csv(out / "training.csv", list(rows[0]), rows)


def batch_of_two(out: Path) -> None:
    """Regression with two rows a batch: the training loss is mostly noise, the validation loss is not."""
    rng = np.random.default_rng(8)
    training, validation = diabetes(rng)
    model = Mlp.create(rng, (10, 16, 1), squared_error)
    plan = Plan(2400, 2, warmup_linear(2e-3, 60, 2400))
    rows: list[dict[str, float]] = []
    for s in train(model, Sgd(), training, plan, rng):
        row = {"step": s.step, "train_loss": s.loss, "lr": s.lr}
        if s.step % 60 == 0:
            row["val_loss"] = model.evaluate(validation.x, validation.targets)[0]
        if s.step % 2 == 0:
            rows.append(row)
    write_csv(out / "log.csv", ["step", "train_loss", "val_loss", "lr"], rows)


def _add_noise(x: Array, _: int, rng: np.random.Generator) -> Array:
    return x + rng.normal(0, 0.15, x.shape).astype(np.float32)


def _unscaled_at_900(x: Array, step: int, _: np.random.Generator) -> Array:
    return x * np.float32(16) if 900 <= step < 904 else x


RUNS = {
    "healthy": healthy,
    "overfit": overfit,
    "lr-too-high": lr_too_high,
    "killed-and-resumed": killed_and_resumed,
    "lr-ended-early": lr_ended_early,
    "bad-shard": bad_shard,
    "batch-of-two": batch_of_two,
}


def main(out: Path) -> None:
    """Write every run into a folder of its name."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # comes with scikit-learn

    with threadpool_limits(1):
        for name, run in RUNS.items():
            run(out / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
