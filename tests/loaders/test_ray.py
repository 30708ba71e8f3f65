"""A trial of Ray: two tables of one truth, and the configuration."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from afterrun.analyzer.inventory import inventory
from afterrun.loaders.collect import collect
from tests.support.loading import load_claimed, write


def result(i: int) -> dict[str, Any]:
    return {
        "episode_reward_mean": math.nan if i == 0 else 10.0 + i,
        "info": {"learner": {"default_policy": {"total_loss": 1.0 / (i + 1)}}},
        "hist_stats": {"episode_reward": [1.0, 2.0, 3.0]},
        "timesteps_total": 4000 * (i + 1),
        "training_iteration": i + 1,
        "time_this_iter_s": 3.5,
        "timestamp": 1_700_000_000 + 4 * i,
        "date": f"2023-11-14_22-13-{20 + i}",
        "done": i == 2,
        "trial_id": "a1b2c_00000",
        "hostname": "node7",
        "node_ip": "10.0.0.7",
        "config": {"lr": 0.001, "env": "CartPole-v1", "layers": [64, 64]},
    }


def flat(row: dict[str, Any]) -> dict[str, Any]:
    out = {k: v for k, v in row.items() if k not in ("info", "config", "hist_stats")}
    return out | {
        "info/learner/default_policy/total_loss": row["info"]["learner"]["default_policy"]["total_loss"],
        "hist_stats/episode_reward": "[1.0; 2.0; 3.0]",
    }


ROWS = [result(i) for i in range(3)]
TABLE = "\n".join([",".join(flat(ROWS[0])), *(",".join(map(str, flat(r).values())) for r in ROWS), ""])
LINES = "".join(json.dumps(r) + "\n" for r in ROWS)
LOSS = "info/learner/default_policy/total_loss"


def test_progress_table(tmp_path: Path) -> None:
    format_name, read = load_claimed(write(tmp_path, TABLE, "progress.csv"))
    assert format_name == "ray-progress"
    assert read.points(LOSS) == [(4000, 1.0), (8000, 0.5), (12000, 1 / 3)]
    assert math.isnan(read.values("episode_reward_mean")[0])
    assert read.metrics["wall_ns"][0] == 1_700_000_000 * 10**9
    assert read.params == {"trial_id": "a1b2c_00000"}


def test_result_lines(tmp_path: Path) -> None:
    format_name, read = load_claimed(write(tmp_path, LINES, "result.json"))
    assert format_name == "ray-result"
    assert read.points(LOSS) == [(4000, 1.0), (8000, 0.5), (12000, 1 / 3)]
    assert not [t for t in read.tags() if t.startswith(("config", "hist_stats"))]
    assert read.params.keys() == {"trial_id"}


def test_without_time_steps_the_iteration_is_the_step(tmp_path: Path) -> None:
    text = TABLE.replace(",4000,", ",nan,").replace(",8000,", ",nan,").replace(",12000,", ",nan,")
    _, read = load_claimed(write(tmp_path, text, "progress.csv"))
    assert read.steps(LOSS) == [1, 2, 3]


def test_a_long_first_row_is_known_by_the_name_of_the_file(tmp_path: Path) -> None:
    row = json.dumps({"episode_reward_mean": 1.0, "hist_stats": {"r": [0.5] * 2000}, **ROWS[0]}) + "\n"
    assert load_claimed(write(tmp_path, row, "result.json"))[0] == "ray-result"


def test_a_trial_is_one_run_and_its_curves_count_once(tmp_path: Path) -> None:
    write(tmp_path, TABLE, "exp/trial_0/progress.csv")
    write(tmp_path, LINES, "exp/trial_0/result.json")
    write(
        tmp_path, '{"lr": 0.001, "model": {"path": "/home/ann/w.pt"}, "seed": 1}', "exp/trial_0/params.json"
    )
    write(tmp_path, TABLE, "exp/trial_1/progress.csv")
    write(tmp_path, '{"lr": ', "exp/trial_1/params.json")
    first, second = inventory(collect([tmp_path]))["runs"]
    (loss,) = [m for m in first["metrics"] if m["tag"] == LOSS]
    assert (first["run"], first["attempts"], loss["points"], loss["superseded"]) == ("exp/trial_0", 1, 3, 3)
    assert (first["params"]["lr"], first["params"]["model.path"]) == (0.001, "w.pt")
    assert [s["status"] for s in second["sources"]] == ["unreadable", "read"]
