"""Every grammar on lines as its trainer writes them, with every point that must come of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afterrun.loaders.formats.text.text_log import TextLog
from afterrun.loaders.textlog.grammar import grammars
from tests.support.loading import Read, claimed, read, write


def log(folder: Path, text: str | bytes, name: str = "train.log") -> Read:
    path = write(folder, text, name)
    assert claimed(path) == "text-log"
    return read(TextLog(), path)


def kinds(found: Read) -> list[tuple[str, int | None, int | None]]:
    """(kind, line, step) of all marks by line."""
    rows = found.marks.sort("line").select("kind", "line", "step").iter_rows()
    return [(str(kind), line, step) for kind, line, step in rows]


def ns(*args: int, micro: int = 0) -> int:
    return int(datetime(*args, tzinfo=UTC).timestamp()) * 10**9 + micro * 1000  # type: ignore[misc,arg-type]  # numbers of a date


def test_names_are_unique_and_trainers_come_first() -> None:
    found = grammars()
    assert len({g.name for g in found}) == len(found) >= 13
    uses = [g.use for g in found]
    assert uses == sorted(uses, key=["own", "beside", "generic"].index)


# -- Megatron ----------------------------------------------------------------------------------------

MEGATRON = """\
  adam_beta1 ...................................... 0.9
  train_iters ..................................... 1000
  fp16 ............................................ True
 iteration       10/    1000 | consumed samples:           40 | elapsed time per iteration (ms): 2152.2 | learning rate: 0.000E+00 | global batch size:     4 | loss scale: 8388608.0 | number of skipped iterations:  10 | number of nan iterations:   0 |
time (ms) | forward-compute: 306.62 | batch-generator: 2.97
 iteration       20/    1000 | consumed samples:           80 | elapsed time per iteration (ms): 1354.9 | learning rate: 3.750E-05 | global batch size:     4 | lm loss: 1.203115E+01 | loss scale: 32768.0 | grad norm: 16.999 | number of skipped iterations:   8 | number of nan iterations:   0 |
[Rank 7] (after 20 iterations) memory (MB) | allocated: 21633.5 | max allocated: 24432.25[Rank 6] (after 20 iterations) memory (MB) | allocated: 21000.5 | max allocated: 24000.25
-----------------------------------------------------------------
 validation loss at iteration 20 | lm loss value: 8.017406E+00 | lm loss PPL: 3.033300E+03 |
 iteration       30/    1000 | consumed samples:          120 | elapsed time per iteration (ms): 1376.1 | learning rate: 1.500E-04 | global batch size:     4 | lm loss: 2.247505E+01 | loss scale: 16384.0 | grad norm: 5.275 | number of skipped iterations:   1 | number of nan iterations:   0 |
  successfully saved checkpoint at iteration      30 to out
