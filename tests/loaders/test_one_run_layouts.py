"""Folders as trainings leave them: which files are one run, read from disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from afterrun.loaders.collect import LoadOptions, collect
from afterrun.loaders.collection import Collection
from tests.support import events
from tests.support.loading import write

LOSS = [2.3456, 1.9876, 1.5432, 1.2345, 1.1111, 0.9876]
EVAL = [1.7654321, 1.5432109]


def runs(c: Collection) -> dict[str, str]:
    """Each run and the rule that made it."""
    return {name: info.grouped_by for name, info in c.runs.items()}


def kept(c: Collection, run: str) -> dict[str, int]:
    """Surviving points of each tag that has any and is no axis."""
    alive = c.tables.metrics.filter((pl.col("run") == run) & ~pl.col("superseded"))
    alive = alive.filter(~pl.col("metric").cast(pl.String).is_in(["epoch", "step"]).fill_null(value=False))
    return {str(tag): n for tag, n in alive.group_by("tag", maintain_order=True).len().iter_rows()}


def trainer_state(folder: Path, losses: Sequence[float] = LOSS) -> None:
    history: list[dict[str, float]] = [
        {"epoch": (i + 1) / 3, "learning_rate": 5e-5 / (i + 1), "loss": v, "step": 10 * (i + 1)}
        for i, v in enumerate(losses)
    ]
    history.insert(3, {"epoch": 1.0, "eval_loss": EVAL[0], "step": 30})
    history.append({"epoch": 2.0, "eval_loss": EVAL[1], "step": 60})
    state = {
        "epoch": 2.0,
        "global_step": 60,
        "max_steps": 60,
        "log_history": history,
        "is_hyper_param_search": False,
    }
    write(folder, json.dumps(state), "trainer_state.json")


def event_file(folder: Path, losses: Sequence[float] = LOSS, pid: int = 7) -> None:
    records = []
    for i, v in enumerate(losses):
        records.append(
            events.scalars(
                events.WALL + i, 10 * (i + 1), **{"train/loss": v, "train/learning_rate": 5e-5 / (i + 1)}
            )
        )
        if i in (2, 5):
            records.append(events.scalars(events.WALL + i, 10 * (i + 1), **{"eval/loss": EVAL[i // 3]}))
    events.write(folder / f"events.out.tfevents.1700000000.node1.{pid}.0", records)


def stdout(folder: Path, name: str, losses: Sequence[float] = LOSS) -> None:
    lines = ["loading weights\n"]
    for i, v in enumerate(losses):
        lines.append(
            f"{{'loss': {v}, 'learning_rate': {5e-5 / (i + 1)!r}, 'epoch': {round((i + 1) / 3, 2)}}}\n"
        )
        if i in (2, 5):
            lines.append(
                f"{{'eval_loss': {EVAL[i // 3]}, 'eval_speed': {100 + i}.5, 'epoch': {round((i + 1) / 3, 2)}}}\n"
            )
    write(folder, "".join(lines), name)


# -- the Hugging Face Trainer -------------------------------------------------------------------------


def test_state_event_files_and_output_of_the_trainer_are_one_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    trainer_state(out)
    event_file(out / "runs" / "Nov14_22-13-20_node1")
    stdout(out, "train.log")
    c = collect([tmp_path])
    assert runs(c) == {"out": "event files of the Trainer below its output folder"}
    assert kept(c, "out") == {"train/loss": 6, "train/learning_rate": 6, "eval/loss": 2, "eval_speed": 2}
    speed = c.tables.metrics.filter(pl.col("tag") == "eval_speed")
    assert speed["step"].to_list() == [30, 60]
    assert c.runs["out"].attempts == 1


def test_checkpoints_are_enough_to_know_the_output_folder(tmp_path: Path) -> None:
    trainer_state(tmp_path / "out" / "checkpoint-60")
    event_file(tmp_path / "out" / "runs" / "Nov14_22-13-20_node1")
    assert list(runs(collect([tmp_path]))) == ["out"]


def test_event_files_in_other_folders_below_stay_apart(tmp_path: Path) -> None:
    trainer_state(tmp_path / "out")
    event_file(tmp_path / "out" / "runs" / "second try")
    event_file(tmp_path / "out" / "logs" / "Nov14_22-13-20_node1")
    assert list(runs(collect([tmp_path]))) == ["out", "out/logs/Nov14_22-13-20_node1", "out/runs/second try"]


def test_runs_of_a_folder_without_a_trainer_stay_apart(tmp_path: Path) -> None:
    event_file(tmp_path / "runs" / "Nov14_22-13-20_node1")
    event_file(tmp_path / "runs" / "Nov15_22-13-20_node1")
    assert len(runs(collect([tmp_path]))) == 2


def test_a_log_above_the_output_folder_is_its_own_where_it_holds_the_curve(tmp_path: Path) -> None:
    trainer_state(tmp_path / "exp" / "out")
    stdout(tmp_path / "exp", "train.log")
    c = collect([tmp_path])
    assert runs(c) == {"exp/out": "one file; a text log above it holds the same curve"}
    assert kept(c, "exp/out") == {"loss": 6, "learning_rate": 6, "eval_loss": 2, "eval_speed": 2}


def test_a_log_above_with_another_curve_is_a_run(tmp_path: Path) -> None:
    trainer_state(tmp_path / "exp" / "out")
    stdout(tmp_path / "exp", "train.log", [round(v * 1.1, 4) for v in LOSS])
    assert list(runs(collect([tmp_path]))) == ["exp", "exp/out"]


def test_a_log_above_two_runs_belongs_to_neither(tmp_path: Path) -> None:
    trainer_state(tmp_path / "exp" / "a")
    trainer_state(tmp_path / "exp" / "b")
    stdout(tmp_path / "exp", "train.log")
    assert list(runs(collect([tmp_path]))) == ["exp", "exp/a", "exp/b"]


def test_the_user_has_the_last_word(tmp_path: Path) -> None:
    trainer_state(tmp_path / "exp" / "out")
    event_file(tmp_path / "exp" / "out" / "runs" / "Nov14_22-13-20_node1")
    stdout(tmp_path / "exp", "train.log")
    assert list(runs(collect([tmp_path], LoadOptions(group="folder")))) == [
        "exp",
        "exp/out",
        "exp/out/runs/Nov14_22-13-20_node1",
    ]


# -- other frameworks ---------------------------------------------------------------------------------


def test_lightning_table_and_event_file(tmp_path: Path) -> None:
    folder = tmp_path / "lightning_logs" / "version_0"
    rows = [f"{i // 3},{10 * (i + 1)},{v}" for i, v in enumerate(LOSS)]
    write(folder, "epoch,step,train_loss\n" + "\n".join(rows) + "\n", "metrics.csv")
    records = [events.scalars(events.WALL + i, 10 * (i + 1), train_loss=v) for i, v in enumerate(LOSS)]
    events.write(folder / "events.out.tfevents.1700000000.node1.7.0", records)
    c = collect([tmp_path])
    assert kept(c, "lightning_logs/version_0") == {"train_loss": 6}
    assert c.tables.metrics.filter((pl.col("tag") == "train_loss") & pl.col("superseded"))["tag"].len() == 6


def test_keras_table_and_progress_bars(tmp_path: Path) -> None:
    rows = [f"{i},{v}{i}7,{v + 0.25:.4f}{i}9" for i, v in enumerate(LOSS)]
    write(tmp_path, "epoch,loss,val_loss\n" + "\n".join(rows) + "\n", "training.log")
    bars = [
        f"Epoch {i + 1}/6\n100/100 [====] - 5s 50ms/step - loss: {v:.4f} - val_loss: {v + 0.25:.4f}\n"
        for i, v in enumerate(LOSS)
    ]
    write(tmp_path, "".join(bars), "job.out")
    c = collect([tmp_path])
    (run,) = runs(c)
    assert kept(c, run) == {"loss": 6, "val_loss": 6, "step_time": 6}
    losses = c.tables.metrics.filter(~pl.col("superseded") & (pl.col("metric") == "loss"))
    assert set(losses["source"]) == {"training.log"}
    # what only the bars say keeps their steps, epochs counted from one
    assert c.tables.metrics.filter(pl.col("tag") == "step_time")["step"].to_list() == [1, 2, 3, 4, 5, 6]


# -- output and error streams -------------------------------------------------------------------------


def test_output_and_error_stream_of_a_job_are_one_run(tmp_path: Path) -> None:
    stdout(tmp_path / "x", "slurm-123.out")
    write(
        tmp_path / "x",
        'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\nValueError: no\n',
        "slurm-123.err",
    )
    c = collect([tmp_path])
    assert runs(c) == {"x": "output and error stream of one job"}
    assert kept(c, "x") == {"loss": 6, "learning_rate": 6, "eval_loss": 2, "eval_speed": 2}
    assert c.tables.runs["outcome"].to_list() == ["crashed"]


def test_several_jobs_in_one_folder_are_several_runs(tmp_path: Path) -> None:
    for job in ("slurm-1", "slurm-2"):
        stdout(tmp_path / "x", f"{job}.out")
        stdout(tmp_path / "x", f"{job}.err")
    c = collect([tmp_path])
    assert list(runs(c)) == ["x/slurm-1", "x/slurm-2"]
    assert kept(c, "x/slurm-1")["loss"] == 6


# -- charts of one workspace --------------------------------------------------------------------------


def chart(folder: Path, name: str, tag: str, curves: dict[str, Sequence[float]]) -> None:
    columns = [f'"{run} - {tag}{end}"' for run in curves for end in ("", "__MIN", "__MAX")]
    rows = [
        ",".join(f'"{x}"' for x in (10 * i, *(v for values in curves.values() for v in (values[i],) * 3)))
        for i in range(len(LOSS))
    ]
    write(folder, ",".join(['"Step"', *columns]) + "\n" + "\n".join(rows) + "\n", name)


OTHER = [v + 0.125 for v in LOSS]


def test_every_run_of_several_charts_stands_once_with_all_its_tags(tmp_path: Path) -> None:
    chart(tmp_path / "w", "loss.csv", "train/loss", {"calm-tree-1": LOSS, "red-sea-2": OTHER})
    chart(tmp_path / "w", "acc.csv", "val/acc", {"red-sea-2": OTHER, "calm-tree-1": LOSS})
    c = collect([tmp_path])
    assert set(runs(c)) == {"w/calm-tree-1", "w/red-sea-2"}
    for run in runs(c):
        assert kept(c, run) == {"val/acc": 6, "train/loss": 6}
        assert c.runs[run].attempts == 1


def test_a_chart_saved_twice_counts_once(tmp_path: Path) -> None:
    chart(tmp_path, "loss.csv", "train/loss", {"calm-tree-1": LOSS})
    chart(tmp_path, "loss (1).csv", "train/loss", {"calm-tree-1": LOSS})
    c = collect([tmp_path])
    assert {run: kept(c, run) for run in runs(c)} == {"calm-tree-1": {"train/loss": 6}}


def test_charts_of_two_projects_with_the_same_names_stay_apart(tmp_path: Path) -> None:
    chart(tmp_path / "w", "a.csv", "train/loss", {"run-1": LOSS, "run-2": OTHER})
    chart(tmp_path / "w", "b.csv", "train/loss", {"run-1": [v + 3 for v in LOSS]})
    assert set(runs(collect([tmp_path]))) == {"w/a/run-1", "w/a/run-2", "w/b/run-1"}


def test_a_name_that_one_chart_shows_twice_is_not_looked_for_in_another(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    rows = "".join(f'"{10 * i}","{v}","{v + 1}","{v + 2}"\n' for i, v in enumerate(LOSS))
    write(folder, '"Step","same - loss","same - loss","alone - loss"\n' + rows, "loss.csv")
    rows = "".join(f'"{10 * i}","{v}","{v + 1}"\n' for i, v in enumerate(LOSS))
    write(folder, '"Step","same - acc","alone - acc"\n' + rows, "acc.csv")
    assert set(runs(collect([tmp_path]))) == {"w/loss/same", "w/loss/same~2", "w/acc/same", "w/alone"}


# -- logs in a folder and below it ------------------------------------------------------------------------


def table(folder: Path, losses: Sequence[float] = LOSS) -> None:
    rows = "".join(f"{10 * (i + 1)},{v},{0.5 + i}\n" for i, v in enumerate(losses))
    write(folder, "step,loss,grad_norm\n" + rows, "metrics.csv")


def test_logs_of_several_tools_below_a_table_are_its_run_where_they_hold_its_curve(tmp_path: Path) -> None:
    table(tmp_path / "exp")
    event_file(tmp_path / "exp" / "tb")
    trainer_state(tmp_path / "exp" / "hf" / "out")
    c = collect([tmp_path])
    assert runs(c) == {"exp": "one file; logs below it hold the same curve"}
    loss = c.tables.metrics.filter(
        (pl.col("metric") == "loss") & (pl.col("split") != "val") & ~pl.col("superseded")
    )
    assert len(loss) == len(LOSS)
    assert kept(c, "exp")["grad_norm"] == 6


def test_logs_below_with_another_curve_stay_apart(tmp_path: Path) -> None:
    table(tmp_path / "exp")
    event_file(tmp_path / "exp" / "tb", [v * 1.1 for v in LOSS])
    assert list(runs(collect([tmp_path]))) == ["exp", "exp/tb"]


def test_one_of_two_below_that_holds_the_curve_is_joined(tmp_path: Path) -> None:
    table(tmp_path / "exp")
    event_file(tmp_path / "exp" / "a", [v * 1.1 for v in LOSS])
    event_file(tmp_path / "exp" / "b", pid=8)
    assert list(runs(collect([tmp_path]))) == ["exp", "exp/a"]


def test_two_of_one_tool_that_both_hold_it_belong_to_nobody(tmp_path: Path) -> None:
    table(tmp_path / "exp")
    event_file(tmp_path / "exp" / "a")
    event_file(tmp_path / "exp" / "b", pid=8)
    assert list(runs(collect([tmp_path]))) == ["exp", "exp/a", "exp/b"]


def test_a_folder_with_a_sweep_below_is_not_compared(tmp_path: Path) -> None:
    table(tmp_path / "exp")
    for i in range(9):
        event_file(tmp_path / "exp" / f"trial{i}", pid=i + 1)
    assert len(runs(collect([tmp_path]))) == 10
