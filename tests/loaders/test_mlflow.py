"""MLflow's file store and its SQLite backend."""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.formats.curves.mlflow_sqlite import CHUNK_ROWS
from tests.support.loading import CORPUS, claimed, needs_corpus, write

RUN = "0123456789abcdef0123456789abcdef"
START = 1_700_000_000_000
META = f"""artifact_uri: file:///home/ann/mlruns/0/{RUN}/artifacts
end_time: {START + 60_000}
experiment_id: '0'
lifecycle_stage: active
run_id: {RUN}
run_name: 'bold: ant'
start_time: {START}
status: 3
user_id: ann
"""


def store(root: Path, run: str = RUN, meta: str = META, **files: str) -> Path:
    """A run of the file store; names of files with ``__`` for ``/``."""
    folder = root / "mlruns" / "0" / run
    write(folder, meta.replace(RUN, run), "meta.yaml")
    for name, text in files.items():
        write(folder, text, name.replace("__", "/"))
    return folder


def points(values: Sequence[float | str], more: str = "") -> str:
    return "".join(f"{START + 1000 * i} {v} {i}{more}\n" for i, v in enumerate(values))


def runs(root: Path) -> dict[str, dict[str, Any]]:
    return {r["run"]: r for r in inventory(collect([root]))["runs"]}


def metric(run: dict[str, Any], tag: str) -> dict[str, Any]:
    (found,) = [m for m in run["metrics"] if m["tag"] == tag]
    return found


# -- the file store ------------------------------------------------------------------------------------


def test_a_run_is_its_folder(tmp_path: Path) -> None:
    store(
        tmp_path,
        **{
            "metrics__train__loss": points([2.0, "nan", 1.5]),
            "metrics__eval loss": points([3.0]),
            "params__lr": "0.1",
            "params__model": "/home/ann/models/resnet50",
            "tags__mlflow.parentRunId": "f6c9",
            "tags__mlflow.user": "ann",
            "tags__mlflow.source.name": "/home/ann/train.py",
        },
    )
    (run,) = runs(tmp_path).values()
    assert (run["run"], run["grouped_by"], run["outcome"]) == (f"mlruns/0/{RUN}", "mlflow layout", "finished")
    assert metric(run, "train/loss") | {"last": None} == {
        "rank": None, "tag": "train/loss", "metric": "loss", "split": "train", "points": 3, "superseded": 0,
        "nan": 1, "inf": 0, "first_step": 0, "last_step": 2, "last": None, "min": 1.5, "max": 2.0,
    }  # fmt: skip
    assert metric(run, "eval loss")["points"] == 1
    assert run["params"] == {
        "lr": "0.1", "model": "resnet50", "mlflow.parentRunId": "f6c9", "mlflow.runName": "bold: ant",
    }  # fmt: skip
    assert run["marks"] == {"start": 1, "finish": 1}
    assert "ann" not in str(run["params"]) + str(run["marks"])
    skipped = [s["path"].rpartition("/")[2] for s in run["sources"] if s["status"] == "skipped"]
    assert sorted(skipped) == ["mlflow.source.name", "mlflow.user"]


def test_times_of_metrics_and_marks(tmp_path: Path) -> None:
    store(tmp_path, metrics__loss=points([2.0, 1.5]))
    tables = collect([tmp_path]).tables
    assert tables.metrics["wall_ns"].to_list() == [START * 10**6, (START + 1000) * 10**6]
    assert tables.marks.select("kind", "t_ns").rows() == [
        ("start", START * 10**6),
        ("finish", (START + 60_000) * 10**6),
    ]


@pytest.mark.parametrize(
    ("status", "kinds"), [("1", set()), ("4", {"crash"}), ("5", {"killed"}), ("9", set())]
)
def test_states(tmp_path: Path, status: str, kinds: set[str]) -> None:
    store(tmp_path, meta=META.replace("status: 3", f"status: {status}"), metrics__loss=points([1.0]))
    (run,) = runs(tmp_path).values()
    assert run["marks"].keys() - {"start"} == kinds
    assert run["outcome"] != "finished"


def test_b42_a_cut_metric_hides_nothing(tmp_path: Path) -> None:
    store(
        tmp_path,
        metrics__train_loss=points([2.0, 1.5, 1.2]),
        metrics__min_val_loss="",
        metrics__val_loss=f"{START} 2.1 0\n17000000",
    )
    (run,) = runs(tmp_path).values()
    assert metric(run, "train_loss")["points"] == 3
    assert metric(run, "val_loss")["points"] == 1
    told = {s["path"].rpartition("/")[2]: (s["status"], s["damaged"], s["note"]) for s in run["sources"]}
    path = f"mlruns/0/{RUN}/metrics"
    assert told["min_val_loss"] == ("empty", 0, f"{path}/min_val_loss: the file holds no value")
    note = f"{path}/val_loss: the file ends in the middle of line 2, which was left out"
    assert told["val_loss"] == ("partial", 1, note)


