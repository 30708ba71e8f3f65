"""CSV files that W&B writes: chart exports, ``run.history()``, tables of runs."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.pipeline import analyse
from afterrun.loaders.collect import collect
from afterrun.loaders.formats.curves.wandb_export import WandbHistoryCsv, WandbPanelCsv, WandbRunsTable
from afterrun.loaders.wandb.panel import PanelColumn, divided, looks_like_panel, panel_columns
from tests.support.loading import claimed, read, source, write


def quoted(*rows: list[object]) -> str:
    """Rows as the W&B page writes them: every cell in quotes."""
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def curve(name: str) -> list[object]:
    return [name, f"{name}__MIN", f"{name}__MAX"]


# -- charts -------------------------------------------------------------------------------------------


def test_b23_words_for_non_finite_values_and_the_band(tmp_path: Path) -> None:
    text = quoted(
        ["Step", *curve("run-a - train/loss")],
        [0, "2.0", "2.0", "2.0"],
        [1, "NaN", "NaN", "NaN"],
        [2, "Infinity", "Infinity", "Infinity"],
        [3, "-Infinity", "-Infinity", "-Infinity"],
        [4, "1.0", "0.9", "1.1"],
    )
    path = write(tmp_path, text, "export.csv")
    assert claimed(path) == "wandb-panel-csv"
    result = read(WandbPanelCsv(), path)
    loss = result.metrics.filter(pl.col("tag") == "train/loss")
    assert result.tags() == ["train/loss", "Step"]
    assert loss["step"].to_list() == [0, 1, 2, 3, 4]
    assert [str(v) for v in loss["value"]] == ["2.0", "nan", "inf", "-inf", "1.0"]
    assert loss["low"].to_list() == [2.0, None, math.inf, -math.inf, 0.9]
    assert loss["high"].to_list() == [2.0, None, math.inf, -math.inf, 1.1]
    assert result.damaged == 0


def test_each_run_of_a_chart_is_a_run_the_oldest_first(tmp_path: Path) -> None:
    text = quoted(
        ["Step", *curve("new.2 - loss"), *curve("old - 1 - loss")],
        [0, 5, 5, 5, 9, 8, 10],
        [1, "", "", "", 7, 6, 8],
        [2, 3, 3, 3, "", "", ""],
    )
    tables = collect([write(tmp_path, text, "export.csv").parent]).tables
    assert tables.run_names() == ["old - 1", "new.2"]
    rows = tables.metrics.filter(pl.col("tag") == "loss").select("run", "step", "value", "low", "high")
    assert rows.cast({"run": pl.String}).rows() == [
        ("old - 1", 0, 9.0, 8.0, 10.0),
        ("old - 1", 1, 7.0, 6.0, 8.0),
        ("new.2", 0, 5.0, 5.0, 5.0),
        ("new.2", 2, 3.0, 3.0, 3.0),
    ]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a - loss", "b - loss"], [("a", "loss"), ("b", "loss")]),
        (["a - x - loss", "c - loss"], [("a - x", "loss"), ("c", "loss")]),
        (["a - loss", "a - acc"], [("a", "loss"), ("a", "acc")]),
        (["exp - 1 - loss", "exp - 2 - loss"], [("exp - 1", "loss"), ("exp - 2", "loss")]),
        (
            ["r - train - loss", "r - val - loss", "r - acc"],
            [("r", "train - loss"), ("r", "val - loss"), ("r", "acc")],
        ),
        (
            ["lr - 0.1 - loss", "lr - 0.1 - acc", "b - loss", "b - acc"],
            [("lr - 0.1", "loss"), ("lr - 0.1", "acc"), ("b", "loss"), ("b", "acc")],
        ),
        (["my - run - loss"], [("my - run", "loss")]),
        ([], []),
    ],
)
def test_where_run_and_metric_are_divided(labels: list[str], expected: list[tuple[str, str]]) -> None:
    assert divided(labels) == expected


def test_columns_and_their_bands() -> None:
    labels = ["Step", "a - loss", "a - loss__MIN", "a - loss__MAX", "b - loss", "b - loss__MAX", "a - loss"]
    assert panel_columns(labels) == [
        PanelColumn(1, "a", "loss", 2, 3),
        PanelColumn(4, "b", "loss", None, 5),
        PanelColumn(6, "a~2", "loss", None, None),
    ]


@pytest.mark.parametrize(
    ("names", "panel"),
    [
        (["Step", "a - loss"], True),
        (["epoch", "a - loss", "a - loss__MIN"], True),
        (["epoch", "a - loss"], False),
        (["Step", "loss"], False),
        (["Step"], False),
        (["a - b", "a - loss", "a - loss__MIN"], False),
    ],
)
def test_what_looks_like_a_chart(names: list[str], panel: bool) -> None:
    assert looks_like_panel(names) == panel


@pytest.mark.parametrize(
    ("label", "cells", "steps", "epochs", "walls"),
    [
        ("evaluations", [60, 120, 120], [60, 120, 120], [None] * 3, [None] * 3),
        ("epoch", [0, 1, 2], [0, 1, 2], [0.0, 1.0, 2.0], [None] * 3),
        ("epoch", [0.5, 1.0, 1.5], [None] * 3, [0.5, 1.0, 1.5], [None] * 3),
        ("Relative Time (Process)", [1, 2, 3], [None] * 3, [None] * 3, [None] * 3),
        ("tokens seen", [0.1, 0.25, 0.3], [None] * 3, [None] * 3, [None] * 3),
        (
            "Wall Time",
            ["2023-11-14T22:13:20Z", "2023-11-14T22:13:21Z", "2023-11-14T22:13:22Z"],
            [None] * 3,
            [None] * 3,
            [1_700_000_000_000_000_000 + i * 10**9 for i in range(3)],
        ),
    ],
)
def test_axes_of_charts(
    tmp_path: Path,
    label: str,
    cells: list[object],
    steps: list[int | None],
    epochs: list[float | None],
    walls: list[int | None],
) -> None:
    text = quoted([label, *curve("r - loss")], *([cell, i, i, i] for i, cell in enumerate(cells)))
    loss = read(WandbPanelCsv(), write(tmp_path, text)).metrics.filter(pl.col("tag") == "loss")
    assert loss["value"].to_list() == [0.0, 1.0, 2.0]
    assert loss["step"].to_list() == steps
    assert loss["epoch"].to_list() == epochs
    assert loss["wall_ns"].to_list() == walls


def test_a_chart_with_bad_cells_keeps_the_others(tmp_path: Path) -> None:
    text = quoted(["Step", *curve("r - loss")], [0, 1, 1, 1], [1, "oops", "", ""], [2, 3, 3, 3]) + '"3","4'
    result = read(WandbPanelCsv(), write(tmp_path, text))
    assert result.points("loss") == [(0, 1.0), (2, 3.0)]
    assert result.damaged >= 1
    assert "1 cells without a number left out" in result.notes


# -- histories ----------------------------------------------------------------------------------------


def history_csv(steps: list[int]) -> str:
    lines = [f"{s},{s / 2},{1_700_000_000 + s / 2},{0.2 + 3 * math.exp(-s / 1000):.5f}" for s in steps]
    return "\n".join(["_step,_runtime,_timestamp,loss", *lines]) + "\n"


def sampling(path: Path) -> tuple[bool, list[str]]:
    batches = list(WandbHistoryCsv().load(source(path)))
    return any(b.sampled for b in batches), [n for b in batches for n in b.notes]


def test_b19_five_hundred_rows_drawn_at_random_look_sampled(tmp_path: Path) -> None:
    steps = sorted([0, 9990, *random.Random(1).sample(range(1, 9990), 498)])
    path = write(tmp_path, history_csv(steps), "wandb_export_history.csv")
    assert claimed(path) == "wandb-history-csv"
    assert sampling(path) == (True, ["looks sampled (500 rows over 9,991 steps, irregular gaps)"])
    result = read(WandbHistoryCsv(), path)
    assert result.steps("loss") == steps
    assert collect([tmp_path]).tables.sources["sampled"].to_list() == [True]


def test_b19_verdicts_on_a_sample_claim_nothing_for_sure(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    steps = [0, *sorted(random.Random(1).sample(range(1, 9990), 498)), 9990]
    noise = np.exp(rng.normal(0, 0.5, 500))
    loss = "".join(
        f"{i},{s},{(3 / (1 + s / 500) + 1) * e}\n" for i, (s, e) in enumerate(zip(steps, noise, strict=True))
    )
    whole = "".join(
        f"{i},{s},{(3 / (1 + s / 500) + 1) * e}\n"
        for i, (s, e) in enumerate(zip(range(0, 10_000, 20), noise, strict=True))
    )
    for name, rows in (("sampled", loss), ("whole", whole)):
        write(tmp_path, ",_step,loss\n" + rows, f"{name}.csv")
    found = {f.run: f for f in analyse(collect([tmp_path])).findings if f.code == "noisy"}
    assert found["whole"].status == "confirmed"
    assert (found["sampled"].status, found["sampled"].missing) == (
        "possible",
        ("every row of the run: sampled.csv holds a sample of it (1,000 values)",),
    )
    assert found["sampled"].title.endswith("as far as a sample of the rows tells.")


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(list(range(500)), id="all of 500 steps"),
        pytest.param(list(range(0, 5000, 10)), id="every tenth step"),
        pytest.param(sorted(random.Random(1).sample(range(9990), 499)), id="another number of rows"),
        pytest.param(sorted(random.Random(1).sample(range(600), 500)), id="hardly any step left out"),
        pytest.param([0, 0, 0], id="no steps at all"),
    ],
)
def test_whole_histories_do_not_look_sampled(tmp_path: Path, steps: list[int]) -> None:
    assert sampling(write(tmp_path, history_csv(steps))) == (False, [])


def test_axes_of_a_history(tmp_path: Path) -> None:
    text = ",epoch,loss,_timestamp,_step,_runtime\n0,0.5,2.0,1700000000.5,3,9\n1,,NaN,1700000001,7,10\n"
    result = read(WandbHistoryCsv(), write(tmp_path, text))
    loss = result.metrics.filter(pl.col("tag") == "loss")
    assert loss["step"].to_list() == [3, 7]
    assert loss["wall_ns"].to_list() == [1_700_000_000_500_000_000, 1_700_000_001_000_000_000]
    assert [str(v) for v in loss["value"]] == ["2.0", "nan"]
    assert result.points("epoch") == [(3, 0.5)]
    assert "Unnamed: 0" not in result.tags()


def test_settings_in_a_history_lose_what_is_personal(tmp_path: Path) -> None:
    text = "_step,loss,data,user\n0,1.0,/ho" + "me/ann/set.bin,ann\n1,0.5,/ho" + "me/ann/set.bin,ann\n"
    assert read(WandbHistoryCsv(), write(tmp_path, text)).params == {"data": "set.bin"}


# -- tables of runs ---------------------------------------------------------------------------------


def test_a_table_of_runs_is_no_curve(tmp_path: Path) -> None:
    text = quoted(
        ["Name", "State", "Notes", "User", "Tags", "Created", "Runtime", "lr", "bias", "opt", "val/loss"],
        ["r1", "finished", "a\nb", "ann", "", "2026-05-25T14:08:33.000Z", 732, 0.001, "true", "adam", 1.5],
        ["r2", "crashed", "-", "ann", "x", "2026-05-25T13:43:10.000Z", 15, 0.002, "false", "", "NaN"],
        ["r1", "killed", "-", "ann", "", "2026-05-25T13:43:10.000Z", 15, 1, "false", "sgd", ""],
    )
    path = write(tmp_path, text, "wandb_export.csv")
    assert claimed(path) == "wandb-runs-table"
    result = read(WandbRunsTable(), path)
    assert len(result.metrics) == 0
    assert math.isnan(result.params.pop("r2.val/loss"))
    assert result.params == {
        "r1.State": "finished",
        "r1.Created": "2026-05-25T14:08:33.000Z",
        "r1.Runtime": 732,
        "r1.lr": 0.001,
        "r1.bias": True,
        "r1.opt": "adam",
        "r1.val/loss": 1.5,
        "r2.State": "crashed",
        "r2.Tags": "x",
        "r2.Created": "2026-05-25T13:43:10.000Z",
        "r2.Runtime": 15,
        "r2.lr": 0.002,
        "r2.bias": False,
        "r1~2.State": "killed",
        "r1~2.Created": "2026-05-25T13:43:10.000Z",
        "r1~2.Runtime": 15,
        "r1~2.lr": 1,
        "r1~2.bias": False,
        "r1~2.opt": "sgd",
    }
    assert result.notes[0] == "a table of 3 runs: settings and final values, no curves"
    assert "ann" not in json.dumps(result.params)
