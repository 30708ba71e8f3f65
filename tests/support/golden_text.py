"""Inputs of the golden case of text logs: what three trainings printed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

STEPS = 40


def loss(i: int) -> float:
    """A smooth descent from 9 to 3."""
    return 3 + 6 * math.exp(-i / 12)


def text_logs(root: Path) -> None:
    """One training out of memory, one that finished, one stopped by an exception of its own."""
    megatron = "".join(
        f" iteration {i:8d}/     100 | elapsed time per iteration (ms): {1200 + i % 3}.5 | learning rate: 1.500E-04 | "
        f"lm loss: {loss(i):.6E} | grad norm: {1 + 2 / i:.3f} | number of nan iterations:   0 |\n"
        + (f"  successfully saved checkpoint at iteration {i:7d} to out\n" if i % 15 == 0 else "")
        for i in range(1, STEPS + 1)
    )
    oom = (
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB "
        "of which 1.12 GiB is free.\n[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42)\n"
    )
    epochs = "".join(
        f"Epoch {i}/20 time=3.{i % 10}s train_loss={loss(2 * i):.4f} val_loss={loss(2 * i) + 0.1:.4f} lr=1.00e-03\n"
        for i in range(1, 21)
    )
    bars = "".join(
        f"Epoch {i}/9\n\r 45/100 [=====>......] - ETA: 3s - loss: {loss(i) + 0.5:.4f}"
        f"\r100/100 [============] - 5s 50ms/step - loss: {loss(i):.4f} - val_loss: {loss(i) + 0.2:.4f}\n"
        for i in range(1, 6)
    )
    error = (
        'Traceback (most recent call last):\n  File "train.py", line 31, in <module>\n    model.fit(data)\n'
        "ValueError: Input 0 is incompatible with the model\n"
    )
    for name, text in {
        "gpt/train.log": megatron + oom,
        "resnet/train.log": epochs,
        "dense/job.out": bars + error,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


WRITERS: tuple[Callable[[Path], None], ...] = (text_logs,)
