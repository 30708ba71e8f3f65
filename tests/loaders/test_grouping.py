from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from afterrun.loaders.discover import Found
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.runs.grouping import group
from afterrun.loaders.runs.member import Group
from afterrun.loaders.schema import Batch


class _Fake(Loader):
    family = "curves"

    def __init__(self, format_: str, snapshot: bool = False) -> None:
        self.format = format_  # type: ignore[misc]  # class data of real loaders
        self.snapshot = snapshot  # type: ignore[misc]

    def sniff(self, path: Path, head: bytes) -> bool:
        return True

    def load(self, source: Source) -> Iterator[Batch]:
        return iter(())


LOADERS = {
    "tensorboard": _Fake("tensorboard"),
    "csv": _Fake("csv"),
    "sb3-progress": _Fake("sb3-progress"),
    "hf-trainer": _Fake("hf-trainer", snapshot=True),
}


def found(name: str) -> Found:
    kind = "tensorboard" if "tfevents" in name else "hf-trainer" if name.endswith(".json") else "csv"
    return Found(source=Source(path=Path(name), name=name, size_bytes=1), loader=LOADERS[kind])


def runs(*names: str, rule: str = "auto") -> dict[str, list[str]]:
    return {
        g.run: [m.found.source.name for m in g.members] for g in group([found(n) for n in names], rule=rule)
    }


def only(groups: list[Group]) -> Group:
    (one,) = groups
    return one


EV = "events.out.tfevents.1700000000.host"


def test_each_folder_with_a_log_is_a_run() -> None:
    assert runs(f"a/{EV}.1.0", f"b/{EV}.2.0") == {"a": [f"a/{EV}.1.0"], "b": [f"b/{EV}.2.0"]}


def test_a_path_is_a_name_as_it_is() -> None:
    assert list(runs(f"exp:lr=1e-3 [a]/train loss/{EV}.1.0")) == ["exp:lr=1e-3 [a]/train loss"]


def test_split_folders_join_their_parent_and_name_their_tags() -> None:
    g = only(group([found(f"logs/train/{EV}.1.0.v2"), found(f"logs/validation/{EV}.1.1.v2")]))
    assert (g.run, [m.prefix for m in g.members], g.grouped_by) == (
        "logs",
        ["train/", "validation/"],
        "split folders",
    )


def test_a_folder_called_train_on_its_own_is_a_run() -> None:
    assert list(runs("detect/train/results.csv", "detect/train17/results.csv")) == [
        "detect/train",
        "detect/train17",
    ]


def test_checkpoints_fold_into_their_run() -> None:
    g = only(group([found("r/trainer_state.json"), found("r/checkpoint-10/trainer_state.json")]))
    assert (g.run, g.grouped_by) == ("r", "checkpoint folders")
    assert list(runs("r/checkpoint-10/trainer_state.json", "r/checkpoint-20/trainer_state.json")) == ["r"]


def test_checkpoint_folders_hold_other_logs_apart() -> None:
    assert list(runs("r/trainer_state.json", "r/checkpoint-10/metrics.csv")) == ["r", "r/checkpoint-10"]


def test_add_scalars_children_of_one_process_join() -> None:
    g = only(group([found(f"r/{EV}.7.0"), found(f"r/loss_a/{EV}.7.1"), found(f"r/deep/loss_b/{EV}.7.2")]))
    assert [m.prefix for m in g.members] == ["deep/loss_b/", "", "loss_a/"]


def test_add_scalars_children_named_train_and_val_join_too() -> None:
    """tensorboardX writes ``loss`` of ``add_scalars("loss", {"train": ..., "val": ...})`` into such folders."""
    ev = "events.out.tfevents.1700000100.box"
    g = only(group([found(f"r/{ev}"), found(f"r/loss/train/{ev}"), found(f"r/loss/val/{ev}")]))
    assert (g.run, [m.prefix for m in g.members]) == ("r", ["", "loss/train/", "loss/val/"])
    apart = group([found(f"r/{EV}.7.0"), found(f"r/a/train/{EV}.8.0"), found(f"r/a/val/{EV}.9.0")])
    assert [g.run for g in apart] == ["r", "r/a"], "another process is another run"