def test_a_last_line_cut_within_its_value_is_no_old_line_without_step(tmp_path: Path) -> None:
    store(tmp_path, metrics__loss=points([2.0]) + f"{START + 1000} 0.1")
    (run,) = runs(tmp_path).values()
    assert metric(run, "loss")["points"] == 1


def test_damaged_lines_cost_themselves(tmp_path: Path) -> None:
    text = points([2.0, 1.5, 1.2]).splitlines()
    text[1] = text[1].replace(" 1.5 ", " 1.5x ")
    store(tmp_path, metrics__loss="\n".join([*text, "", "oops", f"{START} inf 7"]) + "\n")
    (run,) = runs(tmp_path).values()
    assert metric(run, "loss") | {"min": 1.2, "max": 2.0} == metric(run, "loss")
    assert (metric(run, "loss")["points"], metric(run, "loss")["inf"]) == (3, 1)
    (source,) = [s for s in run["sources"] if s["path"].endswith("loss")]
    assert source["damaged"] == 2
    assert source["note"].endswith("2 lines that are no 'timestamp value step' left out: lines 2, 5")


def test_lines_of_two_columns_in_seconds(tmp_path: Path) -> None:
    """MLflow before 1.0."""
    store(tmp_path, metrics__loss="".join(f"{1_540_000_000 + i} {v}\n" for i, v in enumerate([2.0, 1.5])))
    metrics = collect([tmp_path]).tables.metrics
    assert metrics.select("step", "value").rows() == [(None, 2.0), (None, 1.5)]
    assert metrics["wall_ns"].to_list() == [1_540_000_000 * 10**9, 1_540_000_001 * 10**9]


def test_metrics_of_a_logged_model_are_not_counted_again(tmp_path: Path) -> None:
    store(tmp_path, metrics__loss=points([2.0, "nan", 1.2]), metrics__acc=points([0.5]))
    model = tmp_path / "mlruns/0/models/m-fedcba9876543210fedcba9876543210"
    write(model, f"model_id: {model.name}\nsource_run_id: {RUN}\n", "meta.yaml")
    more = f" {RUN}"
    write(model, points([2.0, "nan"], more), "metrics/loss")
    write(model, points([0.5, 0.75], more), "metrics/acc")
    found = runs(tmp_path)
    assert list(found) == [f"mlruns/0/{RUN}"]
    run = found[f"mlruns/0/{RUN}"]
    assert (metric(run, "loss")["points"], metric(run, "loss")["superseded"]) == (3, 0)
    assert metric(run, "acc")["points"] == 2, "the value that the run's own file lacks is kept"
    states = {s["path"].removeprefix("mlruns/0/"): s["status"] for s in run["sources"]}
    assert states[f"models/{model.name}/metrics/loss"] == "skipped"
    assert states[f"models/{model.name}/metrics/acc"] == "read"


def test_tags_of_a_logged_model_make_no_run_of_their_own(tmp_path: Path) -> None:
    store(tmp_path, metrics__loss=points([2.0]), params__optimizer__name="adam")
    model = tmp_path / "mlruns/0/models/m-fedcba9876543210fedcba9876543210"
    write(model, f"model_id: {model.name}\nsource_run_id: {RUN}\n", "meta.yaml")
    write(model, "LOCAL", "tags/mlflow.source.type")
    found = runs(tmp_path)
    assert list(found) == [f"mlruns/0/{RUN}"]
    assert found[f"mlruns/0/{RUN}"]["params"]["optimizer/name"] == "adam", "a parameter keeps its name"


def test_one_file_alone_knows_its_name(tmp_path: Path) -> None:
    folder = store(tmp_path, metrics__train__loss=points([2.0]))
    (run,) = runs(folder / "metrics" / "train" / "loss").values()
    assert metric(run, "train/loss")["points"] == 1


def test_folders_called_metrics_elsewhere_are_not_mlflow(tmp_path: Path) -> None:
    assert claimed(write(tmp_path, points([2.0]), "metrics/loss")) is None
    assert claimed(write(tmp_path, "name: x\nartifact_location: y\n", "mlruns/0/meta.yaml")) is None


def test_runs_that_repeat_step_zero_have_no_step(tmp_path: Path) -> None:
    store(tmp_path, metrics__loss="".join(f"{START + i} {v} 0\n" for i, v in enumerate([3.0, 2.0, 1.0])))
    (run,) = runs(tmp_path).values()
    assert (metric(run, "loss")["points"], metric(run, "loss")["last_step"], metric(run, "loss")["last"]) == (
        3,
        None,
        1.0,
    )


