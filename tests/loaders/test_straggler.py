"""Lines of Megatron-LM's straggler detector, alone and among the lines of a training log."""

from __future__ import annotations

from pathlib import Path

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import write
from tests.support.sampled import sampled

REPORT = (
    " 0: INFO:megatron.core.utils:[2024-03-14 23:{:02d}:56] | MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: 3468.20ms/0 "
    "| MnPwr/Rnk: 601796W/8 | MxPwr/Rnk: 683801W/18 | MnTmp/Rnk: 52C/0 | MxTmp/Rnk: 65C/21 | MnUtl/Rnk: 97%/8 | MxUtl/Rnk: 100%/6 "
    "| MnClk/Rnk: 1950MHz/28 | MxClk/Rnk: 1980MHz/0 | MnDRtt/Rnk: 14.27ms/23 | MxDRtt/Rnk: 34.65ms/3 | MnEtpt/Rnk: 296.02TF/0 | MxEtpt/Rnk: 297.32TF/8\n"
)
LISTS = (
    " 0: INFO:megatron.core.utils:^^^^ Bottom 2 Ranks with lowest  Etpt(TF): 296.02/0, 296.17/2,\n"
    " 0: INFO:megatron.core.utils:^^^^ Top    2 Ranks with highest Etpt(TF): 297.28/15, 297.32/8,\n"
)
TRAINING = " [2024-03-14 23:{0:02d}:50] iteration {0:8d}/ 100 | elapsed time per iteration (ms): 3453.0 | lm loss: 2.5E+00 | grad norm: 1.0 |\n"
T_NS = 1_710_457_616_000_000_000


def test_extremes_with_their_ranks(tmp_path: Path) -> None:
    read = sampled(write(tmp_path, REPORT.format(6) + LISTS, "straggler.log"))
    assert read.format == "megatron-straggler"
    rows = read.samples.select("rank", "series", "counter", "value")
    expected = [
        (8, "min", "round_trip_s", 3.45308), (0, "max", "round_trip_s", 3.4682), (8, "min", "power_w", 601.796),
        (18, "max", "power_w", 683.801), (0, "min", "temp_c", 52.0), (21, "max", "temp_c", 65.0), (8, "min", "gpu_util_pct", 97.0),
        (6, "max", "gpu_util_pct", 100.0), (28, "min", "sm_clock_hz", 1.95e9), (0, "max", "sm_clock_hz", 1.98e9),
        (23, "min", "get_batch_s", 0.01427), (3, "max", "get_batch_s", 0.03465), (0, "min", "tflops", 296.02),
        (8, "max", "tflops", 297.32), (2, "min", "tflops", 296.17), (15, "max", "tflops", 297.28),
    ]  # fmt: skip
    assert [(r, s, c, round(v, 9)) for r, s, c, v in rows.iter_rows()] == [
        (r, f'extreme="{e}"', c, v) for r, e, c, v in expected
    ]
    assert set(read.samples["t_ns"]) == {T_NS}
    assert read.said("can only be milliwatts")


def test_watts_stay_watts(tmp_path: Path) -> None:
    read = sampled(
        write(
            tmp_path, "[2024-03-14 23:06:56] [INFO] | MnPwr/Rnk: 617.50W/0 | MxPwr/Rnk: 669.00W/20\n", "s.log"
        )
    )
    assert read.samples["value"].to_list() == [617.5, 669.0]
    assert not read.said("milliwatts")


def test_among_training_lines_the_text_engine_reads_both(tmp_path: Path) -> None:
    write(tmp_path, "".join(TRAINING.format(i) + REPORT.format(i) for i in range(1, 6)), "train.log")
    (run,) = inventory(collect([tmp_path]))["runs"]
    assert [s["format"] for s in run["sources"]] == ["text-log"]
    assert {m["tag"]: m["points"] for m in run["metrics"]}["lm loss"] == 5
    assert {s["counter"]: s["points"] for s in run["samples"]}["round_trip_s"] == 10
    assert run["sources"][0]["rows"]["samples"] == 70


def test_torn_lines_keep_what_is_whole(tmp_path: Path) -> None:
    text = REPORT.format(6) + REPORT.format(7)[:110] + "\n\0\0\n" + REPORT.format(8)
    read = sampled(write(tmp_path, text, "straggler.log"))
    assert len(read.samples) == 14 + 2 + 14
    assert read.damaged >= 1