def test_add_hparams_once_belongs_to_its_writer() -> None:
    g = only(group([found(f"r/{EV}.7.0"), found(f"r/1700000200.25/{EV}.7.1")]))
    assert (g.run, [m.prefix for m in g.members]) == ("r", ["", ""])
    assert g.grouped_by == "add_hparams below its writer"


def test_add_hparams_of_several_trials_are_runs() -> None:
    names = (f"r/{EV}.7.0", f"r/1700000200.25/{EV}.7.1", f"r/1700000300.5/{EV}.7.2")
    assert list(runs(*names)) == ["r", "r/1700000200.25", "r/1700000300.5"]
    alone = (f"r/1700000200.25/{EV}.7.1", "r/train.log")
    assert list(runs(*alone)) == ["r", "r/1700000200.25"], "no writer above it"


def test_logs_of_the_client_belong_to_the_wandb_run() -> None:
    folder = "wandb/offline-run-20240101_000000-abc"
    names = (f"{folder}/files/output.log", f"{folder}/logs/debug.log")
    assert list(runs(*names)) == [folder]
    assert list(runs("r/logs/debug.log")) == ["r/logs"]


def test_without_a_pid_the_opening_time_tells_the_process() -> None:
    same = runs("r/events.out.tfevents.1700000100.box", "r/d/events.out.tfevents.1700000101.box")
    other = runs("r/events.out.tfevents.1700000100.box", "r/d/events.out.tfevents.1700009999.box")
    assert (list(same), list(other)) == (["r"], ["r", "r/d"])


def test_children_of_another_process_stay_apart() -> None:
    assert list(runs(f"r/{EV}.7.0", f"r/sub/{EV}.8.0")) == ["r", "r/sub"]


def test_sibling_logs_of_one_format_are_runs_named_by_their_stem() -> None:
    assert list(runs("x/run-a.csv", "x/run-b.csv")) == ["x/run-a", "x/run-b"]


def test_one_log_beside_event_files_belongs_to_them() -> None:
    assert list(runs(f"v/{EV}.1.0", "v/metrics.csv")) == ["v"]


def test_rank_files_and_rank_folders_are_one_run() -> None:
    g = only(group([found("x/metrics_rank0.csv"), found("x/metrics_rank1.csv")]))
    assert (g.run, [m.rank for m in g.members]) == ("x", [0, 1])
    g = only(group([found(f"x/rank_0/{EV}.1.0"), found(f"x/rank_1/{EV}.2.0")]))
    assert (g.run, [m.rank for m in g.members]) == ("x", [0, 1])


def test_train_and_val_files_are_one_run() -> None:
    g = only(group([found("x/train_log.csv"), found("x/val_log.csv")]))
    assert (g.run, [m.prefix for m in g.members]) == ("x", ["train/", "val/"])


def test_monitor_files_are_the_workers_of_one_run() -> None:
    g = only(group([found("a2c/0.monitor.csv"), found("a2c/1.monitor.csv")]))
    assert (g.run, [m.rank for m in g.members]) == ("a2c", [0, 1])


@pytest.mark.parametrize(("rule", "names"), [("folder", ["x"]), ("file", ["x/run-a.csv", "x/run-b.csv"])])
def test_the_user_decides(rule: str, names: list[str]) -> None:
    assert list(runs("x/run-a.csv", "x/run-b.csv", rule=rule)) == names


def test_the_order_of_files_does_not_matter() -> None:
    names = [
        f"a/{EV}.1.0",
        "a/m.csv",
        "b/train/x.csv",
        "b/val/x.csv",
        "c/1.csv",
        "c/2.csv",
        "r/checkpoint-1/trainer_state.json",
    ]
    shuffled = names[:]
    random.Random(3).shuffle(shuffled)
    assert runs(*names) == runs(*shuffled)