@pytest.mark.corpus
@needs_corpus
def test_a_real_store() -> None:
    root = CORPUS / "curves/mlflow/rl-nested-metric-dirs"
    (run,) = runs(root).values()
    assert run["outcome"] == "finished"
    assert metric(run, "eval/mean_reward") | {"points": 6, "last": -200.721436, "last_step": 21600} == metric(
        run, "eval/mean_reward"
    )
    assert metric(run, "time/total timesteps")["last"] == 21600.0
    assert run["params"].keys() >= {"lr", "batch_size"}
    assert "jbauer" not in str(run)


# -- the database --------------------------------------------------------------------------------------

SCHEMA = """
CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name VARCHAR(256));
CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), status VARCHAR(9), start_time BIGINT,
  end_time BIGINT, lifecycle_stage VARCHAR(20), user_id VARCHAR(256), artifact_uri VARCHAR(200));
CREATE TABLE metrics (key VARCHAR(250), value DOUBLE, timestamp BIGINT, run_uuid VARCHAR(32), step BIGINT DEFAULT 0,
  is_nan BOOLEAN DEFAULT 0);
CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
CREATE TABLE tags (key VARCHAR(250), value VARCHAR(5000), run_uuid VARCHAR(32));
"""
A, B = "a" * 32, "b" * 32


def database(path: Path, rows: Sequence[Sequence[Any]], *, wal: bool = False) -> Path:
    """Two runs of one name, ``sweep``, and the given rows of ``metrics``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(SCHEMA)
    connection.executemany(
        "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?)",
        [
            (A, "sweep", "FINISHED", START, START + 9000, "active", "ann", "/home/ann/x"),
            (B, "sweep", "RUNNING", START, None, "active", "ann", "/home/ann/x"),
        ],
    )
    connection.executemany("INSERT INTO params VALUES (?,?,?)", [("lr", "0.1", A), ("lr", "0.2", B)])
    connection.executemany(
        "INSERT INTO tags VALUES (?,?,?)", [("mlflow.parentRunId", A, B), ("mlflow.user", "ann", A)]
    )
    connection.executemany("INSERT INTO metrics VALUES (?,?,?,?,?,?)", rows)
    connection.commit()
    if wal:
        for end in ("", "-wal", "-shm"):
            shutil.copyfile(f"{path}{end}", f"{path}.copy{end}")
        connection.close()
        for end in ("", "-wal", "-shm"):
            Path(f"{path}.copy{end}").replace(f"{path}{end}")
    else:
        connection.close()
    return path


def row(run: str, step: int, value: object, key: str = "loss", is_nan: int = 0) -> tuple[object, ...]:
    return (key, value, START + 1000 * step, run, step, is_nan)


def test_every_run_of_a_database_is_a_run(tmp_path: Path) -> None:
    rows = [row(r, s, x - s / 10) for s in range(5) for r, x in ((A, 2.0), (B, 3.0))]
    rows += [
        row(A, 5, 0, key="grad", is_nan=1),
        row(A, 6, sys.float_info.max, key="grad"),
        row(B, 0, 0.5, key="val/acc"),
    ]
    database(tmp_path / "exp" / "mlflow.db", rows)
    found = runs(tmp_path)
    assert list(found) == ["exp/sweep", "exp/sweep bbbbbbbb"]
    first, second = found.values()
    assert first["grouped_by"] == "named inside the file"
    assert metric(first, "loss") | {"points": 5, "min": 1.6, "max": 2.0} == metric(first, "loss")
    assert metric(first, "grad") | {"points": 2, "nan": 1, "inf": 1} == metric(first, "grad")
    assert metric(second, "loss")["max"] == 3.0
    assert (first["outcome"], first["marks"]) == ("finished", {"start": 1, "finish": 1})
    assert second["params"] == {"mlflow.runId": B, "lr": "0.2", "mlflow.parentRunId": "sweep"}
    assert "ann" not in str(found)


def test_runs_at_the_root_are_called_by_their_names(tmp_path: Path) -> None:
    path = database(tmp_path / "mlflow.db", [row(A, 1, 0.5)])
    assert list(runs(tmp_path)) == list(runs(path)) == ["sweep", "sweep bbbbbbbb"]


def test_values_of_a_wrong_type_are_damaged(tmp_path: Path) -> None:
    rows = [row(A, 0, 1.0), row(A, 1, "much"), row(A, 2, b"\0"), row(A, 3, None), row(A, 4, 2.0)]
    rows += [("loss", 3.0, "late", A, "last", 0), row("c" * 32, 1, 1.0)]
    database(tmp_path / "mlflow.db", rows)
    first, second = runs(tmp_path).values()
    assert (metric(first, "loss")["points"], metric(first, "loss")["last"]) == (3, 3.0)
    (source,) = first["sources"]
    assert (source["status"], source["damaged"]) == ("partial", 3)
    assert source["note"] == (
        "metric rows whose value is no number left out; "
        "1 metric rows of runs that are not in the database left out"
    )
    assert second["sources"][0]["damaged"] == 0, "lost rows count once"


def test_rows_in_a_write_ahead_log_are_read_and_nothing_is_touched(tmp_path: Path) -> None:
    path = database(tmp_path / "x?#%20.db", [row(A, s, 1.0) for s in range(3)], wal=True)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert len(before[f"{path.name}-wal"]) > 0
    first, _ = runs(path).values()
    assert metric(first, "loss")["points"] == 3
    assert first["sources"][0]["note"] == f"read with the changes in {path.name}-wal, from a copy"
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_many_rows_come_in_chunks(tmp_path: Path) -> None:
    n = CHUNK_ROWS + 10
    database(tmp_path / "mlflow.db", [row(A, s, float(s)) for s in range(n)])
    first, _ = runs(tmp_path).values()
    assert metric(first, "loss") | {"points": n, "last": n - 1.0, "last_step": n - 1} == metric(first, "loss")


def test_a_database_of_before_steps(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMA.replace(", step BIGINT DEFAULT 0,\n  is_nan BOOLEAN DEFAULT 0", ""))
        connection.execute(
            "INSERT INTO runs VALUES (?,?,?,?,?,?,?,?)", (A, "", "FAILED", START, START, "deleted", "", "")
        )
        connection.executemany(
            "INSERT INTO metrics VALUES (?,?,?,?)", [("loss", v, START, A) for v in (2.0, 1.0)]
        )
    connection.close()
    (run,) = runs(tmp_path).values()
    assert run["run"] == A
    assert (metric(run, "loss")["points"], metric(run, "loss")["last_step"]) == (2, None)
    assert (run["marks"], run["sources"][0]["note"]) == ({"start": 1, "crash": 1}, "deleted in MLflow")


def test_other_databases_are_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE runs (id)")
    connection.close()
    assert claimed(tmp_path / "x.db") is None
    assert claimed(write(tmp_path, b"SQLite format 3\0" + bytes(200), "y.db")) is None


def test_mutated_databases_raise_nothing_and_say_so(tmp_path: Path) -> None:
    """Whatever SQLite itself finds wrong is told with every run."""
    rng = random.Random(3)
    clean = database(tmp_path / "mlflow.db", [row(A, s, 1.0 + s) for s in range(300)]).read_bytes()
    broken = 0
    for _ in range(80):
        data = bytearray(clean)
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(100, len(data))] = rng.randrange(256)
        path = write(tmp_path / "mutant", bytes(data), "mlflow.db")
        found = runs(path)
        if found and not sound(path):
            broken += 1
            sources = [r["sources"][0] for r in found.values()]
            assert all("SQLite finds the file damaged" in s["note"] for s in sources)
            assert sum(s["damaged"] for s in sources) >= 1
    assert broken >= 10


def sound(path: Path) -> bool:
    """What the library says of the file, asked without our reader."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == (b"ok",))
        except (sqlite3.Error, ValueError):
            return False


