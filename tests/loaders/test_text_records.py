"""Records of several lines (drawn tables, results to be pasted) and bars drawn over and over, as trainers print them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from afterrun.loaders.formats.text.text_log import TextLog
from tests.support.loading import Read, claimed, read, write


def log(folder: Path, text: str) -> Read:
    path = write(folder, text, "train.log")
    assert claimed(path) == "text-log"
    return read(TextLog(), path)


# -- drawn tables ------------------------------------------------------------------------------------

RULE = "-" * 41 + "\n"


def sb3(i: int) -> str:
    """What PPO of Stable-Baselines3 prints after each rollout of 2048 steps."""
    return (
        f"{RULE}"
        "| rollout/                |             |\n"
        f"|    ep_len_mean          | {20 + i}.3        |\n"
        f"|    ep_rew_mean          | {i}1.5        |\n"
        "| time/                   |             |\n"
        f"|    fps                  | {i}00         |\n"
        f"|    iterations           | {i}           |\n"
        f"|    total_timesteps      | {2048 * i}        |\n"
        "| train/                  |             |\n"
        f"|    approx_kl            | 0.0083{i}     |\n"
        f"|    loss                 | {'nan ' if i == 3 else 8 - i}        |\n"
        f"|    value_loss           | 1.{i}e+03     |\n"
        f"{RULE}"
    )


def test_tables_of_stable_baselines3(tmp_path: Path) -> None:
    found = log(tmp_path, "Using cpu device\nLogging to logs\n" + "".join(sb3(i) for i in (1, 2, 3)))
    assert found.points("rollout/ep_len_mean") == [(2048, 21.3), (4096, 22.3), (6144, 23.3)]
    assert found.points("rollout/ep_rew_mean") == [(2048, 11.5), (4096, 21.5), (6144, 31.5)]
    assert found.points("time/total_timesteps") == [(2048, 2048), (4096, 4096), (6144, 6144)]
    assert found.values("train/value_loss") == [1100, 1200, 1300]
    assert found.values("train/loss")[:2] == [7, 6]
    assert math.isnan(found.values("train/loss")[2])
    assert found.tags() == [
        "rollout/ep_len_mean", "rollout/ep_rew_mean", "time/fps", "time/iterations", "time/total_timesteps",
        "train/approx_kl", "train/loss", "train/value_loss",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("|    value_loss           | 1.4", [7, 6, 5, 4]),  # within the last row
        ("|    approx_kl            | 0.00", [7, 6, 5]),
        (
            "|    total_timesteps      | 81",
            [7, 6, 5],
        ),  # the step is not known, so neither is where the rows lie
    ],
)
def test_the_last_table_of_a_killed_run(tmp_path: Path, left: str, expected: list[float]) -> None:
    whole = "".join(sb3(i).replace("nan ", "5") for i in (1, 2, 3, 4))
    found = log(tmp_path, whole[: whole.rindex(left[:25])] + left)
    assert found.values("train/loss") == expected
    kept = 4 if "total" not in left else 3
    assert found.steps("rollout/ep_rew_mean") == [2048, 4096, 6144, 8192][:kept]


def test_tables_without_sections(tmp_path: Path) -> None:
    baselines = "".join(
        f"{RULE}| ep_rew_mean | {i}.5 |\n| nupdates | {i} |\n| total_timesteps | {i}000 |\n{RULE}"
        for i in (1, 2, 3)
    )
    found = log(tmp_path, baselines)
    assert found.points("ep_rew_mean") == [(1000, 1.5), (2000, 2.5), (3000, 3.5)]
    spinning_up = "".join(
        f"{RULE}|             Epoch |        {i} |\n|      AverageEpRet |     22.{i} |\n"
        f"| TotalEnvInteracts |     {i}000 |\n{RULE}"
        for i in (1, 2, 3)
    )
    found = log(tmp_path / "b", spinning_up)
    assert found.points("AverageEpRet") == [(1000, 22.1), (2000, 22.2), (3000, 22.3)]
    counted = "".join(f"{RULE}| reward | 22.{i} |\n| iterations | {i} |\n{RULE}" for i in (1, 2, 3))
    assert log(tmp_path / "c", counted).points("reward") == [(1, 22.1), (2, 22.2), (3, 22.3)]


def test_lines_of_evaluations_beside_the_tables(tmp_path: Path) -> None:
    text = "".join(
        f"Eval num_timesteps={i}000, episode_reward={i}0.50 +/- 2.50\nEpisode length: {i}1.00 +/- 0.50\n"
        for i in (1, 2, 3)
    )
    assert log(tmp_path, text).points("Eval episode_reward") == [(1000, 10.5), (2000, 20.5), (3000, 30.5)]


def test_other_tables_are_no_metrics(tmp_path: Path) -> None:
    settings = f"{RULE}| lr | 0.1 |\n| batch_size | 32 |\n| loss_weight | 0.5 |\n{RULE}"
    counts = f"{RULE}| category | instances |\n|:---:|:---:|\n| person | 257253 |\n| car | 43533 |\n{RULE}"
    for i, text in enumerate((settings, counts)):
        assert claimed(write(tmp_path / str(i), text, "train.log")) is None


# -- results to be pasted ----------------------------------------------------------------------------

EVENTS = (
    "[11/18 18:14:00 d2.utils.events]:  eta: 1:02:03  iter: {0}  total_loss: 0.5{0}  time: 0.6875  data_time: 0.25  "
    "lr: 0.02  max_mem: 11810M\n"
)
TESTING = "[11/18 18:15:00 d2.evaluation.testing]: copypaste: "


def results(task: str, names: str, numbers: str) -> str:
    return f"{TESTING}Task: {task}\n{TESTING}{names}\n{TESTING}{numbers}\n"


def test_results_of_detectron2(tmp_path: Path) -> None:
    sizes = "AP,AP50,AP75,APs,APm,APl"
    found = log(
        tmp_path,
        EVENTS.format(19) + EVENTS.format(39)
        + results("bbox", sizes, "37.1234,58.2000,40.5000,nan,41.5000,48.2500")
        + results("segm", sizes, "33.0000,55.0000,30.0000,10.0000,41.0000,48.0000")
        + EVENTS.format(59) + results("bbox", sizes, "38.0000,59.0000,41.0000,nan,42.0000,49.0000")
        + TESTING + "accuracy=0.75\n",
    )  # fmt: skip
    assert found.points("total_loss") == [(19, 0.519), (39, 0.539), (59, 0.559)]
    assert found.points("bbox/AP") == [(39, 37.1234), (59, 38.0)]
    assert found.points("bbox/AP50") == [(39, 58.2), (59, 59.0)]
    assert all(math.isnan(v) for v in found.values("bbox/APs"))
    assert found.points("segm/APl") == [(39, 48.0)]
    assert found.points("accuracy") == [(59, 0.75)]


def test_results_that_do_not_fit_their_names_are_left_out(tmp_path: Path) -> None:
    text = "".join(map(EVENTS.format, (19, 39, 59))) + results("bbox", "AP,AP50,AP75", "37.1234,58.2000")
    assert [t for t in log(tmp_path, text).tags() if t.startswith("bbox")] == []


def test_results_of_an_evaluation_alone(tmp_path: Path) -> None:
    text = "".join(results("sem_seg", "mIoU,fwIoU", f"4{i}.0000,6{i}.0000") for i in (1, 2, 3))
    assert log(tmp_path, text).points("sem_seg/mIoU") == [(None, 41.0), (None, 42.0), (None, 43.0)]


# -- progress bars of Keras --------------------------------------------------------------------------

OVER = {"returns": "\r", "lines": "\n", "backspaces": "\b" * 70}


def drawing(batch: int, loss: float) -> str:
    return f"{batch:3d}/100 [{'=' * (batch // 4)}>{'.' * 5}] - ETA: 3s - loss: {loss:.4f}"


@pytest.mark.parametrize("way", OVER)
def test_keras_cut_in_the_first_epoch(tmp_path: Path, way: str) -> None:
    """Nothing is known but the averages drawn so far; they lie at their batches."""
    text = "Epoch 1/4\n" + "".join(OVER[way] + drawing(b, 3 - b / 50) for b in (1, 20, 45)) + "\nKilled\n"
    found = log(tmp_path, text)
    assert found.points("loss") == [(1, 2.98), (20, 2.6), (45, 2.1)]
    assert found.metrics["epoch"].to_list() == [1.0] * 3
    assert found.params == {"epochs": 4}
    assert any("no epoch came to its end" in n for n in found.notes)


def test_keras_cut_in_the_second_epoch_shows_the_first(tmp_path: Path) -> None:
    one = (
        "".join("\r" + drawing(b, 2.5) for b in (30, 60, 100))
        + "\r100/100 [==] - 5s 50ms/step - loss: 2.25\n"
    )
    found = log(tmp_path, f"Epoch 1/4\n{one}Epoch 2/4\n" + "".join("\r" + drawing(b, 1.5) for b in (30, 60)))
    assert found.points("loss") == [(1, 2.25)]
    assert not any("no epoch" in n for n in found.notes)


def test_keras_draws_the_whole_bar_twice(tmp_path: Path) -> None:
    """With an estimate when the last batch is done, and once more when the epoch is."""
    text = "".join(
        f"Epoch {e}/3\n\r{drawing(50, 9)}\r{drawing(100, 4 - e)}\r100/100 [==] - 5s 50ms/step - loss: {4 - e}.5 - val_loss: {e}\n"
        for e in (1, 2, 3)
    )
    found = log(tmp_path, text)
    assert found.points("loss") == [(1, 3.5), (2, 2.5), (3, 1.5)]
    assert found.points("val_loss") == [(1, 1), (2, 2), (3, 3)]


def test_an_evaluation_after_the_training_is_no_epoch_of_it(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e}/3\n100/100 [==] - 5s 50ms/step - loss: {4 - e}.5\n" for e in (1, 2, 3))
    found = log(tmp_path, text + "10/10 [==] - 0s 2ms/step - loss: 9.75\n")
    assert found.points("loss") == [(1, 3.5), (2, 2.5), (3, 1.5)]
    assert any("1 bar of an evaluation" in n for n in found.notes)


def test_a_number_within_a_name_belongs_to_it(tmp_path: Path) -> None:
    tables = "".join(
        f"{RULE}| total_timesteps         | {100 * i}  |\n| mean {last} episode reward | {i}.5 |\n{RULE}"
        for i, last in ((1, 100), (2, 100), (3, 50), (4, 100))
    )
    found = log(tmp_path, tables)
    assert found.points("mean 100 episode reward") == [(100, 1.5), (200, 2.5), (400, 4.5)]
    assert found.points("mean 50 episode reward") == [(300, 3.5)]


def test_two_records_in_the_words_of_a_trainer_are_a_log(tmp_path: Path) -> None:
    found = log(
        tmp_path, "".join(f"{{'loss': {2 - e}.5, 'top 5 acc': 0.{e}, 'epoch': {e}}}\n" for e in (1, 2))
    )
    assert found.values("loss") == [1.5, 0.5]
    assert found.values("top 5 acc") == [0.1, 0.2]
    assert claimed(write(tmp_path, "epoch 1 loss 1.5\nepoch 2 loss 0.5\n", "prose.log")) is None