def test_event_files_of_the_trainer_join_its_output_folder() -> None:
    launch = "out/runs/Aug21_15-01-13_node1"
    g = only(group([found("out/trainer_state.json"), found(f"{launch}/{EV}.1.0")]))
    assert (g.run, g.grouped_by) == ("out", "event files of the Trainer below its output folder")
    g = only(group([found("out/checkpoint-5/trainer_state.json"), found(f"{launch}/{EV}.1.0")]))
    assert g.run == "out"
    assert list(runs(f"{launch}/{EV}.1.0", f"out/runs/Aug22_15-01-13_node1/{EV}.2.0")) == [
        launch,
        "out/runs/Aug22_15-01-13_node1",
    ]


def test_settings_that_the_trainer_writes_below_its_launch_come_with_it() -> None:
    launch = "runs/Aug21_15-01-13_node1"
    g = only(
        group(
            [
                found("trainer_state.json"),
                found(f"{launch}/{EV}.1.0"),
                found(f"{launch}/1700000000.5/{EV}.1.1"),
            ]
        )
    )
    assert (g.run, [m.prefix for m in g.members]) == ("", ["", "", ""])


@pytest.mark.parametrize(
    ("out", "err"),
    [
        ("job.out", "job.err"),
        ("slurm-12_3.out", "slurm-12_3.err"),
        ("stdout.log", "stderr.log"),
        ("train.out", "train.err"),
        ("train_stdout.txt", "train_stderr.txt"),
        ("out.log", "err.log"),
        ("job.o123", "job.e123"),
    ],
)
def test_streams_of_one_job_are_one_run(out: str, err: str) -> None:
    g = only(group([found(f"x/{out}"), found(f"x/{err}")]))
    assert (g.run, g.grouped_by) == ("x", "output and error stream of one job")
    assert len({m.job for m in g.members}) == 1
    assert {m.prefix for m in g.members} == {""}


def test_streams_of_several_jobs_are_several_runs() -> None:
    names = ["x/a.out", "x/a.err", "x/b.out", "x/b.err", "x/c.log"]
    assert runs(*names) == {"x/a": names[:2], "x/b": names[2:4], "x/c": names[4:]}


def test_streams_of_ranks_are_ranks_of_one_run() -> None:
    g = only(group([found(f"x/log_rank{r}.{s}") for r in (0, 1) for s in ("out", "err")]))
    assert (g.run, [m.rank for m in g.members]) == ("x", [0, 0, 1, 1])


def test_one_stream_alone_is_a_log_like_others() -> None:
    assert list(runs("x/a.out", "x/b.out")) == ["x/a", "x/b"]


def csv_of(name: str, kind: str) -> Found:
    return Found(source=Source(path=Path(name), name=name, size_bytes=1), loader=LOADERS[kind])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("resnet18.csv", "ppo-seed3.csv", ["r/ppo-seed3", "r/resnet18"]),
        ("progress.csv", "monitor.csv", ["r"]),
        ("train_log.csv", "ppo-seed3.csv", ["r"]),
        ("exp1.csv", "exp1_monitor.csv", ["r"]),
        ("resnet18.csv", "ppo-seed3.jsonl", ["r"]),
        ("rewards-3.csv", "losses-3.csv", ["r/losses-3", "r/rewards-3"]),
        ("progress.csv", "log-rank1.csv", ["r"]),
    ],
    ids=[
        "named after runs",
        "named by tools",
        "one named by a tool",
        "one name goes on",
        "another suffix",
        "numbered",
        "a rank",
    ],
)
def test_tables_of_two_formats_side_by_side(one: str, other: str, expected: list[str]) -> None:
    groups = group([csv_of(f"r/{one}", "csv"), csv_of(f"r/{other}", "sb3-progress")])
    assert [g.run for g in groups] == expected