# -- the machine -------------------------------------------------------------------------------------

SYSTEM = {
    "system/gpu_1_utilization_percentage": (97.5, (1, "", "gpu_util_pct", 97.5)),
    "system/gpu_1_memory_usage_megabytes": (1500.0, (1, "", "mem_used_bytes", 1.5e9)),
    "system/node-2/cpu_utilization_percentage": (12.0, (None, "node-2", "cpu_pct", 12.0)),
    "system/network_receive_megabytes": (2.5, (None, "", "net_received_bytes", 2.5e6)),
}


def samples(root: Path) -> set[tuple[object, ...]]:
    found = collect([root]).tables.samples
    columns = ("device", "host", "counter", "value")
    return set(found.with_columns(pl.col("host", "counter").cast(pl.String)).select(columns).rows())


def tags(root: Path) -> set[str]:
    return {m["tag"] for run in runs(root).values() for m in run["metrics"]}


def test_metrics_of_the_machine_are_samples_of_the_file_store(tmp_path: Path) -> None:
    machine = {f"metrics__{name.replace('/', '__')}": points([value]) for name, (value, _) in SYSTEM.items()}
    root = store(tmp_path, metrics__loss=points([0.5]), metrics__system__our_own=points([3]), **machine)
    assert samples(root) == {told for _, told in SYSTEM.values()}
    assert tags(root) == {"loss", "system/our_own"}


def test_metrics_of_the_machine_are_samples_of_the_database(tmp_path: Path) -> None:
    rows = [row(A, 1, 0.5), *(row(A, 7, value, key=name) for name, (value, _) in SYSTEM.items())]
    root = database(tmp_path / "mlflow.db", rows)
    assert samples(root) == {told for _, told in SYSTEM.values()}
    assert tags(root) == {"loss"}
