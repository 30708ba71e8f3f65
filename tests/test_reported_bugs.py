"""Failures that users of other tools reported, each as an input of the same shape with the right answer.

The numbers are those of the list of cases; the inputs are written here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from afterrun.analyzer.analysis import Analysis
from afterrun.analyzer.finding import Finding
from afterrun.analyzer.inventory import inventory
from afterrun.analyzer.pipeline import analyse
from afterrun.analyzer.smoothing import ewma
from afterrun.loaders.collect import collect
from tests.support import events


def look(path: Path) -> tuple[dict[str, Any], Analysis]:
    """(the only run of the inventory, everything known)."""
    collection = collect([path])
    (run,) = inventory(collection)["runs"]
    return run, analyse(collection)


def metric(run: dict[str, Any], tag: str, rank: int | None = None) -> dict[str, Any]:
    (found,) = [m for m in run["metrics"] if m["tag"] == tag and m["rank"] == rank]
    return found


def curve(a: Analysis, tag: str) -> list[tuple[int | None, float]]:
    rows = a.collection.tables.metrics.filter((pl.col("tag") == tag) & ~pl.col("superseded")).sort("seq")
    return list(zip(rows["step"], rows["value"], strict=True))


def said(a: Analysis, code: str) -> list[Finding]:
    return [f for f in a.findings if f.code == code]


def alarms(a: Analysis) -> set[str]:
    return {f.code for f in a.findings if f.is_alarm}


def falling(n: int, add: float = 0.0) -> list[float]:
    """A smooth descent; the values do not matter."""
    return [3.2 * 0.977**i + add for i in range(n)]


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


# -- event files ---------------------------------------------------------------------------------


def test_b02_a_file_cut_inside_its_last_record_keeps_the_rest(tmp_path: Path) -> None:
    path = events.write(
        tmp_path / "events.out.tfevents.1700000000.host.1.0", events.curve("train/loss", falling(38))
    )
    path.write_bytes(path.read_bytes()[:-9])
    run, _ = look(tmp_path)
    assert metric(run, "train/loss")["points"] == 37
    (source,) = run["sources"]
    assert source["status"] == "read"
    assert "ends inside a record" in source["note"]


def test_b03_two_trainings_in_one_folder(tmp_path: Path) -> None:
    for i, (t, add) in enumerate([(1_700_000_000, 0.0), (1_700_005_000, 1.0)]):
        events.write(
            tmp_path / f"events.out.tfevents.{t}.host.{i}.0",
            events.curve("train/loss", falling(50, add), wall=t),
        )
    run, a = look(tmp_path)
    m = metric(run, "train/loss")
    assert (run["attempts"], m["points"], m["superseded"]) == (2, 50, 50)
    steps, values = zip(*curve(a, "train/loss"), strict=True)
    assert steps == tuple(range(50)), "no zig-zag"
    assert values == pytest.approx(falling(50, 1.0), rel=1e-6), "the latest attempt is the curve"
    (restart,) = said(a, "restart")
    assert (restart.status, restart.where.step_start, restart.values["rows_redone"]) == ("possible", 0, 50)
    assert "a second training in the same folder" in restart.title


def test_b06_idle_ranks_leave_files_with_a_version_record_only(tmp_path: Path) -> None:
    events.write(tmp_path / "events.out.tfevents.1700000000.host.1.0", [])
    events.write(
        tmp_path / "events.out.tfevents.1700000001.host.2.0", events.curve("train/loss", falling(60))
    )
    events.write(tmp_path / "events.out.tfevents.1700000002.host.3.0", [])
    run, _ = look(tmp_path)
    assert metric(run, "train/loss")["points"] == 60
    assert [s["status"] for s in run["sources"]] == ["empty", "read", "empty"]
    assert all("version record only" in s["note"] for s in run["sources"] if s["status"] == "empty")


def test_b07_ranks_that_write_one_tag_are_not_restarts(tmp_path: Path) -> None:
    for r in range(4):
        events.write(
            tmp_path / f"events.out.tfevents.1700000000.host.{100 + r}.0",
            events.curve("train/loss", falling(40, r / 20), wall=1_700_000_000 + r / 100),
        )
    run, a = look(tmp_path)
    assert run["attempts"] == 1
    assert [metric(run, "train/loss", r)["points"] for r in range(4)] == [40] * 4
    assert sum(m["superseded"] for m in run["metrics"]) == 0
    assert all(f.status == "refuted" for f in said(a, "restart"))


def test_b09_without_a_global_step_the_write_order_is_the_axis(tmp_path: Path) -> None:
    points = [
        events.event(1_700_000_000 + 2 * i, 0, events.summary(events.simple("train/loss", v)))
        for i, v in enumerate(falling(80))
    ]
    events.write(tmp_path / "events.out.tfevents.1700000000.host.1.0", points)
    run, a = look(tmp_path)
    m = metric(run, "train/loss")
    assert (m["points"], m["superseded"], m["first_step"]) == (80, 0, None)
    assert [v for _, v in curve(a, "train/loss")] == pytest.approx(falling(80), rel=1e-6)
    assert any("no step recorded" in n for n in run["notes"])


def test_b11_duplicate_steps_the_last_write_wins(tmp_path: Path) -> None:
    body = []
    for i in range(30):
        body += events.curve("t", [float(i)], start=i, wall=1_700_000_000 + i)
        if i in (0, 10, 20):
            body += events.curve("t", [i + 0.5], start=i, wall=1_700_000_000.1 + i)
    events.write(tmp_path / "events.out.tfevents.1700000000.host.1.0", body)
    run, a = look(tmp_path)
    m = metric(run, "t")
    assert (run["attempts"], m["points"], m["superseded"]) == (1, 30, 3)
    kept = dict(curve(a, "t"))
    assert (kept[0], kept[10], kept[20], kept[21]) == (0.5, 10.5, 20.5, 21.0)


def test_b14_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "exp:lr=1e-3 [a]" / "train loss"
    events.write(folder / "events.out.tfevents.1700000000.my host.1.0", events.curve("loss", falling(10)))
    run, _ = look(tmp_path)
    assert run["run"] == "exp:lr=1e-3 [a]/train loss"
    assert metric(run, "loss")["points"] == 10


def test_b15_train_by_batch_and_valid_by_epoch_are_matched_by_wall_clock(tmp_path: Path) -> None:
    body = events.curve("Loss/Train", falling(100))
    for epoch in range(5):
        wall = 1_700_000_019.5 + 20 * epoch
        body += events.curve("Loss/Valid", [falling(100)[20 * epoch + 19] + 0.05], start=epoch, wall=wall)
    events.write(tmp_path / "events.out.tfevents.1700000000.host.1.0", body)
    run, a = look(tmp_path)
    assert run["attempts"] == 1
    assert (metric(run, "Loss/Train")["last_step"], metric(run, "Loss/Valid")["last_step"]) == (99, 4)
    (overfit,) = said(a, "overfit")
    assert overfit.status == "abstained", "five evaluations are too few"
    assert overfit.values["matched_by"] == "wall clock"
    assert overfit.values["evaluations"] == 5
    assert overfit.values["train_points_per_evaluation"] == 20
    assert "20 batches for each epoch" in overfit.title


# -- smoothing -----------------------------------------------------------------------------------


def test_b16_smoothing_is_free_of_the_first_value(tmp_path: Path) -> None:
    y = np.array([100.0] + [1.0] * 50)
    assert ewma(y, 0.1)[50] == pytest.approx(1.051260, abs=5e-7)


def test_b17_two_points_are_not_smoothed(tmp_path: Path) -> None:
    run, a = look(text(tmp_path / "curve.csv", "step,loss\n0,3.0\n1000,1.0\n"))
    assert metric(run, "loss")["points"] == 2
    for code in ("noisy", "plateau"):
        (f,) = said(a, code)
        assert f.status == "abstained"
        assert f.effect is None or f.effect.value is None
    (view,) = a.views.values()
    assert view.train_loss is not None
    assert view.train_loss.smooth_u.tolist() == view.train_loss.u.tolist()
    assert not alarms(a)


# -- tables --------------------------------------------------------------------------------------


def test_b28_train_and_val_on_different_rows(tmp_path: Path) -> None:
    rows = ",0.1,0,,\n0,,49,2.0,\n0,,49,,2.2\n,0.1,50,,\n0,,99,1.5,\n0,,99,,1.8\n1,,149,1.2,\n1,,149,,1.9\n"
    _, a = look(text(tmp_path / "metrics.csv", "epoch,lr-SGD,step,train_loss,val_loss\n" + rows))
    assert curve(a, "train_loss") == [(49, 2.0), (99, 1.5), (149, 1.2)]
    assert curve(a, "val_loss") == [(49, 2.2), (99, 1.8), (149, 1.9)]
    assert curve(a, "lr-SGD") == [(0, 0.1), (50, 0.1)]
    gap = dict(curve(a, "val_loss"))[149] - dict(curve(a, "train_loss"))[149]
    assert gap == pytest.approx(0.7)


def test_b29_rows_of_another_counter_are_no_restart(tmp_path: Path) -> None:
    rows = "0,0,2.3,\n0,1,2.2,\n0,11,,0.31\n1,2,2.1,\n1,3,2.0,\n1,23,,0.44\n"
    run, a = look(text(tmp_path / "metrics.csv", "epoch,step,train_loss,train_acc_epoch\n" + rows))
    assert run["attempts"] == 1
    assert [s for s, _ in curve(a, "train_loss")] == [0, 1, 2, 3]
    assert [s for s, _ in curve(a, "train_acc_epoch")] == [11, 23]
    assert "restart" not in alarms(a)


def test_b30_a_history_that_begins_late_says_so(tmp_path: Path) -> None:
    rows = "".join(
        f"{35 + i},{3500 + 100 * i},{1.65 - i / 100:.3f},{0.37 + i / 500:.3f}\n" for i in range(25)
    )
    run, a = look(text(tmp_path / "metrics.csv", "epoch,step,train/loss,val/map\n" + rows))
    assert metric(run, "train/loss")["points"] == 25
    assert any("begins at step 3,500 (epoch 35)" in f.title for f in said(a, "incomplete"))
    assert not alarms(a)


def test_b32_a_column_of_nan_is_no_validation(tmp_path: Path) -> None:
    rows = "".join(f"{i},{2 - i / 10:.2f},nan\n" for i in range(10))
    run, a = look(text(tmp_path / "log.csv", "epoch,loss,val_loss\n" + rows))
    assert metric(run, "val_loss")["nan"] == 10
    (overfit,) = said(a, "overfit")
    assert overfit.status == "abstained"
    assert not alarms(a), "an absent validation is no divergence"


def test_b33_repeated_values_are_not_evaluations(tmp_path: Path) -> None:
    rows = "".join(f"{i},{2 * 0.95**i:.4f},{0.3 + 0.1 * (i // 5):.2f}\n" for i in range(25))
    run, a = look(text(tmp_path / "training_log.csv", "epoch,train/loss,eval/val/map\n" + rows))
    assert metric(run, "eval/val/map")["points"] == 25
    assert not alarms(a), "no plateau between evaluations"


def test_b35_a_second_training_appended_to_one_file(tmp_path: Path) -> None:
    rows = [f"{e},{24 + 2 * e},{1.3 - e / 20:.3f},{1.1 - e / 100:.3f}\n" for e in range(1, 6)]
    more = [f"{e},{24 + 2 * e},{1.0 - e / 50:.3f},{0.95 - e / 200:.3f}\n" for e in range(1, 6)]
    header = "epoch,time,train/box_loss,val/box_loss\n"
    run, a = look(text(tmp_path / "results.csv", header + "".join(rows + more)))
    m = metric(run, "train/box_loss")
    assert (run["attempts"], m["points"], m["superseded"]) == (2, 5, 5)
    assert [v for _, v in curve(a, "train/box_loss")] == [0.98, 0.96, 0.94, 0.92, 0.9]


def test_b36_rows_with_more_cells_than_names_are_not_shifted(tmp_path: Path) -> None:
    header = "                  epoch,         train/box_loss,           val/cls_loss\n"
    good = "".join(f"{e:>23},{v:>23},{'inf':>23}\n" for e, v in [(1, 2.8546), (2, 1.7537)])
    ragged = "".join(
        f"{e:>23},{v:>23},{'inf':>23},   0.07,   0.0033\n" for e, v in [(1, 2.8546), (2, 1.7537)]
    )
    run, a = look(text(tmp_path / "results.csv", header + good + ragged))
    (source,) = run["sources"]
    assert curve(a, "train/box_loss") == [(1, 2.8546), (2, 1.7537)]
    assert metric(run, "val/cls_loss")["inf"] == 2
    assert (source["damaged"], source["status"]) == (2, "partial")
    assert "lines 4, 5" in source["note"]


def test_b37_names_are_free_of_blanks(tmp_path: Path) -> None:
    run, _ = look(
        text(
            tmp_path / "metrics_epoch.csv",
            "epoch, wall, training_loss, validation_loss\n1, 10.0, 2.0, 2.1\n2, 20.0, 1.0, 1.3\n",
        )
    )
    assert metric(run, "training_loss")["last"] == 1.0
    assert metric(run, "validation_loss")["last"] == 1.3


def test_b38_columns_added_in_the_middle_put_nothing_under_a_wrong_name(tmp_path: Path) -> None:
    good = "".join(f"r1,{i},{1 / (i + 1):.3f},0,0.1\n" for i in range(5))
    shifted = "".join(f"r1,{i},{1 / (i + 1):.3f},cfgA,224,mean,0,0.1\n" for i in range(5, 8))
    run, a = look(text(tmp_path / "results.csv", "run,step,loss,seed,lr\n" + good + shifted))
    (source,) = run["sources"]
    assert [s for s, _ in curve(a, "loss")] == [0, 1, 2, 3, 4]
    assert {v for _, v in curve(a, "lr")} == {0.1}
    assert source["damaged"] == 3
    assert "lines 7, 8, 9" in source["note"]


def test_b41_blank_lines_between_rows(tmp_path: Path) -> None:
    rows = "0,9,0.9,\n\n0,19,0.8,\n\n0,19,,0.5\n"
    run, a = look(text(tmp_path / "metrics.csv", "epoch,step,train/loss_step,val/acc\n" + rows))
    assert curve(a, "train/loss_step") == [(9, 0.9), (19, 0.8)]
    assert curve(a, "val/acc") == [(19, 0.5)]
    assert run["sources"][0]["damaged"] == 0
