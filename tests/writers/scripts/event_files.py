"""Event files by a ``SummaryWriter``: scalars, histograms, texts, hyper-parameters, media, two attempts.

Arguments: ``torch.utils.tensorboard`` or ``tensorboardX``, whose interfaces are the same in what is used here,
and ``first`` or ``again``.
"""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np

NAN, INF = float("nan"), float("inf")
VALUES = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 3.5, -1.0])

SummaryWriter = import_module(sys.argv[1]).SummaryWriter


def scalars() -> None:
    with SummaryWriter("scalars") as writer:
        for i, value in enumerate([1.0, 0.5, NAN, INF, -INF]):
            writer.add_scalar("loss/train", value, i * 10, walltime=1700000000.123456 + i)
        for i in range(3):
            writer.add_scalar("Größe/測試", 0.1 * i, i, walltime=1700000000.5 + i)
        writer.add_scalar("far", 7, 2**40)
        writer.add_scalar("before", -7, -3)
        writer.add_scalar("overflow", 1e300, 1)  # float32 has no such number
        writer.add_scalars("loss", {"train": 1.0, "val": 2.0}, 4)


def described() -> None:
    with SummaryWriter("described") as writer:
        writer.add_scalar("loss", 1.0, 0)
        writer.add_histogram("h/auto", VALUES, 1, bins="auto", walltime=1700000001.25)
        writer.add_histogram("h/edges", VALUES, 2, bins=[-2.0, 0.0, 2.0, 4.0])
        writer.add_histogram("h/tensorflow", VALUES, 3)
        writer.add_histogram("h/constant", np.full(10, 2.5), 4, bins="auto")
        writer.add_histogram_raw(
            "h/raw", min=-1, max=3, num=7, sum=7.5, sum_squares=20.0,
            bucket_limits=[0.0, 1.0, 3.0], bucket_counts=[3, 1, 3], global_step=5,
        )  # fmt: skip
        writer.add_text("note", "first **words** ü", 0)
        writer.add_text("note", "second", 1)
        writer.add_text("other", "once", 1)
        writer.add_image("image", np.zeros((3, 4, 4), np.uint8), 1)
        writer.add_pr_curve("pr", np.array([0, 1, 1]), np.array([0.1, 0.8, 0.4]), 1)
        writer.add_custom_scalars({"all": {"losses": ["Multiline", ["loss"]]}})
        settings = {"lr": 0.1, "batch": 32, "optimizer": "adamw", "amp": True, "ü": 1.5}
        writer.add_hparams(settings, {"hparam/accuracy": 0.875})


def attempt(suffix: str, first: int, last: int, offset: float) -> None:
    """Steps ``first`` to ``last``; ``purge_step`` says that what was written from there on is void."""
    with SummaryWriter("resumed", purge_step=first or None, filename_suffix=suffix) as writer:
        for step in range(first, last):
            writer.add_scalar("loss", step + offset, step, walltime=1700000000.0 + step + 10 * first)


if sys.argv[2] == "first":
    scalars()
    described()
    attempt(".first", 0, 6, 0.0)
else:
    attempt(".again", 3, 8, 100.0)
