"""A multi-layer perceptron in NumPy that is trained for real: forward, backward, optimizer, schedule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Criterion = Callable[[Array, Array], tuple[float, Array]]
"""Outputs and targets, both (batch, units), to the mean loss and its gradient by the outputs."""

Schedule = Callable[[int], float]
Transform = Callable[[Array, int, np.random.Generator], Array]


def cross_entropy(outputs: Array, targets: Array) -> tuple[float, Array]:
    """Softmax cross-entropy in nats against a distribution over classes a row."""
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-(targets * log_p).sum(axis=1).mean()), (np.exp(log_p) - targets) / len(outputs)


def squared_error(outputs: Array, targets: Array) -> tuple[float, Array]:
    """Mean squared error."""
    residual = outputs - targets
    return float(np.square(residual).mean()), 2 * residual / residual.size


@dataclass
class Mlp:
    """Hidden layers with tanh, a linear output. ``parameters`` is weight, bias, weight, bias, ..."""

    parameters: list[Array]
    criterion: Criterion

    @classmethod
    def create(cls, rng: np.random.Generator, sizes: tuple[int, ...], criterion: Criterion) -> Mlp:
        """Float32 weights with variance 1 / fan-in, zero biases."""
        parameters: list[Array] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            weights = rng.normal(0, 1 / math.sqrt(fan_in), (fan_in, fan_out))
            parameters += [weights.astype(np.float32), np.zeros(fan_out, np.float32)]
        return cls(parameters, criterion)

    def activations(self, x: Array) -> list[Array]:
        """Input, every hidden layer, output."""
        layers = [x]
        for index in range(0, len(self.parameters), 2):
            z = layers[-1] @ self.parameters[index] + self.parameters[index + 1]
            layers.append(z if index + 2 == len(self.parameters) else np.tanh(z))
        return layers

    def backward(self, x: Array, targets: Array) -> tuple[float, Array, list[Array]]:
        """Loss, outputs, and the gradient by each of ``parameters``."""
        layers = self.activations(x)
        loss, delta = self.criterion(layers[-1], targets)
        gradients: list[Array] = []
        for index in range(len(self.parameters) - 2, -1, -2):
            below = layers[index // 2]
            gradients[:0] = [below.T @ delta, delta.sum(axis=0)]
            if index > 0:
                delta = (delta @ self.parameters[index].T) * (1 - below**2)
        return loss, layers[-1], gradients

    def evaluate(self, x: Array, targets: Array) -> tuple[float, float]:
        """Loss and accuracy over all rows at once."""
        outputs = self.activations(x)[-1]
        return self.criterion(outputs, targets)[0], accuracy(outputs, targets)


def accuracy(outputs: Array, targets: Array) -> float:
    """Share of rows whose largest output is the target class; NaN where there are no classes."""
    if targets.shape[1] == 1:
        return math.nan
    return float((outputs.argmax(axis=1) == targets.argmax(axis=1)).mean())


@dataclass
class Sgd:
    """Stochastic gradient descent with momentum."""

    momentum: float = 0.0
    velocity: list[Array] = field(default_factory=list)

    def update(self, parameters: list[Array], gradients: list[Array], lr: float) -> None:
        """Change the parameters in place."""
        self.velocity = self.velocity or [np.zeros_like(p) for p in parameters]
        for parameter, velocity, gradient in zip(parameters, self.velocity, gradients, strict=True):
            velocity[:] = self.momentum * velocity + gradient
            parameter[:] = parameter - lr * velocity


@dataclass
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    weight_decay: float = 0.0
    step: int = 0
    first: list[Array] = field(default_factory=list)
    second: list[Array] = field(default_factory=list)

    def update(self, parameters: list[Array], gradients: list[Array], lr: float) -> None:
        """Change the parameters in place."""
        self.first = self.first or [np.zeros_like(p) for p in parameters]
        self.second = self.second or [np.zeros_like(p) for p in parameters]
        self.step += 1
        scale = lr * math.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        moments = zip(parameters, self.first, self.second, gradients, strict=True)
        for parameter, first, second, gradient in moments:
            first[:] = 0.9 * first + 0.1 * gradient
            second[:] = 0.999 * second + 0.001 * gradient**2
            decayed = (1 - lr * self.weight_decay) * parameter
            parameter[:] = decayed - scale * first / (np.sqrt(second) + 1e-8)


def warmup_cosine(peak: float, warmup: int, end: int, floor: float = 0.0) -> Schedule:
    """Rise linearly to ``peak`` over ``warmup`` steps, fall along a half cosine to ``floor`` at ``end``."""

    def lr(step: int) -> float:
        if step < warmup:
            return peak * step / warmup
        done = min(1.0, (step - warmup) / (end - warmup))
        return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2

    return lr


def warmup_linear(peak: float, warmup: int, end: int) -> Schedule:
    """Rise linearly to ``peak`` over ``warmup`` steps, fall linearly to zero at ``end``."""
    return lambda step: peak * min(step / warmup, (end - step) / (end - warmup))


@dataclass(frozen=True)
class Split:
    """Rows of inputs and of targets (class distributions, or one column of numbers)."""

    x: Array
    targets: Array


@dataclass(frozen=True)
class Plan:
    """What a training does besides its model: how many steps of what size with which learning rate."""

    steps: int
    batch: int
    schedule: Schedule
    transform: Transform | None = None
    """Changes the inputs of a batch on their way to the model: augmentation, or damage."""


@dataclass(frozen=True)
class Step:
    """What one optimizer step saw; ``step`` counts from 1."""

    step: int
    epoch: float
    lr: float
    loss: float
    accuracy: float
    grad_norm: float


def train(
    model: Mlp, optimizer: Sgd | AdamW, data: Split, plan: Plan, rng: np.random.Generator, start: int = 0
) -> Iterator[Step]:
    """Train in place, one optimizer step an item; stop iterating and the training has stopped.

    ``start`` is the step of the checkpoint that model and optimizer were restored from. The last
    incomplete batch of an epoch is dropped.
    """
    per_epoch = len(data.x) // plan.batch
    rows: list[NDArray[np.intp]] = []
    for step in range(start + 1, plan.steps + 1):
        rows = rows or np.array_split(rng.permutation(len(data.x))[: per_epoch * plan.batch], per_epoch)
        batch = rows.pop()
        x = data.x[batch] if plan.transform is None else plan.transform(data.x[batch], step, rng)
        loss, outputs, gradients = model.backward(x, data.targets[batch])
        lr = plan.schedule(step)
        optimizer.update(model.parameters, gradients, lr)
        norm = math.sqrt(sum(float(np.square(g).sum()) for g in gradients))
        yield Step(step, step / per_epoch, lr, loss, accuracy(outputs, data.targets[batch]), norm)
