"""MLflow: nested, continued, failed, killed and deleted runs and a logged model. Argument: ``files`` or ``sqlite``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # version 3.13 and later ask for it

import mlflow
from mlflow.entities import Metric
from sklearn.linear_model import LinearRegression

NAN, INF = float("nan"), float("inf")
HERE = Path.cwd()

if sys.argv[1] == "files":
    mlflow.set_tracking_uri((HERE / "mlruns").as_uri())
    experiment = mlflow.create_experiment("experiment ü")
else:
    mlflow.set_tracking_uri(f"sqlite:///{HERE / 'mlflow.db'}")
    experiment = mlflow.create_experiment("experiment ü", artifact_location=(HERE / "artifacts").as_uri())
mlflow.set_experiment(experiment_id=experiment)
client = mlflow.MlflowClient()
mlflow.set_system_metrics_sampling_interval(0.25)

with mlflow.start_run(run_name="parent ü", tags={"team": "x"}, log_system_metrics=True) as run:
    mlflow.log_params({"lr": 0.1, "optimizer/name": "adam", "layers": [1, 2], "größe": 'λ: "q"', "empty": ""})
    losses = enumerate([1.0, 0.5, NAN, INF, -INF, 0.125])
    batch = [Metric("train/loss", value, 1700000000123 + step * 1000, step) for step, value in losses]
    client.log_batch(run.info.run_id, metrics=batch)
    mlflow.log_metric("plain", 3.0)
    mlflow.log_metric("plain", 4.0)
    mlflow.log_metrics({"val/acc": 0.9, "large": 1e300, "with blank": -1.5}, step=-3)
    mlflow.log_text("hello", "note.txt")
    time.sleep(1.0)  # some samples of the system
    with mlflow.start_run(run_name="child", nested=True):
        mlflow.log_metric("loss", 2.0, step=1)
with mlflow.start_run(run_id=run.info.run_id):
    mlflow.log_metric("train/loss", 0.0625, step=6)
try:
    with mlflow.start_run(run_name="failed"):
        mlflow.log_metric("loss", 1.0, step=0)
        raise RuntimeError("on purpose")
except RuntimeError:
    pass
with mlflow.start_run(run_name="deleted") as run:
    mlflow.log_metric("loss", 1.0)
client.delete_run(run.info.run_id)
mlflow.start_run(run_name="killed")
mlflow.log_metric("loss", 1.0)
mlflow.end_run("KILLED")
mlflow.start_run(run_name="open")
mlflow.log_metric("loss", 1.0)
os.environ["MLFLOW_REQUIREMENTS_INFERENCE_TIMEOUT"] = "1"
with mlflow.start_run(run_name="model", nested=True):
    model = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    logged = mlflow.sklearn.log_model(model, name="line", pip_requirements=[], params={"depth": 3})
    mlflow.log_metric("val/mse", 0.25, step=1, model_id=logged.model_id)
sys.stdout.flush()
os._exit(0)  # leave the run "open" as a process that is gone leaves it
