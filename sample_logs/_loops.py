"""What lies between a training and its log: intervals, evaluations, checkpoints, a sudden end."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from _clock import Clock
from _models import AdamW, Mlp, Split, Step
from _writers import EventFile, Killed


@dataclass(frozen=True)
class Evaluation:
    """A model to be evaluated on a split after every so many steps."""

    model: Mlp
    split: Split
    every: int


def log_scalars(
    events: EventFile, clock: Clock, steps: Iterable[Step], evaluation: Evaluation, log_every: int
) -> None:
    """Take the steps and log means over each interval, and the evaluations between them."""
    for window in chunks(steps, log_every):
        times = [clock.step() for _ in window]
        last = window[-1]
        scalars = {
            "loss/train": mean(s.loss for s in window),
            "accuracy/train": mean(s.accuracy for s in window),
            "lr": last.lr,
            "grad_norm": mean(s.grad_norm for s in window),
            "step_time": mean(step_s for step_s, _ in times),
            "data_time": mean(data_s for _, data_s in times),
        }
        events.scalars(clock.now_s, last.step, scalars)
        if last.step % evaluation.every == 0:
            loss, accuracy = evaluation.model.evaluate(evaluation.split.x, evaluation.split.targets)
            clock.evaluate()
            events.scalars(clock.now_s, last.step, {"loss/val": loss, "accuracy/val": accuracy})


def chunks(steps: Iterable[Step], size: int) -> Iterator[list[Step]]:
    """The steps in lists that end where the step is a multiple of ``size``."""
    window: list[Step] = []
    for step in steps:
        window.append(step)
        if step.step % size == 0:
            yield window
            window = []


def checkpointed(steps: Iterable[Step], saved: list[tuple[int, Mlp, AdamW]], every: int) -> Iterator[Step]:
    """The same steps; every so many of them, a copy of model and optimizer is appended to ``saved``."""
    _, model, optimizer = saved[0]
    for step in steps:
        if step.step % every == 0:
            saved.append((step.step, copy.deepcopy(model), copy.deepcopy(optimizer)))
        yield step


def killed_at(last: int, steps: Iterable[Step]) -> Iterator[Step]:
    """The same steps up to ``last``; then the process dies."""
    for step in steps:
        yield step
        if step.step == last:
            raise Killed


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean."""
    return float(np.mean(list(values)))
