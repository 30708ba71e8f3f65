"""A W&B run without a network. Argument: ``finished``, ``failed`` (an exception), ``killed`` (SIGKILL)."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import wandb

NAN, INF = float("nan"), float("inf")

settings = wandb.Settings(x_stats_sampling_interval=0.25)
config = {
    "lr": 0.1,
    "optimizer": {"name": "adam", "betas": [0.9, 0.999]},
    "größe": "λ",
    "none": None,
    "amp": True,
}
run = wandb.init(
    project="projekt ü",
    name="a run",
    id="abc123",
    group="g",
    job_type="train",
    config=config,
    settings=settings,
)
print("first line")
print("second line ü")
for step, loss in enumerate([1.0, 0.5, NAN, INF, -INF, 0.125]):
    run.log(
        {
            "train/loss": loss,
            "nested": {"a": {"b": step * 2}, "c": 1.5},
            "Größe λ": 0.1 * step,
            "word": "said",
            "flag": True,
            "single": np.float32(0.1),
            "epoch": step // 2,
        }
    )
run.log({"given": wandb.Histogram(np_histogram=(np.array([1, 2, 3]), np.array([0.0, 1.0, 2.0, 4.0])))})
run.log({"counted": wandb.Histogram([0.0, 1.0, 1.0, 3.0], num_bins=4)})
table = wandb.Table(columns=["a", "b"], data=[[1, 2], [3, 4]])
run.log({"image": wandb.Image(np.zeros((2, 2, 3), np.uint8)), "table": table, "loss": 0.25})
run.log({"jump": 1.0}, step=20)
run.log({"beside": 2.0}, step=20)
run.log({"jump": 3.0}, step=25)
run.config.update({"late": 5})
run.summary["final"] = 42
run.summary["deep"] = {"x": {"y": 1}}
time.sleep(1.0)  # some samples of the system
if sys.argv[1] == "failed":
    raise RuntimeError("on purpose")
if sys.argv[1] == "killed":
    for i in range(2000):
        run.log({"many": i / 4})
    time.sleep(2.0)  # the client writes behind, and nothing at all of a short run that is killed
    os.kill(os.getpid(), signal.SIGKILL)
run.finish()
