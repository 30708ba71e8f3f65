"""Inputs of the golden cases for JSON logs, MLflow, and tables of single tools; see ``golden_inputs``."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

WALL_MS = 1_700_000_000_000
RUN = "0123456789abcdef0123456789abcdef"


def text(path: Path, content: str) -> None:
    """UTF-8 with the line ends as given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())


def lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """An object a line."""
    text(path, "".join(json.dumps(row) + "\n" for row in rows))


def json_logs(root: Path) -> None:
    """One run of each framework that logs JSON: 20 losses from 2 down to 0.4 or so."""
    loss = [round(0.4 + 1.6 * math.exp(-i / 6), 5) for i in range(20)]
    rows: list[dict[str, Any]] = [
        {"data_time": 0.01, "eta_seconds": 9.0, "iteration": 20 * i + 19, "lr": 0.001, "total_loss": v}
        for i, v in enumerate(loss)
    ]
    rows[9] |= {"bbox/AP": 20.5, "bbox/APs": math.nan}
    lines(root / "detectron2" / "metrics.json", rows)
    lines(
        root / "detr" / "log.txt",
        (
            {
                "train_lr": 1e-4,
                "train_loss": v,
                "test_loss": v + 0.25,
                "test_coco_eval_bbox": [i / 40, i / 20],
            }
            for i, v in enumerate(loss)
        ),
    )
    epochs: list[dict[str, Any]] = []
    for i, v in enumerate(loss):
        step = 10 * (i + 1)
        epochs.append(
            {
                "lr": 0.02,
                "data_time": 0.004,
                "loss": v,
                "time": 0.14,
                "epoch": i // 5 + 1,
                "iter": step,
                "step": step,
            }
        )
        if i % 5 == 4:
            epochs.append({"accuracy/top1": 50.0 + i, "data_time": 0.09, "time": 0.12, "step": i // 5 + 1})
    for name in ("20231114_221320.json", "scalars.json"):
        lines(root / "mmengine" / "20231114_221320" / "vis_data" / name, epochs)
    modes: list[dict[str, Any]] = [{"env_info": "sys.platform: linux", "seed": 0, "exp_name": "retinanet.py"}]
    for i, v in enumerate(loss):
        modes.append({"mode": "train", "epoch": i // 5 + 1, "iter": 50 * (i % 5 + 1), "lr": 0.02, "loss": v})
        if i % 5 == 4:
            modes.append({"mode": "val", "epoch": i // 5 + 1, "iter": 625, "lr": 0.02, "bbox_mAP": i / 40})
    lines(root / "mmcv" / "20210101_120000.log.json", modes)
    at = "2022-04-08 18:{:02}:05,372"
    updates = [
        f'[{at.format(i)}][train_inner][INFO] - {{"epoch": 1, "update": {i / 20}, "loss": "{v}", "num_updates": "{200 * i}"}}'
        for i, v in enumerate(loss)
    ]
    begin = (
        f"[{at.format(0)}][fairseq_cli.train][INFO] - {{'_name': None, 'common': {{'log_format': 'json'}}}}"
    )
    text(root / "fairseq" / "hydra_train.log", "\n".join([begin, *updates, ""]))
    steps = [*range(1, 16), *range(11, 21)]
    cut = '{"global_step": 21, "lo'
    text(
        root / "resumed" / "log.jsonl",
        "".join(json.dumps({"global_step": s, "train": {"loss": loss[s - 1]}}) + "\n" for s in steps) + cut,
    )
    text(root / "keras" / "history.json", json.dumps({"loss": loss, "val_loss": [v + 0.1 for v in loss]}))


def mlflow_stores(root: Path) -> None:
    """A run as files, with the metric of its logged model repeated and one cut; two runs in a database."""
    loss = [round(2.0 / (i + 1), 5) for i in range(12)]
    points = [f"{WALL_MS + 1000 * i} {v} {i}" for i, v in enumerate(loss)]
    run = root / "mlruns" / "0" / RUN
    meta = f"end_time: {WALL_MS + 60_000}\nrun_id: {RUN}\nrun_name: bold-ant\nstart_time: {WALL_MS}\nstatus: 3\nuser_id: ann\n"
    text(run / "meta.yaml", meta)
    text(run / "metrics" / "train" / "loss", "\n".join([*points, ""]))
    text(run / "metrics" / "val loss", "\n".join([*points[:3], points[3][:9]]))
    text(run / "params" / "lr", "0.1")
    text(run / "tags" / "mlflow.user", "ann")
    model = root / "mlruns" / "0" / "models" / "m-fedcba9876543210fedcba9876543210"
    text(model / "meta.yaml", f"model_id: {model.name}\nsource_run_id: {RUN}\n")
    text(model / "metrics" / "train" / "loss", f"{points[-1]} {RUN}\n")
    path = root / "database" / "mlflow.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA page_size = 512; CREATE TABLE runs (run_uuid, name, status, start_time, end_time, lifecycle_stage);"
            "CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan);"
            "CREATE TABLE params (key, value, run_uuid); CREATE TABLE tags (key, value, run_uuid);"
        )
        for name, state in (("quick-fox", "FINISHED"), ("slow-fox", "FAILED")):
            connection.execute(
                "INSERT INTO runs VALUES (?,?,?,?,?,?)",
                (name, name, state, WALL_MS, WALL_MS + 60_000, "active"),
            )
            connection.execute("INSERT INTO params VALUES ('lr', '0.1', ?)", (name,))
            connection.executemany(
                "INSERT INTO metrics VALUES ('loss', ?, ?, ?, ?, 0)",
                [(v, WALL_MS + 1000 * i, name, i) for i, v in enumerate(loss)],
            )
        connection.execute("INSERT INTO metrics VALUES ('loss', 'much', ?, 'slow-fox', 12, 0)", (WALL_MS,))
        connection.commit()
    data = bytearray(path.read_bytes())
    data[92:100] = bytes(8)  # which version of the library wrote it
    path.write_bytes(bytes(data))


def tool_tables(root: Path) -> None:
    """DVCLive, Ray, scikit-learn, and the curves that TensorBoard's page saves."""
    loss = [round(2.0 / (i + 1), 5) for i in range(12)]
    plots = root / "dvclive" / "plots" / "metrics"
    text(plots / "train" / "loss.tsv", "step\tloss\n" + "".join(f"{i}\t{v}\n" for i, v in enumerate(loss)))
    text(plots / "epoch.tsv", "step\tepoch\n5\t0\n11\t1\n11\t1\n")
    text(root / "dvclive" / "params.yaml", "optimizer:\n  lr: 0.001\n  betas:\n  - 0.9\n  - 0.99\n")
    text(root / "dvclive" / "metrics.json", json.dumps({"train": {"loss": loss[-1]}, "step": 11}, indent=4))
    trial = root / "tune" / "trial_0"
    results = [
        {
            "loss": v,
            "timesteps_total": math.nan,
            "training_iteration": i + 1,
            "time_this_iter_s": 3.5,
            "done": i == 11,
        }
        for i, v in enumerate(loss)
    ]
    names = [*results[0]]
    text(
        trial / "progress.csv",
        "\n".join([",".join(names), *(",".join(str(r[n]) for n in names) for r in results), ""]),
    )
    lines(trial / "result.json", ({**r, "config": {"lr": 0.1}, "hostname": "node1"} for r in results))
    text(trial / "params.json", json.dumps({"lr": 0.1, "model": {"layers": [64, 64]}}))
    text(
        root / "svc" / "learning_curve.csv",
        "train_sizes,train_score_mean,train_score_std,test_score_mean,test_score_std\n"
        + "".join(f"{100 * (i + 1)},{1 - i / 50},0.01,{0.5 + i / 50},0.02\n" for i in range(6)),
    )
    curve = "Wall time,Step,Value\n" + "".join(
        f"{WALL_MS / 1000 + i},{10 * i},{v}\n" for i, v in enumerate(loss)
    )
    for name in ("run-vit_train-tag-epoch_loss", "run-vit_train-tag-lr", "run-vit_validation-tag-epoch_loss"):
        text(root / "downloads" / f"{name}.csv", curve)


WRITERS: tuple[Callable[[Path], None], ...] = (json_logs, mlflow_stores, tool_tables)
