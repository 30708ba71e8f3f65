"""DVCLive: nested metrics, some sparse or with a time, and a second process that goes on. Argument: ``first``, ``again``."""

from __future__ import annotations

import sys

import numpy as np
from dvclive import Live

NAN, INF = float("nan"), float("inf")

if sys.argv[1] == "first":
    with Live("live", save_dvc_exp=False, dvcyaml=None) as live:
        optimizer = {"name": "adam", "betas": [0.9, 0.99]}
        live.log_params({"lr": 0.1, "optimizer": optimizer, "größe": "λ", "amp": True})
        for step, loss in enumerate([1.0, 0.5, NAN, INF, 0.125]):
            live.log_metric("loss", loss)
            live.log_metric("train/loss/a", step * 0.5)
            live.log_metric("val/größe λ", 1 / 3)
            if step % 2:
                live.log_metric("sparse", step, timestamp=True)
            live.next_step()
        live.log_metric("final", 3, plot=False)
        live.log_image("image.png", np.zeros((2, 2, 3), np.uint8))
        live.log_sklearn_plot("confusion_matrix", [0, 1, 1], [0, 1, 0])
        live.summary["extra"] = {"deep": {"x": 1}}
else:
    with Live("live", resume=True, save_dvc_exp=False, dvcyaml=None) as live:
        for loss in (9.0, 10.0):
            live.log_metric("loss", loss)
            live.next_step()
