from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from afterrun.loaders.discover import Found
from afterrun.loaders.names import Name
from afterrun.loaders.registry import Loader, Source
from afterrun.loaders.runs.assemble import Assembled, assemble
from afterrun.loaders.runs.member import Member
from afterrun.loaders.runs.placing import Loaded
from afterrun.loaders.schema import Batch, conform

S = 10**9
NAN = float("nan")


class _Made(Loader):
    family = "curves"

    def __init__(self, format_: str, snapshot: bool = False) -> None:
        self.format = format_  # type: ignore[misc]  # class data of real loaders
        self.snapshot = snapshot  # type: ignore[misc]

    def sniff(self, path: Path, head: bytes) -> bool:
        return True

    def load(self, source: Source) -> Iterator[Batch]:
        return iter(())


Rows = Sequence[tuple[str, int | None, float]]


def made(
    name: str,
    rows: Rows,
    *,
    kind: str = "csv",
    t0_s: float | None = None,
    prefix: str = "",
    rank: int | None = None,
) -> Loaded:
    """One file with rows (tag, step, value), one second apart from ``t0_s`` on."""
    loader = _Made(kind, snapshot=kind == "hf-trainer")
    frame = pl.DataFrame(
        {
            "tag": [t for t, _, _ in rows],
            "step": [s for _, s, _ in rows],
            "value": [v for _, _, v in rows],
            "wall_ns": [None if t0_s is None else int((t0_s + i) * S) for i in range(len(rows))],
        },
        schema={"tag": pl.String, "step": pl.Int64, "value": pl.Float64, "wall_ns": pl.Int64},
    )
    source = Source(path=Path(name), name=name, size_bytes=1)
    member = Member(found=Found(source=source, loader=loader), prefix=prefix, rank=rank)
    frames = {"metrics": conform("metrics", frame)} if rows else {}
    return Loaded(member=member, frames=frames, status="read" if rows else "empty")


def build(*files: Loaded, **overrides: Name) -> Assembled:
    return assemble("run", files, overrides)


def curve(a: Assembled, tag: str, rank: int | None = None) -> list[tuple[int | None, float]]:
    rows = a.tables.metrics.filter((pl.col("tag") == tag) & ~pl.col("superseded"))
    if rank is not None:
        rows = rows.filter(pl.col("rank") == rank)
    return list(zip(rows["step"], rows["value"], strict=True))


def line(tag: str, steps: Sequence[int], add: float = 0.0) -> Rows:
    return [(tag, s, s + add) for s in steps]


EV = "events.out.tfevents"


def test_two_trainings_in_one_folder_are_two_attempts_and_the_latest_is_the_curve() -> None:
    a = build(
        made(f"{EV}.1700000000.host.0.0", line("loss", range(50)), kind="tensorboard", t0_s=1_700_000_000),
        made(
            f"{EV}.1700005000.host.1.0", line("loss", range(50), 1.0), kind="tensorboard", t0_s=1_700_005_000
        ),
    )
    assert a.attempts == 2
    assert curve(a, "loss") == [(s, s + 1.0) for s in range(50)]
    assert a.tables.metrics["superseded"].sum() == 50


def test_concurrent_writers_are_ranks_not_restarts() -> None:
    files = [
        made(
            f"{EV}.1700000000.host.{100 + r}.0",
            line("loss", range(40), r),
            kind="tensorboard",
            t0_s=1_700_000_000 + r / 10,
        )
        for r in range(4)
    ]
    a = build(*files)
    assert a.attempts == 1
    assert [curve(a, "loss", r)[3] for r in range(4)] == [(3, 3.0), (3, 4.0), (3, 5.0), (3, 6.0)]
    assert a.tables.metrics["superseded"].sum() == 0
    assert a.tables.runs["world_size"].to_list() == [4]


def test_a_resume_inside_one_file() -> None:
    a = build(made("log.csv", [*line("loss", range(1, 121)), *line("loss", range(101, 151), 0.5)]))
    assert a.attempts == 2
    assert len(curve(a, "loss")) == 150
    assert a.tables.metrics["superseded"].sum() == 20


def test_all_points_on_one_step_have_no_step_and_are_kept() -> None:
    a = build(made("log.csv", [("loss", 0, float(i)) for i in range(80)]))
    assert curve(a, "loss") == [(None, float(i)) for i in range(80)]
    assert "no step recorded for loss" in a.notes[0]


def test_a_relogged_step_keeps_the_last_value() -> None:
    a = build(made("log.csv", [*line("t", range(30)), ("t", 0, 0.5), ("t", 10, 10.5), ("t", 20, 20.5)]))
    assert a.attempts == 1
    kept = dict(curve(a, "t"))
    assert (len(kept), kept[0], kept[10], kept[20]) == (30, 0.5, 10.5, 20.5)


