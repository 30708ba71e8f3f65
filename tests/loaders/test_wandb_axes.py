"""What the metrics of a W&B history are counted on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterrun.loaders.collect import collect
from afterrun.loaders.formats.curves import wandb_parquet
from afterrun.loaders.formats.curves.wandb_binary import Wandb
from afterrun.loaders.formats.curves.wandb_export import WandbHistoryCsv
from afterrun.loaders.formats.curves.wandb_parquet import WandbParquet
from afterrun.loaders.wandb import history as wandbhistory
from afterrun.loaders.wandb.axes import HistoryAxes
from tests.support import wandb
from tests.support.loading import Read, read, write

STEP = "trainer/global_step"
EPOCH = "trainer/epoch"


def load(tmp_path: Path, *payloads: bytes) -> Read:
    return read(Wandb(), wandb.write(tmp_path / "run-abc123.wandb", payloads))


def row(step: int, **values: Any) -> bytes:
    return wandb.history({"_step": step, **values})


def axis(result: Read, tag: str, column: str) -> list[Any]:
    return result.metrics.filter(pl.col("tag") == tag).sort("seq")[column].to_list()


def test_the_trainers_step_in_a_row_is_the_step_of_its_metrics(tmp_path: Path) -> None:
    result = load(tmp_path, *(row(i, **{STEP: 50 * i + 49, "loss": 1.0, "_runtime": i}) for i in range(4)))
    assert result.steps("loss") == [49, 99, 149, 199]
    assert result.steps(STEP) == [49, 99, 149, 199]
    assert result.steps("_step") == result.steps("_runtime") == [0, 1, 2, 3]


def test_a_metric_in_rows_of_its_own_takes_the_last_step_before(tmp_path: Path) -> None:
    rows = [row(0, **{"val/loss": 9.0})]
    for i in range(1, 5):
        rows += [row(2 * i - 1, iter=100 * i, loss=1.0), row(2 * i, **{"val/loss": 2.0})]
    result = load(tmp_path, *rows)
    assert result.steps("loss") == [100, 200, 300, 400]
    assert result.steps("val/loss") == [None, 100, 200, 300, 400], "before the first one none was recorded"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0.5, 1.5, 2.5, 3.5], id="fractions"),
        pytest.param([7, 7, 7, 7], id="stands still"),
        pytest.param([0, 1, 0, 1], id="begins again in every epoch"),
        pytest.param([-2, -1, 0, 1], id="negative"),
        pytest.param([float("nan")] * 4, id="not a number"),
        pytest.param([2.0**60 + i * 2.0**10 for i in range(4)], id="no exact number"),
    ],
)
def test_what_counts_no_steps_is_no_axis(tmp_path: Path, values: list[float]) -> None:
    result = load(tmp_path, *(row(i, iter=x, loss=1.0) for i, x in enumerate(values)))
    assert result.steps("loss") == [0, 1, 2, 3]


def test_defined_axes_go_before_well_known_ones(tmp_path: Path) -> None:
    rows = [row(i, **{STEP: 10 * i, "env_frames": 1000 * i, "loss": 1.0, "reward": 2.0}) for i in range(3)]
    result = load(tmp_path, wandb.metric("reward", step="env_frames"), *rows)
    assert result.steps("loss") == [0, 10, 20]
    assert result.steps("reward") == [0, 1000, 2000]
    assert result.steps("env_frames") == [0, 10, 20]


def test_a_defined_axis_is_that_of_its_metrics_alone(tmp_path: Path) -> None:
    rows = [row(i, env_frames=1000 * i, loss=1.0, reward=2.0) for i in range(3)]
    result = load(tmp_path, wandb.metric("reward", step="env_frames"), *rows)
    assert result.steps("reward") == [0, 1000, 2000]
    assert result.steps("loss") == result.steps("env_frames") == [0, 1, 2]


def test_globs_have_their_star_at_the_end_and_names_go_first(tmp_path: Path) -> None:
    defined = [
        wandb.metric(glob="val/*", step="rounds"),
        wandb.metric("val/acc", step="seen"),
        wandb.metric(glob="*", step="ticks"),
        wandb.metric(step="rounds"),
    ]
    values = {"val/loss": 1.0, "val/acc": 0.5, "loss": 2.0, "_private": 3.0}
    rows = [row(i, rounds=2 * i, seen=3 * i, ticks=5 * i, **values) for i in range(3)]
    result = load(tmp_path, *defined, *rows)
    steps = {tag: result.steps(tag) for tag in values}
    assert steps == {"val/loss": [0, 2, 4], "val/acc": [0, 3, 6], "loss": [0, 5, 10], "_private": [0, 1, 2]}


def test_an_axis_that_was_never_logged_leaves_the_rows_where_they_are(tmp_path: Path) -> None:
    result = load(tmp_path, wandb.metric("loss", step="missing"), row(0, loss=1.0), row(1, loss=0.5))
    assert result.points("loss") == [(0, 1.0), (1, 0.5)]


def test_a_synchronised_axis_stands_in_every_row(tmp_path: Path) -> None:
    """With ``step_sync`` the client writes the last value of the axis into rows without it."""
    rows = [row(i, **{"round": i // 2, **({"loss": 1.0} if i % 2 else {"acc": 0.5})}) for i in range(6)]
    defined = (wandb.metric("loss", step="round", sync=True), wandb.metric("acc", step="round", sync=True))
    result = load(tmp_path, *defined, *rows)
    assert result.steps("loss") == result.steps("acc") == [0, 1, 2]


def test_an_epoch_as_axis_of_what_is_logged_many_times_in_it_is_no_step(tmp_path: Path) -> None:
    rows = [row(i, epoch=i // 10, loss=1.0, **({"acc": 0.1} if i % 10 == 9 else {})) for i in range(40)]
    result = load(tmp_path, wandb.metric(glob="*", step="epoch"), *rows)
    assert result.steps("loss") == list(range(40))
    assert axis(result, "loss", "epoch") == [i // 10 for i in range(40)]
    assert result.steps("acc") == [0, 1, 2, 3]


def test_epochs_and_tokens_fill_their_columns(tmp_path: Path) -> None:
    rows = [row(0, loss=9.0), row(1, **{EPOCH: 0.5, "num_tokens": 2048, "loss": 1.0}), row(2, loss=0.5)]
    result = load(tmp_path, *rows)
    assert axis(result, "loss", "epoch") == [None, 0.5, 0.5]
    assert axis(result, "loss", "tokens") == [None, 2048, 2048]


def test_histograms_are_counted_on_the_same_axis(tmp_path: Path) -> None:
    weights = {"_type": "histogram", "values": [1, 2], "bins": [0.0, 0.5, 1.0]}
    rows = [row(i, **{STEP: 100 * i, "loss": 1.0, "gradients/fc": weights}) for i in range(3)]
    path = wandb.write(tmp_path / "a.wandb", rows)
    assert wandb.table(Wandb(), path, "histograms")["step"].to_list() == [0, 100, 200]


def test_batches_do_not_change_the_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, held_out = {"loss": 1.0}, {"val/loss": 2.0}
    rows = [row(i, **({STEP: 7 * i, "epoch": i // 50, **trained} if i % 4 else held_out)) for i in range(400)]
    path = wandb.write(tmp_path / "a.wandb", rows)
    whole = read(Wandb(), path).metrics
    monkeypatch.setattr(wandbhistory, "FLUSH_VALUES", 60)
    assert read(Wandb(), path).metrics.equals(whole)


def test_exports_have_the_axes_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame(
        {
            "_step": range(100),
            "loss": [1.0 if i % 2 == 0 else None for i in range(100)],
            "val/acc": [0.5 if i % 2 else None for i in range(100)],
            STEP: [10 * i if i % 2 == 0 else None for i in range(100)],
            "epoch": [i // 20 if i % 2 == 0 else None for i in range(100)],
        }
    )
    frame.write_parquet(tmp_path / "history.parquet")
    monkeypatch.setattr(wandb_parquet, "BATCH_VALUES", 100)
    table = write(tmp_path, frame.write_csv(), "history.csv")
    for result in (
        read(WandbParquet(), tmp_path / "history.parquet"),
        read(WandbHistoryCsv(), table),
    ):
        assert result.steps("loss") == [20 * i for i in range(50)]
        assert result.steps("val/acc") == [20 * i for i in range(50)]
        assert result.steps("_step") == list(range(100))
        assert axis(result, "val/acc", "epoch") == [i // 20 for i in range(1, 100, 2)]


def test_an_axis_holds_for_later_parts_without_it() -> None:
    axes = HistoryAxes()
    columns = {"tag": pl.Categorical(), "step": pl.Int64(), "value": pl.Float64()}
    parts = [[("iter", 0, 40.0), ("loss", 0, 2.0)], [("loss", 1, 1.5)], [("iter", 2, 90.0), ("loss", 2, 1.0)]]
    placed = [axes.place_long(pl.DataFrame(part, schema=columns, orient="row")) for part in parts]
    assert [frame["step"].to_list() for frame in placed] == [[40, 40], [40], [90, 90]]


def test_a_metric_record_that_breaks_off_is_counted(tmp_path: Path) -> None:
    result = load(tmp_path, wandb.record(None, 12, b"\x0a\x50abc"), row(0, loss=1.0))
    assert result.damaged == 1
    assert result.points("loss") == [(0, 1.0)]


def test_the_machine_of_newer_clients_without_the_person(tmp_path: Path) -> None:
    machine = wandb.environment(
        [("NVIDIA H100", 85_899_345_920)] * 2,
        os="Linux-5.15",
        python="3.12.1",
        program="/ho" + "me/ann/train.py",
        email="ann@example.org",
        host="ann-laptop",
        username="ann",
        root="/ho" + "me/ann",
        cuda="12.4",
        gpu="NVIDIA H100",
        gpu_count=2,
        cpu_count=64,
    )
    path = wandb.write(tmp_path / "run-abc123.wandb", [machine, row(0, loss=1.0)])
    assert read(Wandb(), path).params == {
        "env.os": "Linux-5.15",
        "env.python": "3.12.1",
        "env.cuda": "12.4",
        "env.gpu": "NVIDIA H100",
        "env.gpu_count": 2,
        "env.gpu_memory_bytes": 85_899_345_920,
        "env.cpu_count": 64,
        "env.program": "train.py",
    }
    tables = collect([path]).tables
    assert tables.runs.select("device_name", "devices").rows() == [("NVIDIA H100", 2)]
    assert "ann" not in json.dumps(tables.params["value"].to_list())


@given(
    st.lists(
        st.tuples(
            st.floats() | st.integers(-5, 2**62),
            st.sampled_from(["loss", "iter", "epoch", STEP, "num_tokens"]),
        ),
        max_size=30,
    )
)
def test_any_history_keeps_every_value(
    tmp_path_factory: pytest.TempPathFactory, logged: list[tuple[float, str]]
) -> None:
    rows = [row(i, **{tag: value}) for i, (value, tag) in enumerate(logged)]
    result = load(tmp_path_factory.mktemp("any"), *rows)
    assert len(result.metrics) == 2 * len(logged)
    assert result.damaged == 0
