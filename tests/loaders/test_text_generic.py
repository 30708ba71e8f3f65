"""Lines of no known trainer: what counts as a metric, and everything that must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from afterrun.loaders.formats.text.text_log import TextLog
from tests.support.loading import Read, claimed, read, write

ROOT = Path(__file__).parents[2]


def log(folder: Path, text: str, name: str = "train.log") -> Read:
    path = write(folder, text, name)
    assert claimed(path) == "text-log"
    return read(TextLog(), path)


def repeat(template: str, *numbers: int) -> str:
    return "".join(template.format(i) + "\n" for i in numbers)


def test_epoch_lines_of_keys_and_values(tmp_path: Path) -> None:
    found = log(
        tmp_path, repeat("Epoch {0}/3 time=3.{0}s train_loss=0.432{0} val_loss=0.5 lr=1.5e-3", 1, 2, 3)
    )
    assert found.points("train_loss") == [(1, 0.4321), (2, 0.4322), (3, 0.4323)]
    assert found.points("val_loss") == [(1, 0.5), (2, 0.5), (3, 0.5)], (
        "a metric may stand still on a sure line"
    )
    assert found.values("time") == [3.1, 3.2, 3.3]
    assert found.values("lr") == [0.0015] * 3
    assert found.metrics["epoch"].unique().sort().to_list() == [1, 2, 3]
    assert found.params == {"epochs": 3}
    assert found.marks.select("kind", "line", "step").row(0) == ("finish", 3, 3)
    assert found.tags() == ["time", "train_loss", "val_loss", "lr"]


def test_steps_within_epochs_become_steps_of_the_run(tmp_path: Path) -> None:
    text = "".join(f"Epoch [{e}/3], Step [{s}/500], Loss: 0.{e}{s}\n" for e in (1, 2) for s in (250, 500))
    assert log(tmp_path, text).points("Loss") == [(250, 0.125), (500, 0.15), (750, 0.225), (1000, 0.25)]


def test_a_step_that_goes_on_over_epochs_is_the_step(tmp_path: Path) -> None:
    text = "".join(
        f"epoch {e} step {s}/4000 loss 0.{s}\n" for e, s in ((0, 100), (0, 200), (1, 300), (1, 400))
    )
    assert log(tmp_path, text).points("loss") == [(100, 0.1), (200, 0.2), (300, 0.3), (400, 0.4)]


def test_a_step_that_begins_again_in_every_epoch_is_none(tmp_path: Path) -> None:
    text = "".join(
        f"(epoch: {e}, iters: {i}, time: 0.312) G_GAN: 1.{e}{i} D_loss: 0.5{i}\n"
        for e in (1, 2, 3)
        for i in (10, 110)
    )
    found = log(tmp_path, text)
    assert found.steps("G_GAN") == [None] * 6
    assert found.metrics.filter(found.metrics["tag"] == "G_GAN")["epoch"].to_list() == [1, 1, 2, 2, 3, 3]


def test_the_mnist_example(tmp_path: Path) -> None:
    text = "".join(
        f"Train Epoch: {e} [0/60000 (0%)]\tLoss: 2.{e}\nTrain Epoch: {e} [640/60000 (1%)]\tLoss: 1.{e}\n"
        f"\nTest set: Average loss: 0.04{e}, Accuracy: 9844/10000 (98%)\n\n"
        for e in (1, 2)
    )
    found = log(tmp_path, text)
    assert found.points("Loss") == [(0, 2.1), (640, 1.1), (60000, 2.2), (60640, 1.2)]
    assert found.points("Test Average loss") == []
    more = log(
        tmp_path / "b",
        text + text.replace("Epoch: 1", "Epoch: 3").replace("Epoch: 2", "Epoch: 4").replace("0.04", "0.03"),
    )
    assert more.points("Test Average loss") == [
        (60000, 0.041),
        (120000, 0.042),
        (180000, 0.031),
        (240000, 0.032),
    ]
    assert more.values("Test Accuracy") == []  # the same four times: no measure of anything that moves


def test_lines_without_an_axis_follow_the_one_that_has_it(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch {e}/24\n----------\ntrain Loss: 0.{e}5 Acc: 0.7{e}\nval Loss: 0.{e}6 Acc: 0.6{e}\n\n"
        for e in range(4)
    )
    found = log(tmp_path, text)
    assert found.points("train Loss") == [(0, 0.05), (1, 0.15), (2, 0.25), (3, 0.35)]
    assert found.points("val Acc") == [(0, 0.6), (1, 0.61), (2, 0.62), (3, 0.63)]
    assert found.tags() == ["train Loss", "train Acc", "val Loss", "val Acc"]


@pytest.mark.parametrize(
    ("line", "points"),
    [
        ("epoch {0}, loss 0.4{0}, acc 0.9{0}", {"loss": 0.41, "acc": 0.91}),
        ("[Epoch {0}/200] [Batch 0/938] [D loss: 0.{0}] [G loss: 0.7{0}]", {"D loss": 0.1, "G loss": 0.71}),
        ("Iteration {0}: loss = 0.5{0}, grad_norm = 1.{0}", {"loss": 0.51, "grad_norm": 1.1}),
        ("step={0} loss=tensor(0.2{0}) acc=(0.5)", {"step": 1, "loss": 0.21, "acc": 0.5}),
        ("Validation @ step {0} - loss: 0.3{0} - took 250ms", {"Validation loss": 0.31}),
        ("global_step: {0} | loss: 1,23{0}.5 | step time: 250ms", {"loss": 1231.5, "step time": 0.25}),
        ("2024-05-01 10:00:0{0},250 - trainer - INFO - step {0} - loss: 0.4{0}", {"loss": 0.41}),
        ("2024-05-01 10:00:0{0}.250 | INFO     | __main__:train:42 - step {0} loss 0.4{0}", {"loss": 0.41}),
        ("INFO:trainer:step {0} loss=0.4{0}", {"loss": 0.41}),
        ("I0501 10:00:0{0}.250000 140 train.py:31] step {0} loss=0.4{0}", {"loss": 0.41}),
        ("[05/01 10:00:0{0}] step {0} loss=0.4{0}", {"loss": 0.41}),
        ("(RayTrainWorker pid=123, ip=10.0.0.1) step {0} loss=0.4{0}", {"loss": 0.41}),
    ],
)
def test_shapes_of_lines(tmp_path: Path, line: str, points: dict[str, float]) -> None:
    found = log(tmp_path, repeat(line, 1, 2, 3))
    assert {tag: found.values(tag)[0] for tag in points} == points
    assert found.steps(next(iter(points)))[0] in (1, None) or "Batch" in line


@pytest.mark.parametrize(
    "tag",
    [
        "loss_1", "top5", "top-5", "hits@10", "P@1", "R@5", "layer.0.grad_norm", "layers.11.mlp.0.norm", "blocks/3/norm", "f1", "BLEU-4",
        "mAP50", "mAP50-95", "mAP@0.5", "mAP@0.5:0.95", "mAP@.5:.95", "p2p_loss", "lr_0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("sep", [": ", "=", " = "])
def test_tags_with_numbers_are_read_whole(tmp_path: Path, tag: str, sep: str) -> None:
    found = log(tmp_path, repeat(f"step {{0}} loss{sep}0.5 {tag}{sep}0.2{{0}} acc{sep}0.9", 1, 2, 3))
    assert found.tags() == ["loss", tag, "acc"]
    assert found.points(tag) == [(1, 0.21), (2, 0.22), (3, 0.23)]


@pytest.mark.parametrize("key", ["1-gram", "top 1 acc"])
def test_a_key_is_never_cut_at_its_number(tmp_path: Path, key: str) -> None:
    """``top 1 acc`` and ``top 5 acc`` would both be ``acc``."""
    found = log(
        tmp_path,
        repeat(f"step {{0}}, loss: 0.5{{0}}, {key}: 0.2{{0}}, {key.replace('1', '5')}: 0.7", 1, 2, 3),
    )
    assert found.tags() == ["loss"]


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[rank3]: ", 3), ("[Rank 12] ", 12), ("7: ", 7), ("[default5]:", 5), ("[1,4]<stdout>: ", 4),
        ("2024-05-01 10:00:01 INFO [rank:2] ", 2), ("rank 6: ", 6), (" 0: 2024-05-01 10:00:01 INFO ", 0),
    ],
)  # fmt: skip
def test_ranks_of_launchers(tmp_path: Path, prefix: str, rank: int) -> None:
    found = log(tmp_path, repeat(prefix + "step {0} loss=0.4{0}", 1, 2, 3))
    assert found.metrics["rank"].to_list() == [rank] * 3
    assert found.points("loss") == [(1, 0.41), (2, 0.42), (3, 0.43)]


def test_a_number_before_a_colon_is_a_rank_only_before_lines_that_place_themselves(tmp_path: Path) -> None:
    found = log(tmp_path, repeat("{0}00: train_loss: 0.{0}", 1, 2, 3, 4))
    assert found.values("train_loss") == [0.1, 0.2, 0.3, 0.4]
    assert found.metrics["rank"].null_count() == 4


# -- nothing is made up ------------------------------------------------------------------------------

PROSE = """\
We trained for 20 epochs with lr=0.1 and batch size 32. In epoch 3 the loss was 0.5.
The model reaches an accuracy of 0.93 after 10 epochs.

    Epoch 1/2 loss=0.5
