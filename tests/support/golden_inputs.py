"""Writes the inputs of the golden cases, each the way its framework does, with numbers a person can check.

``python -m tests.support.golden_inputs`` writes them again; ``tests/test_golden.py`` holds the two together.
"""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from afterrun.loaders.collect import collect
from afterrun.loaders.store import write_tables
from tests.support import (
    events,
    golden_json,
    golden_nsys,
    golden_profiles,
    golden_samplers,
    golden_sources,
    golden_text,
    golden_traces,
    wandb,
)
from tests.support.golden import GOLDEN

WALL = 1_700_000_000.0
Row = Sequence[object]


def decay(n: int, start: float = 2.0, end: float = 0.4, tau: float = 15.0) -> list[float]:
    """A loss that falls from start towards end, without noise."""
    return [round(end + (start - end) * math.exp(-i / tau), 5) for i in range(n)]


def shaken(values: Iterable[float], share: float, seed: int) -> list[float]:
    """The values with multiplicative noise of this standard deviation."""
    rng = random.Random(seed)
    return [round(v * math.exp(rng.gauss(0.0, share)), 5) for v in values]


def table(
    path: Path, header: Row, rows: Iterable[Row], *, sep: str = ",", end: str = "\n", top: str = ""
) -> None:
    """A delimited text file with ``top`` before the header."""
    lines = [sep.join(map(str, row)) + end for row in (header, *rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((top + "".join(lines)).encode())


def tensorboard_resumed(root: Path) -> None:
    """100 steps; killed at step 59 inside a record, resumed from step 40 ten minutes later."""
    loss = shaken(decay(100), 0.02, 1)

    def part(steps: range, wall: float) -> list[bytes]:
        written = []
        for s in steps:
            now = wall + s - steps[0]
            written.append(events.scalars(now, s, **{"loss/train": loss[s], "lr": 0.01}))
            if s % 10 == 9:
                written.append(events.scalars(now, s, **{"loss/val": round(loss[s] + 0.1, 5)}))
        return written

    folder = root / "resnet"
    events.write(folder / "events.out.tfevents.1700000000.node1.411.0", part(range(61), WALL))
    killed = folder / "events.out.tfevents.1700000000.node1.411.0"
    killed.write_bytes(killed.read_bytes()[:-5])
    events.write(folder / "events.out.tfevents.1700000660.node1.977.0", part(range(40, 100), WALL + 660))


def tensorboard_nan(root: Path) -> None:
    """Two writers of one process (``add_scalars``); the training loss is infinite at step 50 and NaN from 51."""
    loss = [*shaken(decay(50), 0.02, 2), math.inf, *[math.nan] * 9]
    name = "events.out.tfevents.1700000000.node1.52.{}"
    events.write(root / "gan" / name.format(0), events.curve("loss/train", loss))
    events.write(
        root / "gan" / "loss_parts" / name.format(1), events.curve("adversarial", decay(60, 0.9, 0.1))
    )


def csv_plain(root: Path) -> None:
    """Semicolons and decimal commas as a German spreadsheet saves them, CR LF, one cell not recorded."""
    rows = [
        [10 * (i + 1), f"{v:.5f}".replace(".", ","), "" if i == 3 else "0,001"]
        for i, v in enumerate(shaken(decay(40), 0.01, 3))
    ]
    table(root / "sweep" / "run-a.csv", ["step", "train_loss", "lr"], rows, sep=";", end="\r\n")
    rows = [[10 * (i + 1), v, 0.01] for i, v in enumerate(shaken(decay(40, end=0.7), 0.01, 4))]
    table(root / "sweep" / "run-b.csv", ["step", "train_loss", "lr"], rows)


def lightning(root: Path) -> None:
    """Training rows every 5 steps, a validation row at the end of each epoch of 20 steps, most cells empty."""
    rows: list[Row] = []
    loss = shaken(decay(200, tau=40.0), 0.02, 5)
    for step in range(200):
        if step % 5 == 4:
            rows.append([step // 20, step, loss[step], "", ""])
        if step % 20 == 19:
            rows.append([step // 20, step, "", round(loss[step] + 0.05, 5), round(1.0 - loss[step] / 3.0, 5)])
    table(
        root / "lightning_logs" / "version_0" / "metrics.csv",
        ["epoch", "step", "train_loss", "val_loss", "val_acc"],
        rows,
    )
    (root / "lightning_logs" / "version_0" / "hparams.yaml").write_text("lr: 0.001\n", "utf-8")


def keras_overfit(root: Path) -> None:
    """60 epochs; the validation loss is best at epoch 20 and rises by 60 %, the training loss goes on falling."""
    train = shaken(decay(60, 2.0, 0.05, 18.0), 0.01, 6)
    val = [round(0.7 + 0.0028 * abs(i - 20) * (i - 20 if i > 20 else 8) / 10, 5) for i in range(60)]
    rows = [
        [i, round(1 - t / 2.5, 5), t, round(1 - v / 2.5, 5), v]
        for i, (t, v) in enumerate(zip(train, shaken(val, 0.005, 7), strict=True))
    ]
    table(root / "mnist" / "training.log", ["epoch", "accuracy", "loss", "val_accuracy", "val_loss"], rows)


def ultralytics(root: Path) -> None:
    """Right-aligned names and numbers, epochs from 1."""
    names = ["epoch", "train/box_loss", "val/box_loss", "metrics/mAP50(B)", "lr/pg0"]
    box = shaken(decay(30), 0.01, 8)
    rows = [
        [f"{x:>23}" for x in (i + 1, b, round(b * 1.1, 5), round(1 - b / 2.2, 5), 0.01)]
        for i, b in enumerate(box)
    ]
    table(root / "runs" / "detect" / "train" / "results.csv", [f"{n:>23}" for n in names], rows)


def sb3(root: Path) -> None:
    """Two environments of one training write a monitor file each; the logger writes a table of updates."""
    for rank in (0, 1):
        top = "#" + json.dumps({"t_start": WALL + rank, "env_id": "CartPole-v1"}) + "\n"
        rows = [[10.0 + i, 10 + i, round(0.5 * (i + 1), 2)] for i in range(25)]
        table(root / "ppo" / f"{rank}.monitor.csv", ["r", "l", "t"], rows, top=top)
    names = ["time/iterations", "rollout/ep_rew_mean", "time/total_timesteps", "train/loss"]
    table(
        root / "ppo" / "progress.csv",
        names,
        [[i + 1, 20.0 + i, 2048 * (i + 1), round(1 / (i + 1), 5)] for i in range(12)],
    )


def chainer(root: Path) -> None:
    """A blank stands for what was not evaluated."""
    loss = decay(20)
    rows = [
        [i + 1, 100 * (i + 1), v, " " if i % 2 == 0 else round(v + 0.1, 5), 3.5 * (i + 1)]
        for i, v in enumerate(loss)
    ]
    names = ["epoch", "iteration", "main/loss", "validation/main/loss", "elapsed_time"]
    table(root / "seq2seq" / "log.csv", names, rows)


def hf_trainer(root: Path) -> None:
    """100 steps, an evaluation every 20; the state of ``checkpoint-40`` repeats the beginning."""
    loss = shaken(decay(20), 0.02, 9)
    history: list[dict[str, object]] = []
    for i, value in enumerate(loss):
        step = 5 * (i + 1)
        history.append(
            {"epoch": step / 50, "learning_rate": 5e-5 * (1 - step / 100), "loss": value, "step": step}
        )
        if step % 20 == 0:
            history.append({"epoch": step / 50, "eval_loss": round(value + 0.05, 5), "step": step})
    end = {"epoch": 2.0, "step": 100, "train_loss": 0.8, "train_runtime": 30.0}
    for folder, rows, step in (("", [*history, end], 100), ("checkpoint-40", history[:10], 40)):
        state = {"epoch": step / 50, "global_step": step, "log_history": rows, "max_steps": 100}
        path = root / "bert" / folder / "trainer_state.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(state, indent=1) + "\n", "utf-8")


def mirrored(root: Path) -> None:
    """The same loss in an event file (all points) and in a table (every tenth): one curve."""
    loss = shaken(decay(80), 0.02, 10)
    name = "events.out.tfevents.1700000000.node1.60.0"
    events.write(root / "vit" / name, events.curve("train_loss", loss))
    rows = [[s, loss[s], s / 40] for s in range(0, 80, 10)]
    table(root / "vit" / "metrics.csv", ["step", "train_loss", "epoch_done"], rows)


def wandb_offline(root: Path) -> None:
    """An offline run of 40 steps with what its client leaves beside it."""
    folder = root / "wandb" / "offline-run-20231114_221320-abc123"
    loss = shaken(decay(40), 0.01, 11)
    rows = [
        wandb.history(
            {"train/loss": v, "_step": i, "_timestamp": WALL + 10 * i, "_runtime": 10.0 * i}, step=i
        )
        for i, v in enumerate(loss)
    ]
    start = wandb.run({"lr": 0.1, ("model", "depth"): 2}, project="demo", name="calm-tree-1")
    wandb.write(folder / "run-abc123.wandb", [start, *rows, wandb.exit_record(0, 400)])
    files = folder / "files"
    files.mkdir()
    (files / "config.yaml").write_text("wandb_version: 1\n\nlr:\n  desc: null\n  value: 0.1\n", "utf-8")
    (files / "wandb-summary.json").write_text(json.dumps({"train/loss": loss[-1], "_step": 39}), "utf-8")
    (files / "wandb-metadata.json").write_text(
        json.dumps(
            {"python": "3.11.7", "host": "node1", "username": "ann", "gpu": "NVIDIA H100", "gpu_count": 8}
        ),
        "utf-8",
    )


def wandb_exports(root: Path) -> None:
    """A chart of two runs, a history and the table of runs, saved from the browser or by the API."""
    a, b = decay(12), decay(12, end=0.9)
    names = [f'"{run} - loss{end}"' for run in ("calm-tree-1", "red-sea-2") for end in ("", "__MIN", "__MAX")]
    rows: list[Row] = [
        [10 * i, x, x, x, y, round(y - 0.1, 5), round(y + 0.1, 5)]
        for i, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    table(root / "chart.csv", ['"Step"', *names], rows)
    rows = [["", i, WALL + i, v, "NaN" if i == 7 else 0.01] for i, v in enumerate(a)]
    table(root / "history" / "run.csv", ["", "_step", "_timestamp", "loss", "grad_norm"], rows)
    header = ["Name", "State", "Runtime", "Created", "lr", "loss"]
    rows = [
        ["calm-tree-1", "finished", 400, "2023-11-14T22:13:20.000Z", 0.1, a[-1]],
        ["red-sea-2", "crashed", 90, "2023-11-14T22:13:20.000Z", 1.0, b[-1]],
    ]
    table(root / "table" / "project.csv", header, rows)
    frame = pl.DataFrame({"_step": range(12), "_timestamp": [WALL + i for i in range(12)], "loss": a})
    (root / "parquet").mkdir()
    frame.write_parquet(root / "parquet" / "0000.parquet")


def exported(root: Path) -> None:
    """What ``afterrun export --format csv`` wrote about a run with superseded rows."""
    with TemporaryDirectory() as folder:
        mirrored(Path(folder))
        write_tables(collect([Path(folder)]).tables, root / "tables", "csv")


def no_log(root: Path) -> None:
    """Nothing here is a log, and an event file of zero bytes is one without values."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text("# A model\n", "utf-8")
    (root / "model.bin").write_bytes(b"\x7fELF" + bytes(60))
    (root / "config.json").write_text('{"lr": 0.1}\n', "utf-8")
    (root / "prices.csv").write_text("city,price\nBonn,3\nUlm,4\n", "utf-8")
    empty = root / "empty" / "events.out.tfevents.1700000000.node1.1.0"
    empty.parent.mkdir()
    empty.touch()


WRITERS: tuple[Callable[[Path], None], ...] = (
    chainer,
    csv_plain,
    exported,
    hf_trainer,
    keras_overfit,
    lightning,
    mirrored,
    no_log,
    sb3,
    tensorboard_nan,
    tensorboard_resumed,
    ultralytics,
    wandb_exports,
    wandb_offline,
    *golden_json.WRITERS,
    *golden_text.WRITERS,
    *golden_nsys.WRITERS,
    *golden_profiles.WRITERS,
    *golden_samplers.WRITERS,
    *golden_sources.WRITERS,
    *golden_traces.WRITERS,
)


def write(folder: Path) -> None:
    """All cases below a folder, each ``<case>/input`` from nothing."""
    for writer in WRITERS:
        case = folder / writer.__name__.replace("_", "-") / "input"
        shutil.rmtree(case, ignore_errors=True)
        writer(case)


if __name__ == "__main__":
    write(GOLDEN)
