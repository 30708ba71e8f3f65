"""JSON logs of single frameworks: detectron2, DETR, MMEngine, MMCV 1, fairseq."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from afterrun.loaders.jsonlog.lines import JsonLines
from tests.support.loading import CORPUS, Read, claimed, load_claimed, needs_corpus, write


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(r) + "\n" for r in rows)


def load(folder: Path, text: str, name: str, format_name: str) -> Read:
    found, result = load_claimed(write(folder, text, name))
    assert found == format_name
    return result


# -- detectron2 ----------------------------------------------------------------------------------------


def test_detectron2_evaluates_in_some_rows_and_nan_is_recorded(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "data_time": 0.01,
            "eta_seconds": 9.5,
            "iteration": i,
            "lr": 0.001,
            "total_loss": round(2.0 - i / 100, 2),
        }
        for i in (19, 39, 59)
    ]
    rows[1] |= {"bbox/AP": 25.5, "bbox/APs": math.nan}
    result = load(tmp_path, lines(*rows), "metrics.json", "detectron2-json")
    assert result.points("total_loss") == [(19, 1.81), (39, 1.61), (59, 1.41)]
    assert result.points("bbox/AP") == [(39, 25.5)]
    assert [s for s, v in result.points("bbox/APs") if math.isnan(v)] == [39]
    assert result.damaged == 0


# -- DETR ----------------------------------------------------------------------------------------------


def test_detr_rows_are_epochs_where_none_is_written(tmp_path: Path) -> None:
    rows = [
        {"train_lr": 1e-4, "train_loss": 30.0 - i, "test_coco_eval_bbox": [i / 10, i / 5]} for i in range(3)
    ]
    result = load(tmp_path, lines(*rows), "log.txt", "detr-json")
    assert result.points("train_loss") == [(0, 30.0), (1, 29.0), (2, 28.0)]
    assert result.points("test_coco_eval_bbox[1]") == [(0, 0.0), (1, 0.2), (2, 0.4)]
    assert result.metrics["epoch"].unique().to_list() == [0.0, 1.0, 2.0]


def test_detr_goes_on_in_the_same_file(tmp_path: Path) -> None:
    rows = [
        {"train_lr": 1e-4, "train_loss": 30.0 - e, "test_loss": 31.0 - e, "epoch": e, "n_parameters": 41}
        for e in [*range(10), *range(20)]
    ]
    write(tmp_path, lines(*rows), "out/log.txt")
    (run,) = inventory(collect([tmp_path]))["runs"]
    (loss,) = [m for m in run["metrics"] if m["tag"] == "train_loss"]
    assert (run["run"], run["attempts"], loss["points"], loss["superseded"]) == ("out", 2, 20, 10)


# -- MMEngine ------------------------------------------------------------------------------------------


def train_row(i: int, epoch: int | None, **more: float) -> dict[str, Any]:
    row: dict[str, Any] = {"lr": 0.02, "data_time": 0.004, "loss": 2.0 - i / 100, "time": 0.14}
    return row | ({} if epoch is None else {"epoch": epoch}) | {"iter": i, "memory": 3060, "step": i} | more


def test_mmengine_validation_rows_count_epochs(tmp_path: Path) -> None:
    rows = []
    for epoch in (1, 2):
        rows += [train_row(69 * (epoch - 1) + i, epoch) for i in (23, 46, 69)]
        rows.append({"accuracy/top1": 40.0 + epoch, "data_time": 0.09, "time": 0.12, "step": epoch})
    result = load(tmp_path, lines(*rows), "vis_data/scalars.json", "mmengine-json")
    assert result.steps("loss") == [23, 46, 69, 92, 115, 138]
    assert result.points("accuracy/top1") == [(69, 41.0), (138, 42.0)]
    top1 = result.metrics.filter(result.metrics["tag"] == "accuracy/top1")
    assert top1["epoch"].to_list() == [1.0, 2.0]
    assert result.values("time") == [0.14] * 6, "times of validation are other times"
    assert result.points("val/time") == [(69, 0.12), (138, 0.12)]


def test_mmengine_loops_without_epochs_count_iterations(tmp_path: Path) -> None:
    rows = [train_row(i, None) for i in (50, 100, 150)] + [{"mIoU": 33.0, "step": 160, "time": 0.1}]
    result = load(tmp_path, lines(*rows), "vis_data/scalars.json", "mmengine-json")
    assert result.points("mIoU") == [(160, 33.0)]


def test_mmengine_validation_before_any_training_has_no_step(tmp_path: Path) -> None:
    rows = [{"mIoU": 33.0, "data_time": 0.1, "time": 0.1, "step": 4}]
    result = load(tmp_path, lines(*rows), "vis_data/scalars.json", "mmengine-json")
    assert result.points("mIoU") == [(None, 33.0)]
    assert result.metrics.filter(result.metrics["tag"] == "mIoU")["epoch"].to_list() == [4.0]


def test_mmengine_carries_the_iteration_from_block_to_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(JsonLines.__init__.__kwdefaults__, "block_bytes", 1)
    rows = [train_row(69, 1), {"accuracy/top1": 41.0, "step": 1}, {"accuracy/top5": 81.0, "step": 1}]
    result = load(tmp_path, lines(*rows), "vis_data/scalars.json", "mmengine-json")
    assert result.points("accuracy/top1") == [(69, 41.0)]
    assert result.points("accuracy/top5") == [(69, 81.0)]


def test_mmengine_writes_every_row_twice_but_it_counts_once(tmp_path: Path) -> None:
    text = lines(*(train_row(i, 1) for i in range(1, 21)))
    for name in ("20230605_200941.json", "scalars.json"):
        write(tmp_path, text, f"work_dirs/res50/20230605_200941/vis_data/{name}")
    (run,) = inventory(collect([tmp_path]))["runs"]
    (loss,) = [m for m in run["metrics"] if m["tag"] == "loss"]
    assert run["run"] == "work_dirs/res50/20230605_200941"
    assert run["grouped_by"] == "mmengine-json layout"
    assert (run["attempts"], loss["points"], loss["superseded"]) == (1, 20, 20)


# -- MMCV 1 --------------------------------------------------------------------------------------------


def mmcv_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"env_info": "sys.platform: linux\nGPU 0: A100", "seed": 0, "exp_name": "r50.py"}
    ]
    for epoch in (1, 2, 3):
        rows += [
            {"mode": "train", "epoch": epoch, "iter": i, "lr": 0.02, "loss": 2.0 - epoch / 10, "time": 0.3}
            for i in (50, 100, 150)
        ]
        rows.append({"mode": "val", "epoch": epoch, "iter": 625, "lr": 0.02, "bbox_mAP": epoch / 10})
    return rows


def test_mmcv_iterations_begin_again_in_every_epoch(tmp_path: Path) -> None:
    result = load(tmp_path, lines(*mmcv_rows()), "20210101_120000.log.json", "mmcv-json")
    assert result.values("train/loss") == [1.9] * 3 + [1.8] * 3 + [1.7] * 3
    assert set(result.steps("train/loss")) == {None}, "a number within an epoch is no step"
    ap = result.metrics.filter(result.metrics["tag"] == "val/bbox_mAP")
    assert ap.select("epoch", "value").rows() == [(1.0, 0.1), (2.0, 0.2), (3.0, 0.3)]
    assert result.params == {"exp_name": "r50.py", "seed": "0"}
    assert result.notes == ()
    assert "train/lr" in result.tags()


def test_mmcv_iterations_over_the_run_are_steps(tmp_path: Path) -> None:
    rows = [{"mode": "train", "epoch": 1, "iter": i, "loss": 1.0} for i in (50, 100, 150)]
    rows += [{"mode": "val", "epoch": 1, "iter": 625, "mIoU": 0.5}]
    result = load(tmp_path, lines(*rows), "x.log.json", "mmcv-json")
    assert result.steps("train/loss") == [50, 100, 150]
    assert result.points("val/mIoU") == [(150, 0.5)]


# -- fairseq -------------------------------------------------------------------------------------------

HYDRA = """[2022-04-08 18:40:57,965][fairseq_cli.train][INFO] - {'_name': None, 'common': {'log_format': 'json', 'seed': 1}}
[2022-04-08 18:40:58,000][fairseq.trainer][INFO] - begin training epoch 1
[2022-04-08 18:48:05,372][train_inner][INFO] - {"epoch": 1, "update": 0.5, "loss": "9.25", "num_updates": "200", "lr": "3e-06"}
[2022-04-08 18:54:45,183][train_inner][INFO] - {"epoch": 1, "update": 0.75, "loss": "6.5", "num_updates": "400", "lr": "6e-06"}
[2022-04-08 18:58:04,035][valid][INFO] - {"epoch": 1, "valid_loss": "6.375", "valid_num_updates": "479"}
[2022-04-08 18:58:05,000][train][INFO] - {"epoch": 1, "train_loss": "7.5", "train_num_updates": "479"}
[2022-04-08 18:59:00,000][train_inner][INFO] - {"epoch": 2, "update": 1.25, "lo
"""
PLAIN = """2021-06-01 12:00:00 | INFO | fairseq_cli.train | Namespace(log_format='json', seed=1)
2021-06-01 12:01:00 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "9.25", "num_updates": "200"}
"""


def test_fairseq_numbers_are_text_and_updates_fractions_of_epochs(tmp_path: Path) -> None:
    result = load(tmp_path, HYDRA, "hydra_train.log", "fairseq-json")
    assert result.points("loss") == [(200, 9.25), (400, 6.5)]
    assert result.points("valid_loss") == [(479, 6.375)]
    assert result.points("train_loss") == [(479, 7.5)]
    loss = result.metrics.filter(result.metrics["tag"] == "loss")
    assert loss["epoch"].to_list() == [0.5, 0.75]
    assert loss["wall_ns"].to_list() == [1_649_443_685_372_000_000, 1_649_444_085_183_000_000]
    assert result.damaged == 1
    assert result.notes == ("1 line without a whole JSON object left out: line 7",)


def test_fairseq_without_hydra(tmp_path: Path) -> None:
    assert load(tmp_path, PLAIN, "train.log", "fairseq-json").points("loss") == [(200, 9.25)]


def test_other_logs_of_fairseq_are_left_to_others(tmp_path: Path) -> None:
    text = "2021-06-01 12:00:00 | INFO | fairseq_cli.train | begin dry-run validation on 'valid' subset\n"
    assert claimed(write(tmp_path, text, "train.log")) != "fairseq-json"


# -- real files ----------------------------------------------------------------------------------------


@pytest.mark.corpus
@needs_corpus
@pytest.mark.parametrize(
    ("path", "format_name", "tag", "points", "last"),
    [
        ("jsonl/detectron2-metrics/output/metrics.json", "detectron2-json", "bbox/AP", 3, 27.662963128892077),
        ("jsonl/detr-log/detr-r50_log.txt", "detr-json", "test_coco_eval_bbox[0]", 500, 0.4202917575662765),
        ("jsonl/detr-log/output/log.txt", "detr-json", "train_loss", 61, 10.365347698137358),
        (
            "jsonl/mmengine-scalars/vis_data/scalars.json",
            "mmengine-json",
            "accuracy/top1",
            59,
            94.15584564208984,
        ),
        ("text/fairseq-hydra-json/hydra_train.log", "fairseq-json", "valid_loss", 10, None),
    ],
)
def test_real_files(path: str, format_name: str, tag: str, points: int, last: float | None) -> None:
    found, result = load_claimed(CORPUS / "curves" / path)
    assert (found, result.damaged) == (format_name, 0)
    assert len(result.values(tag)) == points
    assert last is None or result.values(tag)[-1] == last


@pytest.mark.corpus
@needs_corpus
def test_every_value_of_a_real_log() -> None:
    """Row by row against the standard library."""
    path = CORPUS / "curves/jsonl/detectron2-metrics/output/metrics.json"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    _, result = load_claimed(path)
    for name in {k for r in rows for k in r}:
        want = [(r["iteration"], r[name]) for r in rows if name in r]
        assert [(s, str(v)) for s, v in result.points(name)] == [(s, str(float(v))) for s, v in want]