"""

CONFIG = "lr: 0.1\nbatch_size: 32\nepochs: 10\nloss: cross_entropy\nweight_decay: 0.0001\nloss_weight: 0.5\n"

YAML_OF_FOUR_RANKS = CONFIG * 4

SOURCE = """\
import torch
for epoch in range(10):
    loss = 0.5
    print(f"Epoch {epoch} loss={loss}")
    lr = 0.1
    if step % 100 == 0: loss = 0.25
"""

REQUIREMENTS = "numpy==1.26.4\ntorch==2.1.0\nloss==0.5.1\n"

COMMANDS = "+ python train.py --epochs 10 --lr 0.1 --loss 0.5\n" * 5

NVIDIA_SMI = (
    "| N/A   31C    P0            114W /  700W |    5232MiB /  81559MiB |      0%      Default |\n" * 8
)

WORDS = "step by step guide\nchapter 1: the loss\nchapter 2: 0.5 percent\nchapter 3: epoch\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", PROSE), ("out.txt", CONFIG), ("out.log", YAML_OF_FOUR_RANKS), ("code.txt", SOURCE), ("requirements.txt", REQUIREMENTS),
        ("job.out", COMMANDS), ("smi.log", NVIDIA_SMI), ("book.txt", WORDS), ("empty.log", ""), ("blank.log", "\n\n \n"), ("nul.log", "\0" * 500),
    ],
)  # fmt: skip
def test_other_texts_are_not_claimed(tmp_path: Path, name: str, text: str) -> None:
    assert claimed(write(tmp_path, text, name)) is None


@pytest.mark.parametrize(
    "name", ["README.md", "train.py", "config.yaml", "setup.cfg", "README", "job.sbatch", "table.tsv"]
)
def test_documents_and_sources_that_quote_a_log_are_not_claimed(tmp_path: Path, name: str) -> None:
    text = repeat("Epoch {0}/9 train_loss=0.{0} val_loss=0.{0}", 1, 2, 3, 4, 5)
    assert claimed(write(tmp_path, text, name)) is None
    assert claimed(write(tmp_path, text, "train.log")) == "text-log"


@pytest.mark.parametrize(
    "path", sorted(p for p in ROOT.glob("*") if p.suffix in {".md", ".toml", ".txt"} or p.name == "LICENSE")
)
def test_files_of_this_repository_are_no_logs(path: Path) -> None:
    assert claimed(path) is None


def test_listings_beside_metric_lines_give_no_metrics(tmp_path: Path) -> None:
    found = log(
        tmp_path, CONFIG * 4 + SOURCE + NVIDIA_SMI + COMMANDS + repeat("step {0} loss=0.{0}", 1, 2, 3)
    )
    assert found.points("loss") == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert found.tags() == ["loss"]


def test_generic_lines_beside_a_known_trainer_are_prose(tmp_path: Path) -> None:
    text = repeat("iter {0}: loss 0.{0}, time 12.5ms, mfu 3.1%", 1, 2, 3, 4) + repeat(
        "epoch {0} test_accuracy=0.9{0}", 1, 2, 3
    )
    assert log(tmp_path, text).tags() == ["loss", "time", "mfu"]


def test_a_value_of_words_is_no_value(tmp_path: Path) -> None:
    found = log(tmp_path, repeat("step {0} loss=0.{0} version=1.2.{0} eta=1:02:0{0} name=run{0}", 1, 2, 3))
    assert found.tags() == ["loss"]