"""


def test_megatron(tmp_path: Path) -> None:
    found = log(tmp_path, MEGATRON)
    assert found.points("lm loss") == [(20, 12.03115), (30, 22.47505)]
    assert found.points("elapsed time per iteration") == [
        (10, pytest.approx(2.1522)),
        (20, pytest.approx(1.3549)),
        (30, pytest.approx(1.3761)),
    ]
    assert found.points("forward-compute") == [(10, pytest.approx(0.30662))]
    assert found.points("validation/lm loss") == [(20, 8.017406)]
    assert found.points("validation/lm loss PPL") == [(20, 3033.3)]
    assert found.points("number of nan iterations") == [(10, 0), (20, 0), (30, 0)]
    memory = found.metrics.sort("seq").filter(found.metrics["tag"] == "memory (MB) allocated")
    assert list(zip(memory["rank"], memory["step"], memory["value"], strict=True)) == [
        (7, 20, 21633.5),
        (6, 20, 21000.5),
    ]
    assert found.params == {"adam_beta1": 0.9, "train_iters": 1000, "fp16": True, "max_steps": 1000}
    assert kinds(found) == [("checkpoint", 11, 30)]


def megatron_line(i: int, loss: str, grad: str) -> str:
    return f" iteration {i:8d}/    8000 | learning rate: 6.680E-06 |{loss} loss scale: 1.0 | grad norm: {grad} | number of nan iterations:   0 |\n"


def test_megatron_says_where_the_loss_is_no_longer_written(tmp_path: Path) -> None:
    good = "".join(megatron_line(i, f" lm loss: {9 - i}.0E-01 |", "0.75") for i in range(3))
    found = log(tmp_path, good + "".join(megatron_line(i, "", "nan") for i in range(3, 6)))
    assert found.steps("lm loss") == [0, 1, 2]
    assert [math.isnan(v) for v in found.values("grad norm")] == [False] * 3 + [True] * 3
    assert kinds(found) == [("nan", 4, 3)]


# -- GPT-2 and its relatives -------------------------------------------------------------------------


def test_nanogpt(tmp_path: Path) -> None:
    found = log(
        tmp_path,
        "step 0: train loss 4.4501, val loss 4.4402\niter 0: loss 4.4512, time 23218.37ms, mfu -100.00%\n"
        "iter 1: loss 4.4586, time 193.77ms, mfu 3.50%\nsaving checkpoint to out\nstep 2: train loss nan, val loss 4.0\n",
    )
    assert found.points("loss") == [(0, 4.4512), (1, 4.4586)]
    assert found.points("val loss") == [(0, 4.4402), (2, 4.0)]
    assert found.values("train loss")[0] == 4.4501
    assert math.isnan(found.values("train loss")[1])
    assert found.values("time") == [pytest.approx(23.21837), pytest.approx(0.19377)]
    assert found.points("mfu") == [(0, -100.0), (1, 3.5)]
    assert kinds(found) == [("checkpoint", 4, 1)]


def test_build_nanogpt_names_the_split_only(tmp_path: Path) -> None:
    found = log(tmp_path, "0 val 10.9310\n0 hella 0.2413\n0 train 10.934416\n1 train 9.5\n", "log.txt")
    assert found.points("val/loss") == [(0, 10.931)]
    assert found.points("train/loss") == [(0, 10.934416), (1, 9.5)]
    assert found.points("hella") == [(0, 0.2413)]


LLMC = """\
val loss 11.008742
step    1/4 | loss 11.010252 (+nanz)| norm 15.1374 (+nanz)| lr 8.57e-07 | 4621.47 ms | 29.2% bf16 MFU | 113446 tok/s
step    2/4 | loss 10.958635 (-0.30z)| norm 15.1830 (+1.20z)| lr 1.71e-06 | 4202.31 ms | 32.1% bf16 MFU | 124761 tok/s
val loss 10.5
evaluating HellaSwag: 0/1256\revaluating HellaSwag: 10/1256\rHellaSwag: 3053/10042 = 0.304023
step    3/4 | loss     nan (+nanz)| norm    nan (slurmstepd: error: *** JOB 7 ON g1 CANCELLED AT 2024-10-11T13:44:45 DUE TO TIME LIMIT ***
"""


def test_llmc(tmp_path: Path) -> None:
    found = log(tmp_path, LLMC)
    assert found.points("loss")[:2] == [(1, 11.010252), (2, 10.958635)]
    assert math.isnan(found.values("loss")[2]), "the line that breaks off still tells its loss"
    assert found.steps("loss") == [1, 2, 3]
    assert found.points("norm") == [(1, 15.1374), (2, 15.183)], "the cell that breaks off is no number"
    assert found.points("val loss") == [(0, 11.008742), (2, 10.5)]
    assert found.points("HellaSwag") == [(2, 0.304023)]
    assert found.values("step_time") == [pytest.approx(4.62147), pytest.approx(4.20231)]
    assert found.values("mfu") == [29.2, 32.1]
    assert found.values("tok/s") == [113446, 124761]
    assert kinds(found) == [("time_limit", 6, 3)]
    assert found.marks["t_ns"].to_list() == [ns(2024, 10, 11, 13, 44, 45)]
    assert found.marks["text"][0].startswith("slurmstepd: error: *** JOB 7")


def test_llmc_main_log(tmp_path: Path) -> None:
    found = log(
        tmp_path, "s:0 tel:11.0095\ns:0 trl:11.0116 lr:0.000001 norm:14.96\ns:1 eval:0.3054\n", "main.log"
    )
    assert found.points("val/loss") == [(0, 11.0095)]
    assert found.points("train/loss") == [(0, 11.0116)]
    assert found.points("norm") == [(0, 14.96)]
    assert found.points("hellaswag") == [(1, 0.3054)]


def test_modded_nanogpt_behind_its_source(tmp_path: Path) -> None:
    code = 'lr = 0.1\nfor step in range(10):\n    print0(f"step:{step}/{n} val_loss:{val_loss:.4f}")\n    loss = 0.5, 3\n'
    rows = (
        "step:0/2 val_loss:10.8258 train_time:0ms step_avg:nanms\nstep:1/2 train_loss:9.5 train_time:250ms step_avg:250.00ms\n"
        "step:2/2 val_loss:9.25 train_time:8.5s step_avg:200.50ms\nfinal_roundtrip val_loss:3.1 val_bpb:1.2\n"
    )
    found = log(tmp_path, code + rows, "run.txt")
    assert found.points("val_loss") == [(0, 10.8258), (2, 9.25)], "the last evaluation is another measure"
    assert found.points("train_time") == [(0, 0), (1, 0.25), (2, 8.5)]
    assert math.isnan(found.values("step_avg")[0])
    assert found.tags() == ["val_loss", "train_time", "step_avg", "train_loss"]
    assert kinds(found) == [("finish", 7, 2)]
    assert found.params == {"max_steps": 2}


# -- other trainers ----------------------------------------------------------------------------------


def test_olmo_blocks(tmp_path: Path) -> None:
    head = "2024-01-01 00:00:0{0}.123\tserver:0\tolmo.train:967\tINFO\t[step={0}0/10000,epoch=0]\n"
    rows = "    train/CrossEntropyLoss=9.{0}\n    train/Perplexity=8,64{0}\n    System/Peak GPU Memory (MB)=41,943\n"
    found = log(tmp_path, "".join((head + rows).format(i) for i in (1, 2)) + "\nstray/key=5\n")
    assert found.points("train/CrossEntropyLoss") == [(10, 9.1), (20, 9.2)]
    assert found.points("train/Perplexity") == [(10, 8641), (20, 8642)]
    assert found.values("System/Peak GPU Memory (MB)") == [41943, 41943]
    assert "stray/key" not in found.tags(), "a line below no header is prose"
    first = found.metrics.sort("seq").row(0, named=True)
    assert (first["epoch"], first["wall_ns"]) == (0.0, ns(2024, 1, 1, 0, 0, 1, micro=123_000))
    assert found.params == {"max_steps": 10000}


def test_detectron2_with_colours(tmp_path: Path) -> None:
    line = (
        "\x1b[32m[11/18 18:14:{1} d2.utils.events]: \x1b[0m eta: 1 day, 2:18:00  iter: {0}  total_loss: 0.14{0}  "
        "time: 0.6875  last_time: 0.7  data_time: 0.3772  lr: 0.02038  max_mem: 11810M\n"
    )
    found = log(tmp_path, "".join(line.format(i, i + 10) for i in (19, 39, 59)), "log.txt")
    assert found.points("total_loss") == [(19, 0.1419), (39, 0.1439), (59, 0.1459)]
    assert found.points("max_mem")[0] == (19, 11810)
    assert found.tags() == ["iter", "total_loss", "time", "last_time", "data_time", "lr", "max_mem"]
    assert found.metrics["wall_ns"].null_count() == len(found.metrics), "a date without a year is none"


def test_openmmlab_training_and_validation(tmp_path: Path) -> None:
    at = "2023/06/05 20:09:5{} - mmengine - INFO - "
    found = log(
        tmp_path,
        at.format(0)
        + "Epoch(train)  [1][3/6]  lr: 4.0e-03  eta: 2:05:23  time: 7.35  data_time: 6.79  loss: 0.08\n"
        + at.format(1)
        + "Epoch(train)  [2][6/6]  lr: 4.0e-03  eta: 2:05:23  time: 7.25  data_time: 6.80  loss: 0.07\n"
        + at.format(2)
        + "Epoch(val) [2][4/4]    coco/AP: 0.580725  PCK: 0.930839  data_time: 1.231123\n",
    )
    assert found.points("loss") == [(3, 0.08), (12, 0.07)]
    assert found.points("coco/AP") == [(12, 0.580725)]
    assert found.points("data_time") == [(3, 6.79), (12, 6.8)]
    assert found.points("val/data_time") == [(12, 1.231123)]
    assert "eta" not in found.tags()
    assert found.metrics["epoch"].unique().sort().to_list() == [1.0, 2.0]
    iters = log(
        tmp_path / "b", "".join(f"Iter(train) [  {i}/160000] lr: 1.0e-2 loss: 0.{i}\n" for i in (50, 60, 70))
    )
    assert iters.points("loss") == [(50, 0.5), (60, 0.6), (70, 0.7)]
    assert iters.params == {"max_steps": 160000}


def test_mmengine_counts_iterations(tmp_path: Path) -> None:
    train = (
        "06/05 20:0{0}:50 - mmengine - INFO - Iter(train) [ {0}50/1000]  lr: 1.0000e-02  eta: 1 day, 10:05:23  time: 0.{0}234  "
        "data_time: 0.0{0}  memory: 5021  loss: 1.{0}  decode.loss_ce: 0.{0}\n"
    )
    val = "06/05 20:09:50 - mmengine - INFO - Iter(val) [{0}00/500]  "
    text = "".join(map(train.format, (1, 2, 3))) + (
        val.format(1) + "  eta: 0:01:00  time: 0.5000  data_time: 0.0500  memory: 900  \n"
        + val.format(5) + "  aAcc: 81.5000  mIoU: 40.2500  data_time: 0.0012  time: 0.0512\n"
    )  # fmt: skip
    found = log(tmp_path, text)
    assert found.points("time") == [(150, 0.1234), (250, 0.2234), (350, 0.3234)], "seconds of an iteration"
    assert found.points("data_time") == [(150, 0.01), (250, 0.02), (350, 0.03)]
    assert found.values("memory") == [5021] * 3
    assert found.points("decode.loss_ce") == [(150, 0.1), (250, 0.2), (350, 0.3)]
    assert found.points("mIoU") == [(350, 40.25)]
    assert found.points("val/time") == [(350, 0.5), (350, 0.0512)], "of another set"
    assert "eta" not in found.tags()
    assert found.params == {"max_steps": 1000}


def test_mmcv_names_the_length_of_the_validation_only(tmp_path: Path) -> None:
    at = "2021-06-05 20:00:50,123 - mmdet - INFO - "
    train = "Epoch [{0}][{1}/7330]\tlr: 1.978e-03, eta: 22:15:00, time: 0.912, data_time: 0.058, memory: 3808, loss: {0}.{1}\n"
    text = "".join(at + train.format(e, b) for e, b in ((1, 50), (1, 100), (2, 50)))
    pasted = "bbox_mAP: 0.3740, bbox_mAP_copypaste: 0.374 0.581 0.402 0.212 0.409 0.485\n"
    found = log(
        tmp_path, text + at + "Epoch(val) [2][5000]\t" + pasted + "Epoch(test) [10/10]  bbox_mAP: 0.25\n"
    )
    assert found.points("loss") == [(50, 1.5), (100, 1.1), (7380, 2.5)]
    assert found.points("bbox_mAP") == [(14660, 0.374)]
    assert found.points("test/bbox_mAP") == [(14660, 0.25)]
    assert "bbox_mAP_copypaste" not in found.tags()


def test_word_language_model(tmp_path: Path) -> None:
    rows = "".join(
        f"| epoch   {e} |   {b}/ 2983 batches | lr 20.00 | ms/batch 50.10 | loss  {v} | ppl   456.1\n"
        for e, b, v in ((1, 200, "6.12"), (1, 400, "5.9"), (2, 200, " nan"))
    )
    found = log(
        tmp_path,
        rows[: rows.index("| epoch   2")]
        + "-" * 89 + "\n| end of epoch   1 | time: 155.21s | valid loss  5.10 | valid ppl   164.02\n" + "-" * 89 + "\n"
        + rows[rows.index("| epoch   2") :] + "| End of training | test loss  4.80 | test ppl 121.5\n",
    )  # fmt: skip
    assert found.points("loss")[:2] == [(200, 6.12), (400, 5.9)]
    assert found.steps("loss")[2] == 2983 + 200
    assert math.isnan(found.values("loss")[2])
    assert found.points("valid loss") == [(2983, 5.1)]
    assert found.points("time") == [(2983, 155.21)]
    assert found.points("ms/batch")[0] == (200, 50.1)
    assert kinds(found) == [("finish", 7, 3183)]


def test_meters_of_the_imagenet_example(tmp_path: Path) -> None:
    line = "Epoch: [{0}][{1:4d}/100]\tTime  0.543 ( 3.123)\tLoss 6.{0}{1}e+00 (7.0012e+00)\tAcc@1   1.00 (  0.10)\n"
    text = "".join(line.format(e, b) for e in (0, 1) for b in (0, 50))
    found = log(
        tmp_path,
        text + "Test: [ 0/10]\tTime 1.5 ( 1.0)\tLoss 5.5e+00 (5.0e+00)\n * Acc@1 45.200 Acc@5 70.125\n",
    )
    assert found.points("Loss") == [(0, 6.00), (50, 6.050), (100, 6.10), (150, 6.150)]
    assert found.points("Acc@1")[0] == (0, 1.0)
    assert found.points("test/Loss") == [(0, 5.5)]
    assert found.points("val/Acc@1") == [(200, 45.2)]
    assert found.points("val/Acc@5") == [(200, 70.125)]


def test_deepspeed(tmp_path: Path) -> None:
    at = "[2023-05-25 06:38:2{0},358] [INFO] [logging.py:60:log_dist] "
    text = (
        at + "[Rank 0] step={0}0, skipped=0, lr=[0.00{0}, 0.5], mom=[(0.9, 0.999)]\n"
        + at + "[Rank 0] time (ms) | fwd: 12.5 | bwd: 25.{0}\n"
        "steps: {0}0 loss: 5.1{0} iter time (s): 1.2{0} samples/sec: 12.3\n"
    )  # fmt: skip
    found = log(tmp_path, "".join(text.format(i) for i in (1, 2, 3)))
    assert found.points("lr") == [(10, 0.001), (20, 0.002), (30, 0.003)]
    assert found.points("mom") == [(10, 0.9), (20, 0.9), (30, 0.9)]
    assert found.points("bwd") == [
        (10, pytest.approx(0.0251)),
        (20, pytest.approx(0.0252)),
        (30, pytest.approx(0.0253)),
    ]
    assert found.points("loss") == [(10, 5.11), (20, 5.12), (30, 5.13)]
    assert found.points("iter time") == [(10, 1.21), (20, 1.22), (30, 1.23)]
    rows = found.metrics.filter(found.metrics["tag"] == "lr")
    assert rows["rank"].to_list() == [0, 0, 0]
    assert rows["wall_ns"][0] == ns(2023, 5, 25, 6, 38, 21, micro=358_000)


# -- bars and dictionaries ---------------------------------------------------------------------------

KERAS2 = "100/100 [==============================] - 5s 50ms/step - loss: 0.{0} - accuracy: 0.9 - val_loss: 0.{1}\n"
KERAS3 = (
    "\r\x1b[1m100/100\x1b[0m \x1b[32m━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m5s\x1b[0m 50ms/step - accuracy: 0.9 - loss: 0.{0} - "
    "val_loss: 0.{1}\n"
)


@pytest.mark.parametrize(
    ("drawing", "last"),
    [
        ("\r45/100 [====>.....] - ETA: 3s - loss: 7.5 - accuracy: 0.5" + "\b" * 60, KERAS2),
        (
            "\r\x1b[1m45/100\x1b[0m \x1b[37m━━━━━━━━\x1b[0m \x1b[1m12s\x1b[0m 40ms/step - accuracy: 0.5 - loss: 7.5",
            KERAS3,
        ),
        ("", "100/100 - 5s - loss: 0.{0} - accuracy: 0.9 - val_loss: 0.{1} - 5s/epoch - 50ms/step\n"),
    ],
)
def test_keras_counts_the_last_drawing_of_a_bar(tmp_path: Path, drawing: str, last: str) -> None:
    text = "".join(f"Epoch {e}/4\n{drawing}{last.format(9 - e, 8 - e)}" for e in (1, 2, 3))
    found = log(tmp_path, text)
    assert found.points("loss") == [(1, 0.8), (2, 0.7), (3, 0.6)]
    assert found.points("val_loss") == [(1, 0.7), (2, 0.6), (3, 0.5)]
    assert found.points("step_time") == [(e, pytest.approx(0.05)) for e in (1, 2, 3)]
    assert found.params == {"epochs": 4}
    assert kinds(found) == []


def test_trainer_dictionaries_between_bars(tmp_path: Path) -> None:
    bar = "\r 10%|█         | {0}0/1000 [00:10<01:30, 10.0{0}it/s]"
    row = "{{'loss': {1}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.{0}}}\n"
    text = "".join((bar + row).format(i, v) for i, v in ((1, "2.5"), (2, "nan"), (3, "'1.5'")))
    found = log(tmp_path, text + "{'eval_loss': 0.5, 'epoch': 1.0}\n{'train_runtime': 12.5, 'epoch': 1.0}\n")
    assert found.values("loss")[::2] == [2.5, 1.5]
    assert math.isnan(found.values("loss")[1])
    assert found.steps("loss") == [None] * 3, "the bar before the row may be stale"
    assert found.metrics.filter(found.metrics["tag"] == "loss")["epoch"].to_list() == [0.1, 0.2, 0.3]
    assert found.points("eval_loss") == [(None, 0.5)]
    assert [k for k, _, _ in kinds(found)] == ["finish"]


def test_a_row_of_training_that_tells_the_time_is_no_end(tmp_path: Path) -> None:
    """The trainer adds its running time to each row where it counts tokens."""
    row = "{{'loss': '2.4', 'epoch': '0.{0}', 'train_runtime': '1.{0}', 'train_tokens_per_second': '86.1'}}\n"
    found = log(tmp_path, "".join(row.format(i) for i in (2, 4, 6)))
    assert len(found.values("train_runtime")) == 3
    assert kinds(found) == []


def test_configurations_printed_as_dictionaries_are_no_metrics(tmp_path: Path) -> None:
    path = write(tmp_path, "{'batch_size': 32, 'lr': 0.1, 'epochs': 10}\n" * 4, "train.log")
    assert claimed(path) is None


def test_tqdm_postfix_is_a_metric_of_every_drawing(tmp_path: Path) -> None:
    bar = "\rEpoch {0}:  {1}%|####5     | {1}/100 [00:12<00:15,  3.60it/s, loss=0.{2}, v_num=0]"
    found = log(tmp_path, "".join(bar.format(e, b, 9 - e) for e in (0, 1) for b in (20, 60, 100)))
    assert found.points("loss") == [(20, 0.9), (60, 0.9), (100, 0.9), (120, 0.8), (160, 0.8), (200, 0.8)]
    assert "v_num" not in found.tags()


def test_bars_of_downloads_and_tokenisers_are_none(tmp_path: Path) -> None:
    text = "".join(f"\rDownloading:  {i}%|#    | {i}/100 [00:01<00:01, {i}.5it/s]" for i in range(10, 90, 10))
    text += "".join(
        f"\rMap (num_proc=4):  {i}%|#    | {i}/100 [00:01<00:01, {i}.5 examples/s]" for i in range(10, 90, 10)
    )
    assert claimed(write(tmp_path, text, "train.log")) is None


# -- MLPerf ------------------------------------------------------------------------------------------


def mllog(key: str, value: str, ms: int, meta: str = "", event: str = "POINT_IN_TIME") -> str:
    return (
        f':::MLLOG {{"namespace": "", "time_ms": {ms}, "event_type": "{event}", "key": "{key}", "value": {value}, '
        f'"metadata": {{"file": "a.py", "lineno": 3{meta}}}}}\n'
    )


def test_mlperf(tmp_path: Path) -> None:
    t = 1_700_000_000_000
    text = (
        mllog("global_batch_size", "8", t) + mllog("submission_org", '"Dell"', t)
        + mllog("run_start", "null", t, event="INTERVAL_START") * 2
        + " 0: " + mllog("train_loss", "2.5", t + 1000, ', "samples_count": 80, "lr": 0.0004')
        + "12:" + mllog("train_loss", "1.5", t + 2000, ', "samples_count": 160, "lr": 0.0003')
        + mllog("eval_accuracy", "0.75", t + 3000, ', "step_num": 2000, "epoch_num": 1.5, "metric": "CLIP"')
        + mllog("run_stop", "null", t + 4000, ', "status": "success"', "INTERVAL_END")
    )  # fmt: skip
    found = log(tmp_path, text, "result_0.txt")
    assert found.points("train_loss") == [(80, 2.5), (160, 1.5)]
    assert found.points("lr") == [(80, 0.0004), (160, 0.0003)]
    assert found.points("eval_accuracy/CLIP") == [(2000, 0.75)]
    row = found.metrics.filter(found.metrics["tag"] == "eval_accuracy/CLIP").row(0, named=True)
    assert (row["epoch"], row["wall_ns"]) == (1.5, (t + 3000) * 10**6)
    assert found.params == {"global_batch_size": 8, "submission_org": "Dell"}
    assert kinds(found) == [("start", 3, None), ("finish", 8, 2000)]
    assert found.marks.sort("line")["text"].to_list() == ["run_start", "run_stop success"]


def test_mlperf_before_v07(tmp_path: Path) -> None:
    line = (
        ':::MLPv0.5.0 resnet 154163569{0}.5 (train.py:34) eval_accuracy: {{"epoch": {0}, "value": 0.7{0}}}\n'
    )
    text = ":::MLPv0.5.0 resnet 1541635690.5 (train.py:3) opt_learning_rate: 0.1\n"
    found = log(tmp_path, text + "".join(line.format(i) for i in (1, 2, 3)))
    assert found.points("eval_accuracy") == [(1, 0.71), (2, 0.72), (3, 0.73)]
    assert found.metrics["wall_ns"][0] == 1541635691_500_000_000
    assert found.params == {"opt_learning_rate": 0.1}