def test_checkpoints_of_one_history_fold_into_it() -> None:
    rows = [*line("loss", range(100, 600, 100)), ("eval_loss", 500, NAN)]
    a = build(
        made("r/checkpoint-300/trainer_state.json", rows[:3], kind="hf-trainer"),
        made("r/checkpoint-500/trainer_state.json", rows, kind="hf-trainer"),
        made("r/trainer_state.json", rows, kind="hf-trainer"),
    )
    assert a.attempts == 1
    assert curve(a, "loss") == [(s, float(s)) for s in range(100, 600, 100)]
    assert a.tables.metrics["superseded"].sum() == 3 + 6
    notes = dict(zip(a.tables.sources["path"], a.tables.sources["note"], strict=True))
    assert notes["r/checkpoint-300/trainer_state.json"].startswith("the same history stands in ")
    assert notes["r/trainer_state.json"] == ""


def test_histories_that_differ_are_attempts() -> None:
    a = build(
        made("r/checkpoint-30/trainer_state.json", line("loss", [10, 20, 30]), kind="hf-trainer"),
        made("r/checkpoint-90/trainer_state.json", line("loss", [10, 20, 30, 90], 0.5), kind="hf-trainer"),
    )
    assert a.attempts == 2
    assert curve(a, "loss") == [(10, 10.5), (20, 20.5), (30, 30.5), (90, 90.5)]


def test_one_curve_in_two_formats_is_counted_once() -> None:
    a = build(
        made(
            f"{EV}.1700000000.host.1.0", line("train/loss", range(50)), kind="tensorboard", t0_s=1_700_000_000
        ),
        made("results.csv", line("train/loss", range(5))),
    )
    assert len(curve(a, "train/loss")) == 50
    assert a.tables.metrics["superseded"].sum() == 5
    assert a.attempts == 1
    assert any("the curve is taken from tensorboard" in n for n in a.notes)


def test_folders_name_their_tags_and_splits() -> None:
    a = build(
        made("logs/train/log.csv", line("epoch_loss", range(9)), prefix="train/"),
        made("logs/val/log.csv", line("epoch_loss", range(9)), prefix="val/"),
    )
    names = (
        a.tables.metrics.select(pl.col("tag", "metric", "split").cast(pl.String)).unique().sort("tag").rows()
    )
    assert names == [("train/epoch_loss", "loss", "train"), ("val/epoch_loss", "loss", "val")]


def test_the_epoch_logged_as_a_metric_fills_the_axis() -> None:
    rows = [("epoch", 0, 0.0), ("loss", 0, 3.0), ("loss", 5, 2.5), ("epoch", 10, 1.0), ("loss", 12, 2.0)]
    a = build(made("log.csv", rows))
    loss = a.tables.metrics.filter(pl.col("tag") == "loss")
    assert loss["epoch"].to_list() == [0.0, 0.0, 1.0]
    assert a.tables.metrics.filter(pl.col("tag") == "epoch")["value"].to_list() == [0.0, 1.0], (
        "axis rows stay rows"
    )


def test_axis_tags_tell_no_restart() -> None:
    rows = [
        ("a", 0, 2.3),
        ("epoch", 0, 0.0),
        ("a", 1, 2.2),
        ("epoch", 1, 0.0),
        ("b", 11, 0.3),
        ("epoch", 11, 0.0),
    ]
    more = [
        ("a", 2, 2.1),
        ("epoch", 2, 1.0),
        ("a", 3, 2.0),
        ("epoch", 3, 1.0),
        ("b", 23, 0.4),
        ("epoch", 23, 1.0),
    ]
    a = build(made("log.csv", [*rows, *more]))
    assert a.attempts == 1
    assert curve(a, "a") == [(0, 2.3), (1, 2.2), (2, 2.1), (3, 2.0)]


def test_what_the_user_says_a_tag_means_wins() -> None:
    a = build(made("log.csv", line("q", range(5))), q=Name("loss", "val", "", "min", "loss"))
    assert a.tables.metrics.select(pl.col("metric", "split").cast(pl.String)).unique().rows() == [
        ("loss", "val")
    ]


def test_nothing_disappears() -> None:
    files = [
        made(f"{EV}.1700000000.host.0.0", line("loss", range(50)), kind="tensorboard", t0_s=1_700_000_000),
        made(
            f"{EV}.1700005000.host.1.0", line("loss", range(30, 60)), kind="tensorboard", t0_s=1_700_005_000
        ),
        made(f"{EV}.1700009000.host.2.0", [], kind="tensorboard"),
    ]
    a = build(*files)
    assert a.tables.sources["rows"].to_list() == [50, 30, 0]
    assert a.tables.sources["status"].cast(pl.String).to_list() == ["read", "read", "empty"]
    assert len(a.tables.metrics) == 80
    assert a.tables.metrics["seq"].is_unique().all()


def test_a_run_that_ends_on_nan_says_so() -> None:
    a = build(made("log.csv", [*line("loss", range(5)), ("loss", 5, NAN)]))
    assert a.tables.runs["outcome"].cast(pl.String).to_list() == ["nan"]
